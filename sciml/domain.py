"""Boxes and the regular grids on them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sciml.errors import ConfigError
from sciml.types import register_static

AXIS_NAMES = ("x", "y", "z")
HALVED = np.asarray([-1, 1, 9, 14, 9, 1, -1]) / 32
"""Weights of averages over cells in one over a cell of twice their width around the same point: of order 4, and every
cell counts once in all."""


@register_static
@dataclass(frozen=True)
class Box:
    """The product of intervals [lower_i, upper_i], each periodic or bounded.

    Lengths are in `unit`. Raises `ConfigError` for unequal lengths of the tuples, more than three axes,
    or an interval that is empty.
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    periodic: tuple[bool, ...]
    unit: str = "m"

    def __post_init__(self) -> None:
        if not len(self.lower) == len(self.upper) == len(self.periodic) <= len(AXIS_NAMES):
            raise ConfigError(
                "a box needs one lower bound, upper bound and periodic flag per axis, for at most 3 axes",
                got=self,
                fix="Box(lower=(0.0,), upper=(1.0,), periodic=(True,))",
            )
        for name, low, high in zip(self.names, self.lower, self.upper, strict=True):
            if not low < high:
                raise ConfigError(f"axis {name} is empty", expected="lower < upper", got=f"[{low}, {high}]")

    @property
    def dim(self) -> int:
        """Number of axes."""
        return len(self.lower)

    @property
    def names(self) -> tuple[str, ...]:
        """Axis names, the first `dim` of x, y, z."""
        return AXIS_NAMES[: self.dim]

    @property
    def lengths(self) -> tuple[float, ...]:
        """Edge lengths."""
        return tuple(b - a for a, b in zip(self.lower, self.upper, strict=True))

    @property
    def faces(self) -> tuple[str, ...]:
        """Names of the bounded faces, such as `x-` (lower) and `x+` (upper)."""
        bounded = (n for n, periodic in zip(self.names, self.periodic, strict=True) if not periodic)
        return tuple(f"{name}{side}" for name in bounded for side in "-+")


@register_static
@dataclass(frozen=True)
class Grid:
    """Equally spaced points of a box: n per periodic axis without its end, n per bounded axis with both ends.

    With `cells`, the box is divided into n cells per axis and the points are their centers: the grid of averages over
    cells, which has no point on a face. Without, an average belongs to the cell around a point (periodic axes only).
    Raises `ConfigError` when the number of axes differs from the box or an axis has fewer than 4 points.
    """

    box: Box
    shape: tuple[int, ...]
    cells: bool = False

    def __post_init__(self) -> None:
        if len(self.shape) != self.box.dim or min(self.shape) < 4:
            raise ConfigError(
                "a grid needs at least 4 points on each axis of its box",
                expected=f"{self.box.dim} integers, each at least 4",
                got=self.shape,
            )

    @property
    def dim(self) -> int:
        """Number of axes."""
        return self.box.dim

    @property
    def spacing(self) -> tuple[float, ...]:
        """Distance of neighboring points along each axis."""
        return tuple(length / n for length, n in zip(self.box.lengths, self.intervals, strict=True))

    @property
    def intervals(self) -> tuple[int, ...]:
        """Number of spacings that each axis is long."""
        return tuple(n if p or self.cells else n - 1 for n, p in zip(self.shape, self.box.periodic, strict=True))

    @cached_property
    def axes(self) -> tuple[np.ndarray, ...]:
        """Coordinates along each axis, shapes (n_i,)."""
        starts = zip(self.box.lower, self.spacing, self.shape, strict=True)
        offset = 0.5 if self.cells else 0.0
        return tuple(low + step * (np.arange(n) + offset) for low, step, n in starts)

    @cached_property
    def points(self) -> np.ndarray:
        """Coordinates of all points, shape (*shape, dim)."""
        return np.stack(np.meshgrid(*self.axes, indexing="ij"), axis=-1)

    def described(self, place: int) -> str:
        """The point or cell of a number, in the order of the flattened grid, in words."""
        index = np.unravel_index(place, self.shape)
        where = ", ".join(f"{n} = {axis[i]:.4g}" for n, axis, i in zip(self.box.names, self.axes, index, strict=True))
        return f"in cell {', '.join(str(int(i)) for i in index)} at {where} {self.box.unit}"

    def refined(self, factor: int = 2) -> Grid:
        """The grid with `factor` times as many intervals; it contains the points, or divides the cells, of this one."""
        new = (factor * k + n - k for n, k in zip(self.shape, self.intervals, strict=True))
        return Grid(self.box, tuple(new), self.cells)

    def restricted(self, values: np.ndarray, factor: int = 2, *, averages: bool = False) -> np.ndarray:
        """Values on `refined(factor)`, shape (..., *finer shape), on this grid: those at its points, or averages.

        `averages`: without `cells`, too, they are averages over the cells around the points, on a periodic box; those
        of this grid then end in the middle of finer ones if `factor` is even.
        """
        if averages and not self.cells:
            return self._averaged(values, factor)
        if not self.cells:
            return values[(..., *(slice(None, None, factor),) * self.dim)]
        lead = values.shape[: values.ndim - self.dim]
        blocks = values.reshape(*lead, *(m for n in self.shape for m in (n, factor)))
        return blocks.mean(axis=tuple(len(lead) + 2 * axis + 1 for axis in range(self.dim)))

    def _averaged(self, values: np.ndarray, factor: int) -> np.ndarray:
        if factor == 1:
            return values
        if factor % 2 == 0 and factor > 2:
            return self._averaged(self.refined(2)._averaged(values, factor // 2), 2)
        weights = HALVED if factor == 2 else np.full(factor, 1 / factor)
        for axis in range(-self.dim, 0):
            offsets = range(-(len(weights) // 2), len(weights) // 2 + 1)
            rolled = np.stack([np.roll(values, -k, axis) for k in offsets])
            values = np.take(np.tensordot(weights, rolled, 1), np.arange(0, values.shape[axis], factor), axis)
        return values
