"""Transformer operator: patches of the grid as tokens, attention between all of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, final

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from sciml import axes
from sciml.axes import HEADS, SPACE
from sciml.errors import ConfigError
from sciml.operators.attention import Attention, places, precise
from sciml.operators.dense import Dense, Perceptron
from sciml.operators.experts import Experts, GatedPerceptron
from sciml.operators.predictor import field_layout
from sciml.operators.stack import Stack, StackPredictor, Travelling
from sciml.registry import option, register
from sciml.spec import Spec, Statistics
from sciml.types import Array, Float

RAMPS = 4
"""Cosines per bounded axis that tell a token where it is."""


@final
@register("model", "transformer")
@dataclass(frozen=True)
class Transformer:
    """Transformer operator: patches of grid cells are tokens, each of which looks at all others.

    Layers are `x <- x + attention(norm(x))`, `x <- x + mlp(norm(x))` with gated perceptrons. Attention sees
    contents and distances, as Fourier series that wrap on periodic axes, so that on these the model commutes
    with shifts by a patch; on bounded axes tokens also know their place. Scalars scale and shift the
    normalized tokens. All layers start as the identity, so that the model begins as a linear map within each
    patch. With `experts` the perceptrons are mixtures of which each token uses the best `chosen`: more
    parameters for the same work per token. The grid is that of the training; its cells must divide into
    patches. Its deep uniform stack can be split over devices in every way.

    Good values: the defaults, with muon; after 1000 steps on the Burgers recipe their error is half of the FNO's,
    for four times its training time on a CPU, and adam needs many more steps. Experts do not pay on a few thousand
    samples: four gave 1.6 times the error after 400 steps. Sources: A. Vaswani et al., arXiv:1706.03762; A.
    Dosovitskiy et al., arXiv:2010.11929.
    """

    task: ClassVar[str] = "operator"

    width: int = option(64, minimum=1, doc="channels of a token")
    heads: int = option(4, minimum=1, doc="attention heads; they divide the width")
    layers: int = option(4, minimum=1, doc="number of layers")
    patch: tuple[int, ...] = option((4,), minimum=1, doc="grid cells per token, per axis or one for all")
    hidden: int | None = option(None, minimum=1, doc="width inside the perceptrons; default: twice the width")
    waves: int = option(8, minimum=1, doc="wave numbers per axis in the dependence on distance")
    projection: int = option(128, minimum=1, doc="width of the last perceptron")
    activation: Literal["gelu", "tanh", "silu", "sine"] = option("gelu", doc="nonlinearity of the gates")
    experts: int = option(0, minimum=0, doc="number of perceptrons per layer among which tokens choose; 0: one")
    chosen: int = option(1, minimum=1, maximum=2, doc="experts per token")
    capacity: float = option(1.5, above=0.0, doc="tokens an expert takes at most, relative to an even spread")
    groups: int = option(1, minimum=1, doc="parts of a sample's tokens in which capacity is counted")
    balance: float = option(0.01, minimum=0.0, doc="weight of uneven use of the experts in the loss")
    dtype: Literal["float32", "float64"] = option("float32", doc="of parameters and computation")

    def build(self, spec: Spec, statistics: Mapping[str, Statistics], *, seed: int) -> StackPredictor:
        """The model for `spec`, with random parameters. Raises ConfigError when the spec does not fit."""
        space, channels_in, scalars, channels_out = field_layout(spec, "transformer")
        grid = spec.outputs[0].shape[-len(space) :]
        patch = self.patch * (len(space) if len(self.patch) == 1 else 1)
        _refuse_patches(patch, grid, space)
        periodic = tuple(axis in spec.periodic for axis in space)
        channels = (channels_in, channels_out)
        network = TransformerNetwork(self, patch, periodic, scalars, channels, rngs=nnx.Rngs(seed))
        return StackPredictor(network, spec, statistics)


class TransformerNetwork(nnx.Module):
    """(fields `(*space, C)`, scalars `(P,)`) -> `(*space, C_out)`, all of order one."""

    splits_space = "all"

    def __init__(
        self,
        config: Transformer,
        patch: tuple[int, ...],
        periodic: tuple[bool, ...],
        scalars: int,
        channels: tuple[int, int],
        *,
        rngs: nnx.Rngs,
    ) -> None:
        self.config, self.patch, self.periodic, self.dtype = config, patch, periodic, jnp.dtype(config.dtype)
        cells, width = math.prod(patch), config.width
        lifted = cells * channels[0] + periodic.count(False) * (RAMPS + 1)
        self.lift = Dense(lifted, width, dtype=self.dtype, rngs=rngs)
        self.condition = Perceptron((scalars, 64, 32), dtype=self.dtype, rngs=rngs) if scalars else None
        self.stack = Stack(lambda: Block(config, periodic, 32 if scalars else 0, rngs=rngs), config.layers)
        self.linear = Dense(width, cells * channels[1], dtype=self.dtype, rngs=rngs)
        sizes = (width, config.projection, cells * channels[1])
        self.project = Perceptron(sizes, config.activation, last_gain=0.0, dtype=self.dtype, rngs=rngs)

    def __call__(
        self, fields: Float[Array, "*space channels"], scalars: Float[Array, " P"]
    ) -> Float[Array, "*space channels_out"]:
        return self.head(self.stack(self.embed(fields, scalars)))

    def embed(self, fields: Array, scalars: Array) -> Travelling:
        """Tokens `(*tokens, width)`, and what accompanies them through the layers."""
        patches = cut(fields, self.patch)
        ramps = token_ramps(axes.whole_shape(patches.shape[:-1]), self.periodic)
        ramps = axes.portion(jnp.asarray(ramps, self.dtype), SPACE, 0)
        state = {"tokens": self.lift(jnp.concatenate([patches, ramps], -1))}
        if self.condition is not None:
            state["condition"] = self.condition(scalars)
        if self.config.experts:
            groups = self.config.groups // axes.parts(SPACE)
            state["imbalance"] = axes.varying_like(jnp.zeros((groups,), self.dtype), fields)
        return state

    def head(self, state: Travelling) -> Array:
        """Tokens after the last layer to fields."""
        tokens = state["tokens"]
        return joined(self.linear(tokens) + self.project(normalized(tokens)), self.patch)

    def penalties(self, state: Travelling) -> dict[str, Array]:
        """Residuals whose squares are the mean imbalance of the layers' experts, one per group of tokens."""
        if not (self.config.experts and self.config.balance):
            return {}
        mean = state["imbalance"] / self.config.layers
        return {"balance": jnp.sqrt(self.config.balance * mean + jnp.finfo(mean.dtype).tiny)}


class Block(nnx.Module):
    """Attention, then a gated perceptron or a mixture of them, each added to its input."""

    def __init__(self, config: Transformer, periodic: tuple[bool, ...], condition: int, *, rngs: nnx.Rngs) -> None:
        width, hidden, dtype = config.width, config.hidden or 2 * config.width, jnp.dtype(config.dtype)
        self.periodic, self.waves = periodic, config.waves
        self.attention = Attention(width, config.heads, config.waves * len(periodic), dtype=dtype, rngs=rngs)
        self.modulate = Dense(condition, 4 * width, gain=0.1, dtype=dtype, rngs=rngs) if condition else None
        self.perceptron = (
            Experts(
                width,
                hidden,
                config.experts,
                chosen=config.chosen,
                groups=config.groups,
                capacity=config.capacity,
                activation=config.activation,
                dtype=dtype,
                rngs=rngs,
            )
            if config.experts
            else GatedPerceptron(width, hidden, config.activation, dtype=dtype, rngs=rngs)
        )

    def __call__(self, state: Travelling) -> Travelling:
        shape, width = state["tokens"].shape[:-1], state["tokens"].shape[-1]
        marks = places(axes.whole_shape(shape), self.periodic, self.waves)
        marks = axes.portion(jnp.asarray(marks, state["tokens"].dtype), SPACE, 0)
        x = state["tokens"].reshape(-1, width)
        gains = jnp.zeros((4, 1, width), x.dtype)
        if self.modulate is not None:
            gains = self.modulate(state["condition"]).reshape(4, 1, width)
        seen, (gain, shift) = axes.spread(x, HEADS), axes.spread(gains[:2], HEADS)
        x = x + self.attention((1 + gain) * normalized(seen) + shift, seen, marks.reshape(x.shape[0], -1))
        inner, result = (1 + gains[2]) * normalized(x) + gains[3], dict(state)
        if isinstance(self.perceptron, Experts):
            change, imbalance = self.perceptron(inner)
            result["imbalance"] = state["imbalance"] + imbalance
        else:
            change = self.perceptron(inner)
        result["tokens"] = (x + change).reshape(*shape, width)
        return result


def normalized(x: Array) -> Array:
    """Mean 0 and variance 1 along the last axis."""
    centered = precise(x) - jnp.mean(precise(x), -1, keepdims=True)
    return (centered * jax.lax.rsqrt(jnp.mean(centered**2, -1, keepdims=True) + 1e-6)).astype(x.dtype)


def cut(fields: Array, patch: tuple[int, ...]) -> Array:
    """`(*space, C)` to `(*tokens, cells * C)`."""
    *shape, channels = fields.shape
    _refuse_patches(patch, tuple(shape), tuple("xyz"[: len(patch)]))
    split = [n for size, cells in zip(shape, patch, strict=True) for n in (size // cells, cells)]
    count = len(patch)
    order = [*range(0, 2 * count, 2), *range(1, 2 * count, 2), 2 * count]
    tokens = [size // cells for size, cells in zip(shape, patch, strict=True)]
    return fields.reshape(*split, channels).transpose(order).reshape(*tokens, math.prod(patch) * channels)


def joined(tokens: Array, patch: tuple[int, ...]) -> Array:
    """The inverse of `cut`."""
    *shape, size = tokens.shape
    count, channels = len(patch), size // math.prod(patch)
    order = [*(i for axis in range(count) for i in (axis, count + axis)), 2 * count]
    grid = [n * cells for n, cells in zip(shape, patch, strict=True)]
    return tokens.reshape(*shape, *patch, channels).transpose(order).reshape(*grid, channels)


def token_ramps(shape: tuple[int, ...], periodic: tuple[bool, ...]) -> np.ndarray:
    """A ramp and a few cosines per bounded axis, `(*shape, features)`; periodic axes get none (no place is special)."""
    features = []
    for axis, (n, wraps) in enumerate(zip(shape, periodic, strict=True)):
        if not wraps:
            place = (np.arange(n) + 0.5) / n
            lines = [2 * place - 1, *(np.cos(k * math.pi * place) for k in range(1, RAMPS + 1))]
            ones = [1 if i != axis else n for i in range(len(shape))]
            features += [np.broadcast_to(line.reshape(ones), shape) for line in lines]
    return np.stack(features, -1) if features else np.zeros((*shape, 0))


def _refuse_patches(patch: tuple[int, ...], grid: tuple[int, ...], space: tuple[str, ...]) -> None:
    if len(patch) != len(grid):
        raise ConfigError(
            "patches do not fit the space axes",
            expected=f"1 or {len(grid)} numbers for axes {space}",
            got=patch,
            fix=f"patch: {[patch[0]] * len(grid)}",
        )
    parts = axes.parts(SPACE)
    bad = {axis: (n, cells) for axis, n, cells in zip(space, grid, patch, strict=True) if n % cells}
    if bad:
        fits = {axis: [m for m in range(1, grid[space.index(axis)] + 1) if n % m == 0] for axis, (n, _) in bad.items()}
        nearest = [max(m for m in range(1, cells + 1) if n % m == 0) for n, cells in zip(grid, patch, strict=True)]
        raise ConfigError(
            "patches do not divide the grid",
            expected="; ".join(f"along {axis} one of {sizes}" for axis, sizes in fits.items()),
            got="; ".join(f"{axis}: {n} points, patch {cells}" for axis, (n, cells) in bad.items()),
            reason=f"each device has one of {parts} slabs of the grid" if parts > 1 else None,
            fix=f"patch: {nearest}",
        )
