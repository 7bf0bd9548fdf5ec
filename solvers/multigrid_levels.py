"""The grids of a multigrid solver: stencils read off an operator, interpolation that follows it, coarse operators."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import jax
import jax.numpy as jnp
import numpy as np

from sciml.types import Array

Offset = tuple[int, ...]
FEW = 300  # points of a grid that is small enough to be solved by one matrix product


@dataclass(frozen=True, eq=False)
class Level:
    """One grid: `stencil`, shape (3^dim, fields, *shape), couples each point to its neighbors (`offsets_of`).

    `active`: where there is an unknown, shape (*shape); the others are points that conditions fix.
    """

    stencil: Array
    active: Array
    periodic: tuple[bool, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Points per axis."""
        return self.active.shape

    @property
    def diagonal(self) -> Array:
        """Coupling of each point with itself, shape (fields, *shape)."""
        return self.stencil[self.stencil.shape[0] // 2]

    def apply(self, u: Array) -> Array:
        """The operator on values of shape (fields, *shape)."""
        return gathered(self.stencil, u, self.periodic)


def offsets_of(dim: int) -> tuple[Offset, ...]:
    """The 3^dim neighbors of a point, itself in the middle."""
    return tuple(itertools.product((-1, 0, 1), repeat=dim))


def _padded(u: Array, axis: int, wraps: bool) -> Array:
    """One more point at each end of an axis: the other end where periodic, else zero."""
    if not wraps:
        widths = [(1, 1, 0) if a == axis else (0, 0, 0) for a in range(u.ndim)]
        return jax.lax.pad(u, jnp.zeros((), u.dtype), widths)
    n = u.shape[axis]
    ends = jax.lax.slice_in_dim(u, n - 1, n, axis=axis), jax.lax.slice_in_dim(u, 0, 1, axis=axis)
    return jnp.concatenate([ends[0], u, ends[1]], axis)


def gathered(weights: Array, u: Array, periodic: tuple[bool, ...]) -> Array:
    """The sum over the offsets o of weights[o] u(. + o): (3^dim, fields, *shape) and (fields, *shape) to the latter.

    Written out: XLA makes one loop of it, 25 times as fast as stacked neighbors.
    """
    padded = _padded_all(u, periodic)
    parts = [w * _window(padded, offset, u.shape) for w, offset in zip(weights, offsets_of(len(periodic)), strict=True)]
    return reduce(operator.add, parts)


def scattered(weights: Array, u: Array, periodic: tuple[bool, ...]) -> Array:
    """The transpose: the sum of (weights[o] u)(. - o)."""
    padded = _padded_all(weights * u, periodic)
    offsets = offsets_of(len(periodic))
    parts = [_window(padded[k], tuple(-o for o in offset), u.shape) for k, offset in enumerate(offsets)]
    return reduce(operator.add, parts)


def _padded_all(u: Array, periodic: tuple[bool, ...]) -> Array:
    for axis, wraps in enumerate(periodic, start=u.ndim - len(periodic)):
        u = _padded(u, axis, wraps)
    return u


def _window(padded: Array, offset: Offset, shape: tuple[int, ...]) -> Array:
    starts = (0, *(1 + o for o in offset))
    return jax.lax.slice(padded, starts, [a + n for a, n in zip(starts, shape, strict=True)])


def read_stencil(apply: Callable[[Array], Array], fields: int, active: Array, periodic: tuple[bool, ...]) -> Level:
    """The stencil of an operator that couples nearest neighbors only, from 3^dim products (or a few more).

    A product with ones at every third point of each axis contains no point twice: A. R. Curtis, M. J. D. Powell,
    J. K. Reid, J. Inst. Math. Appl. 13 (1974) 117. On a periodic axis the distance divides the number of points.
    """
    shape = active.shape
    counts = [_color_count(n, wraps) for n, wraps in zip(shape, periodic, strict=True)]
    places = np.indices(shape)
    cells = tuple(p % c for p, c in zip(places, counts, strict=True))
    own = np.asarray(np.ravel_multi_index(cells, tuple(counts)))
    colors, inside = [], []
    for offset in offsets_of(len(shape)):
        neighbor = [place + o for place, o in zip(places, offset, strict=True)]
        colors.append(own[tuple(j % n for j, n in zip(neighbor, shape, strict=True))])
        fits = [wraps | ((j >= 0) & (j < n)) for j, n, wraps in zip(neighbor, shape, periodic, strict=True)]
        inside.append(np.logical_and.reduce(fits))

    def product(color: Array) -> Array:
        chosen = jnp.where((jnp.asarray(own) == color) & active, 1.0, 0.0)
        return apply(jnp.broadcast_to(chosen, (fields, *shape)))

    products = jax.lax.map(product, jnp.arange(int(np.prod(counts))))
    picked = jnp.take_along_axis(products, jnp.asarray(np.stack(colors)[:, None]), axis=0)
    stencil = jnp.where(jnp.asarray(np.stack(inside)[:, None]), picked, 0.0)
    middle = len(colors) // 2
    return Level(stencil.at[middle].add(jnp.where(active, 0.0, 1.0)), active, periodic)


def _color_count(n: int, wraps: bool) -> int:
    return next(count for count in range(3, n + 1) if n % count == 0) if wraps else 3


@dataclass(frozen=True, eq=False)
class Transfer:
    """Interpolation from every second point: `weights`, shape (3^dim, fields, *fine shape), of the coarse points."""

    weights: Array
    periodic: tuple[bool, ...]

    def interpolate(self, coarse: Array) -> Array:
        """Coarse values to the fine grid."""
        widths = [(0, 0, 0), *((0, 1 if wraps else 0, 1) for wraps in self.periodic)]
        spread = jax.lax.pad(coarse, jnp.zeros((), coarse.dtype), widths)
        return gathered(self.weights, spread, self.periodic)

    def restrict(self, fine: Array) -> Array:
        """The transpose."""
        every_second = (slice(None), *(slice(None, None, 2),) * len(self.periodic))
        return scattered(self.weights, fine, self.periodic)[every_second]


def transfer_of(level: Level) -> Transfer:
    """Interpolation that leaves no residual at the points in between, so fluxes are continuous where coefficients jump.

    J. E. Dendy, J. Comput. Phys. 48 (1982) 366: between two coarse points the stencil is summed over the other axes;
    the centers of faces and cells follow from the points already interpolated.
    """
    dim, shape = len(level.shape), level.shape
    odd = [np.indices(shape)[axis] % 2 == 1 for axis in range(dim)]
    stencil = dict(zip(offsets_of(dim), level.stencil, strict=True))
    even = np.logical_and.reduce([~o for o in odd])
    weights: dict[Offset, Array] = {(0,) * dim: jnp.where(even & level.active, 1.0, jnp.zeros_like(level.diagonal))}
    for count in range(1, dim + 1):
        for between in itertools.combinations(range(dim), count):
            here = np.logical_and.reduce([odd[a] if a in between else ~odd[a] for a in range(dim)])
            found = _between(stencil, weights, between, level)
            for offset, weight in found.items():
                added = jnp.where(here & level.active, weight, 0.0)
                weights[offset] = weights[offset] + added if offset in weights else added
    return Transfer(jnp.stack([weights[offset] for offset in offsets_of(dim)]), level.periodic)


def _between(
    stencil: dict[Offset, Array], weights: dict[Offset, Array], axes: tuple[int, ...], level: Level
) -> dict[Offset, Array]:
    """Interpolation weights of the points that lie between coarse ones along `axes` (and on them along the others)."""
    collapsed: dict[Offset, Array] = {}
    for offset, values in stencil.items():
        kept = tuple(o if a in axes else 0 for a, o in enumerate(offset))
        collapsed[kept] = collapsed[kept] + values if kept in collapsed else values
    center = collapsed.pop((0,) * len(level.shape))
    center = jnp.where(center == 0, 1.0, center)
    found: dict[Offset, Array] = {}
    for step, coupling in collapsed.items():
        for offset, weight in weights.items():
            if any(o and (s or a not in axes) for a, (o, s) in enumerate(zip(offset, step, strict=True))):
                continue
            target = tuple(o + s for o, s in zip(offset, step, strict=True))
            if any(target[a] == 0 for a in axes):
                continue
            part = -coupling / center * _moved(weight, step, level.periodic)
            found[target] = found[target] + part if target in found else part
    return found


def _moved(values: Array, step: Offset, periodic: tuple[bool, ...]) -> Array:
    """The values `step` away from each point."""
    for axis, (o, wraps) in enumerate(zip(step, periodic, strict=True), start=1):
        if o:
            n = values.shape[axis]
            values = jax.lax.slice_in_dim(_padded(values, axis, wraps), 1 + o, 1 + o + n, axis=axis)
    return values


def coarsened(level: Level, transfer: Transfer) -> Level:
    """The operator restrict(A interpolate(.)) on every second point."""
    active = level.active[(slice(None, None, 2),) * len(level.shape)]
    return read_stencil(
        lambda u: transfer.restrict(level.apply(transfer.interpolate(u))),
        level.stencil.shape[1],
        active,
        level.periodic,
    )


def can_coarsen(shape: tuple[int, ...], periodic: tuple[bool, ...]) -> bool:
    """Whether every second point of each axis makes a grid again."""
    axes = zip(shape, periodic, strict=True)
    return all((n % 2 == 0 and n >= 8) if wraps else (n % 2 == 1 and n >= 5) for n, wraps in axes)


def coarsest_shape(shape: tuple[int, ...], periodic: tuple[bool, ...]) -> tuple[int, ...]:
    """Where halving ends: at few points, or at an axis that cannot be halved."""
    while int(np.prod(shape)) > FEW and can_coarsen(shape, periodic):
        shape = tuple(n // 2 if wraps else n // 2 + 1 for n, wraps in zip(shape, periodic, strict=True))
    return shape
