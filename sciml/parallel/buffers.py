"""Few large communications instead of many small ones: arrays of one kind travel in one buffer."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from sciml import axes
from sciml.types import Array

Places: TypeAlias = Sequence[int | None]
"""For each array an axis, or None for an array that is left alone."""


def gather(shards: Sequence[Array], where: Places, name: str, count: int) -> list[Array]:
    """Whole arrays from their parts along axis `where[i]` over mesh axis `name`; its transpose adds and scatters."""

    def together(group: list[Array], at: list[int]) -> list[Array]:
        lines = [jnp.moveaxis(x, axis, 0) for x, axis in zip(group, at, strict=True)]
        buffer = jax.lax.all_gather(_joined([x.reshape(-1) for x in lines], 0), name)
        shapes = [(count * x.shape[0], *x.shape[1:]) for x in lines]
        columns = jnp.split(buffer, _ends([x.size for x in lines]), axis=1)
        return [jnp.moveaxis(c.reshape(s), 0, axis) for c, s, axis in zip(columns, shapes, at, strict=True)]

    return _by_kind(together, shards, where)


def scatter_sums(arrays: Sequence[Array], where: Places, name: str, count: int) -> list[Array]:
    """This device's part, along axis `where[i]`, of the sum over mesh axis `name`."""

    def together(group: list[Array], at: list[int]) -> list[Array]:
        lines = [jnp.moveaxis(x, axis, 0) for x, axis in zip(group, at, strict=True)]
        buffer = _joined([x.reshape(count, -1) for x in lines], 1)
        own = jax.lax.psum_scatter(buffer, name, scatter_dimension=0, tiled=False)
        shapes = [(x.shape[0] // count, *x.shape[1:]) for x in lines]
        pieces = jnp.split(own, _ends([x.size // count for x in lines]))
        return [jnp.moveaxis(p.reshape(s), 0, axis) for p, s, axis in zip(pieces, shapes, at, strict=True)]

    return _by_kind(together, arrays, where)


def sums(arrays: Sequence[Array], over: Sequence[tuple[str, ...]]) -> list[Array]:
    """Each array summed over its own mesh axes, those of one kind together."""
    result: list[Array] = list(arrays)
    for kind in dict.fromkeys(over):
        places = [i for i, names in enumerate(over) if names == kind]
        if kind:
            for place, value in zip(places, jax.lax.psum([arrays[i] for i in places], kind), strict=True):
                result[place] = value
    return result


def _by_kind(
    function: Callable[[list[Array], list[int]], list[Array]], arrays: Sequence[Array], where: Places
) -> list[Array]:
    """Apply `function` to the arrays of equal type that differ between the same devices."""
    groups: dict[Any, list[tuple[int, int]]] = {}
    for place, (array, axis) in enumerate(zip(arrays, where, strict=True)):
        if axis is not None:
            groups.setdefault((array.dtype, axes.varying(array)), []).append((place, axis))
    result = list(arrays)
    for group in groups.values():
        values = function([arrays[place] for place, _ in group], [axis for _, axis in group])
        for (place, _), value in zip(group, values, strict=True):
            result[place] = value
    return result


def _joined(pieces: list[Array], axis: int) -> Array:
    return pieces[0] if len(pieces) == 1 else jnp.concatenate(pieces, axis)


def _ends(sizes: list[int]) -> list[int]:
    return list(itertools.accumulate(sizes[:-1]))
