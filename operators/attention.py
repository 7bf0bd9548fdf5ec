"""Attention between tokens on a grid, whole or spread over devices by heads and by tokens."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from sciml import axes
from sciml.axes import HEADS, SPACE
from sciml.errors import ConfigError
from sciml.types import Array, Float


class Attention(nnx.Module):
    """Queries and keys from one set of tokens, values from another: `(tokens, width) -> (tokens, width)`.

    Where a query looks depends on what the tokens hold (normalized queries and keys) and on the distance
    between their places, through a Fourier series per head whose coefficients depend on the query. Only
    distances enter, so that on periodic axes the layer commutes with shifts by a token. The last matrix
    starts at `gain` times its usual size.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        waves: int,
        *,
        gain: float = 0.0,
        dtype: jnp.dtype | type,
        rngs: nnx.Rngs,
    ) -> None:
        if width % heads:
            fits = [n for n in range(1, width + 1) if width % n == 0]
            raise ConfigError(
                "attention heads do not divide the width",
                expected=f"heads: one of {fits}",
                got=f"heads {heads}, width {width}",
                fix=f"heads: {max(n for n in fits if n <= heads)}",
            )
        size, scale = width // heads, (1.0 / width) ** 0.5

        def random(*shape: int) -> Array:
            return jax.random.normal(rngs.params(), shape, dtype)

        def matrix(value: Array, names: tuple[str | None, ...], ins: tuple[int, ...], outs: tuple[int, ...]):
            return nnx.Param(value, axes=names, matrix=(ins, outs))

        self.pair = matrix(scale * random(width, 2, heads, size), (None, None, HEADS, None), (-4,), (-2, -1))
        self.value = matrix(scale * random(width, heads, size), (None, HEADS, None), (-3,), (-2, -1))
        self.outer = matrix(gain * scale * random(heads, size, width), (HEADS, None, None), (-3, -2), (-1,))
        near = 0.1 * scale * random(width, heads, 2, waves)
        self.near = matrix(near, (None, HEADS, None, None), (-4,), (-3, -2, -1))
        self.sharpness = nnx.Param(jnp.ones((heads,), dtype), axes=(HEADS,))
        self.nearness = nnx.Param(waves**-0.5 * random(heads, 2, waves), axes=(HEADS, None, None))

    def __call__(
        self, x: Float[Array, "tokens width"], y: Float[Array, "tokens width"], marks: Float[Array, "tokens marks"]
    ) -> Float[Array, "tokens width"]:
        """Looks by `x`, takes from `y`; `marks` say where the tokens are, see `places`."""
        x, y = axes.spread(x, HEADS), axes.spread(y, HEADS)
        pair = jnp.einsum("td,dnhc->nthc", x, self.pair[...])
        pair = pair * jax.lax.rsqrt(jnp.mean(pair**2, -1, keepdims=True) + 1e-6)
        query, key = pair[0] * self.sharpness[...][:, None] / pair.shape[-1] ** 0.5, pair[1]
        value = jnp.einsum("td,dhc->thc", y, self.value[...])
        near = jnp.einsum("td,dhpw->thpw", x, self.near[...]) + self.nearness[...]
        query = jnp.concatenate([query, turned(near, marks)], -1)
        key = jnp.concatenate([key, jnp.broadcast_to(marks[:, None], (*key.shape[:2], marks.shape[-1]))], -1)
        mixed = attend(query, key, value)
        return axes.total(jnp.einsum("thc,hcd->td", mixed, self.outer[...]), HEADS)


def turned(near: Array, marks: Array) -> Array:
    """a, b to the vector whose product with another token's marks is a cos(difference) + b sin(difference)."""
    a, b = near[:, :, 0], near[:, :, 1]
    cos, sin = jnp.split(marks[:, None], 2, axis=-1)
    return jnp.concatenate([a * cos + b * sin, a * sin - b * cos], -1)


def places(shape: tuple[int, ...], periodic: tuple[bool, ...], waves: int) -> np.ndarray:
    """Cosines and sines `(*shape, 2 * axes * waves)` of the place of each token times 1, 2, ... `waves`, per axis.

    A bounded axis is half of a period, so that opposite distances stay apart.
    """
    numbers = np.arange(1, waves + 1)
    lines = [
        (2 if wraps else 1) * math.pi * np.arange(n)[:, None] / n * numbers
        for n, wraps in zip(shape, periodic, strict=True)
    ]
    grids = [
        np.broadcast_to(line.reshape(*(-1 if i == j else 1 for j in range(len(shape))), waves), (*shape, waves))
        for i, line in enumerate(lines)
    ]
    angles = np.concatenate(grids, -1)
    return np.concatenate([np.cos(angles), np.sin(angles)], -1)


def precise(x: Array) -> Array:
    """In single precision at least: what must not be rounded to half precision."""
    return x.astype(jnp.promote_types(x.dtype, jnp.float32))


def attend(query: Array, key: Array, value: Array) -> Array:
    """softmax(query keyᵀ) value over all tokens, `(tokens, heads, ...)`, of which this device may have a part."""
    if axes.parts(SPACE) == 1:
        return attend_here(query, key, value)
    return SPREAD[axes.placement().options.get("attention") or "ring"](query, key, value)


def attend_here(query: Array, key: Array, value: Array) -> Array:
    """All tokens on one device."""
    weights = jax.nn.softmax(precise(jnp.einsum("qhc,khc->hqk", query, key)), -1)
    return jnp.einsum("hqk,khc->qhc", weights.astype(value.dtype), value)


def attend_by_swap(query: Array, key: Array, value: Array) -> Array:
    """All-to-all from a part of the tokens to a part of the heads, and back (Jacobs et al., arXiv:2309.14509)."""
    heads, count = query.shape[1], axes.parts(SPACE)
    if heads % count:
        raise ConfigError(
            "the heads on each device do not divide over the parts of space",
            expected=f"a multiple of {count} heads per device",
            got=heads,
            fix="plan: {attention: ring}",
        )
    whole = [axes.swap(a, SPACE, split=1, join=0) for a in (query, key, value)]
    return axes.swap(attend_here(*whole), SPACE, split=0, join=1)


def attend_in_ring(query: Array, key: Array, value: Array) -> Array:
    """Keys and values go round; each device has a part of the tokens only, also in the backward pass."""
    ring = axes.mesh_axis(SPACE), axes.parts(SPACE)
    result: Array = _ring(ring, query, key, value)
    return result.astype(value.dtype)


SPREAD: dict[str, Callable[[Array, Array, Array], Array]] = {"ring": attend_in_ring, "all_to_all": attend_by_swap}


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _ring(ring: tuple[str, int], query: Array, key: Array, value: Array) -> Array:
    """Streaming softmax over the parts of the ring (Liu et al., arXiv:2310.01889)."""
    return _ring_forward(ring, query, key, value)[0]


def _ring_forward(ring: tuple[str, int], query: Array, key: Array, value: Array) -> tuple[Array, tuple[Array, ...]]:
    def step(carry: tuple[Array, ...], _: None) -> tuple[tuple[Array, ...], None]:
        key, value, *sums = carry
        key, value = _next(ring, key), _next(ring, value)
        return (key, value, *_absorbed(sums, precise(query), precise(key), precise(value))), None

    logits = jnp.einsum("qhc,khc->hqk", precise(query), precise(key))
    top = jnp.max(logits, -1)
    weights = jnp.exp(logits - top[..., None])
    first = (key, value, top, jnp.sum(weights, -1), jnp.einsum("hqk,khc->hqc", weights, precise(value)))
    (_, _, top, total, mixed), _ = jax.lax.scan(step, first, length=ring[1] - 1)
    result = jnp.moveaxis(mixed / total[..., None], 0, 1)
    return result, (query, key, value, result, top + jnp.log(total))


def _absorbed(sums: list[Array], query: Array, key: Array, value: Array) -> tuple[Array, Array, Array]:
    """Largest logit, sum of weights and weighted values, with one more part of keys and values."""
    top, total, mixed = sums
    logits = jnp.einsum("qhc,khc->hqk", query, key)
    highest = jnp.maximum(top, jnp.max(logits, -1))
    weights, fade = jnp.exp(logits - highest[..., None]), jnp.exp(top - highest)
    total = fade * total + jnp.sum(weights, -1)
    return highest, total, fade[..., None] * mixed + jnp.einsum("hqk,khc->hqc", weights, value)


def _ring_backward(ring: tuple[str, int], saved: tuple[Array, ...], slope: Array) -> tuple[Array, Array, Array]:
    """Keys and values go round again, and the slopes that they collect come home with them."""
    query, key, value, result, level = saved
    kinds, query, slope = (query.dtype, key.dtype, value.dtype), precise(query), precise(slope)
    offset = jnp.einsum("qhc,qhc->hq", slope, result)[..., None]

    def slopes(key: Array, value: Array) -> tuple[Array, Array, Array]:
        key, value = precise(key), precise(value)
        weights = jnp.exp(jnp.einsum("qhc,khc->hqk", query, key) - level[..., None])
        logits = weights * (jnp.einsum("qhc,khc->hqk", slope, value) - offset)
        by_query = jnp.einsum("hqk,khc->qhc", logits, key)
        return by_query, jnp.einsum("hqk,qhc->khc", logits, query), jnp.einsum("hqk,qhc->khc", weights, slope)

    def step(carry: tuple[Array, ...], _: None) -> tuple[tuple[Array, ...], None]:
        key, value, by_query, by_key, by_value = carry
        key, value, by_key, by_value = (_next(ring, a) for a in (key, value, by_key, by_value))
        more = slopes(key, value)
        return (key, value, by_query + more[0], by_key + more[1], by_value + more[2]), None

    (_, _, by_query, by_key, by_value), _ = jax.lax.scan(step, (key, value, *slopes(key, value)), length=ring[1] - 1)
    found = by_query, _next(ring, by_key), _next(ring, by_value)
    return tuple(slope.astype(kind) for slope, kind in zip(found, kinds, strict=True))  # pyright: ignore[reportReturnType] -- of three


def _next(ring: tuple[str, int], x: Array) -> Array:
    axis, count = ring
    return jax.lax.ppermute(x, axis, [(i, (i + 1) % count) for i in range(count)])


_ring.defvjp(_ring_forward, _ring_backward)
