"""Averages over cells, and the ghost cells around the box."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np

from sciml.boundary import Condition, dirichlet, neumann
from sciml.domain import Box, Grid
from sciml.equations.conservation import ConservationLaw
from sciml.functions import evaluate_on
from sciml.problem import Problem
from sciml.types import Array

NODES, WEIGHTS = np.polynomial.legendre.leggauss(3)  # exact for polynomials of degree 5


def cell_averages(function: Any, grid: Grid, t: Any = None) -> Array:
    """Averages of a function over the cells around the points of a grid, shape (*grid.shape,); 3 points per axis."""
    index = np.asarray(list(itertools.product(range(3), repeat=grid.dim)))
    offsets = jnp.asarray(0.5 * NODES[index] * np.asarray(grid.spacing))
    points = jnp.asarray(grid.points)
    values = jax.lax.map(lambda o: evaluate_on(function, wrapped(points + o, grid.box), t), offsets)
    return jnp.tensordot(jnp.asarray((WEIGHTS / 2)[index].prod(axis=1)), values, 1)


def wrapped(points: Any, box: Box) -> Any:
    """Points, shape (..., dim), moved into the box along its periodic axes."""
    low, length = np.asarray(box.lower), np.asarray(box.lengths)
    return points - length * np.asarray(box.periodic) * ((points - low) // length)


def padded_points(grid: Grid, widths: Sequence[int], face_axis: int | None = None) -> np.ndarray:
    """Centers of the cells and of ghost cells, shape (*padded shape, dim), or of the n + 1 faces along one axis."""
    axes = []
    for axis, (points, step, width) in enumerate(zip(grid.axes, grid.spacing, widths, strict=True)):
        count, start = len(points), points[0]
        if axis == face_axis:
            axes.append(start - step / 2 + step * np.arange(count + 1))
        else:
            axes.append(start + step * np.arange(-width, count + width))
    return wrapped(np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1), grid.box)


def wall(law: ConservationLaw, axis: int) -> dict[str, Condition]:
    """The conditions on a face at right angles to `axis` that reflects: what has a direction is mirrored."""
    mirrored = law.reflect(axis)
    return {f.name: dirichlet(0.0) if f.name in mirrored else neumann(0.0) for f in law.fields}


@final
class Ghosts:
    """Fills `width` layers of cells around the box from the conditions on its faces.

    Where all fields of a face have a Dirichlet condition the given state flows in; where all have a Neumann condition
    the state inside is continued (outflow). Where fields differ, the state is mirrored about the values or slopes
    given, as at a reflecting wall (see `wall`).
    """

    def __init__(self, problem: Problem, grid: Grid, width: int) -> None:
        self.grid, self.width, self.names = grid, width, problem.field_names
        self.conditions = {face: self._by_field(c) for face, c in problem.boundary.items()}

    def _by_field(self, conditions: Any) -> list[Condition]:
        return [conditions if isinstance(conditions, Condition) else conditions[name] for name in self.names]

    def fill(self, u: Array, t: Any) -> Array:
        """Averages (fields, *grid.shape) with ghost cells: (fields, *padded shape)."""
        for axis, periodic in enumerate(self.grid.box.periodic):
            if periodic:
                widths = [(self.width,) * 2 if a == axis + 1 else (0, 0) for a in range(u.ndim)]
                u = jnp.pad(u, widths, mode="wrap")
                continue
            lower, upper = (self._outside(u, axis, side, t) for side in "-+")
            u = jnp.concatenate([jnp.flip(lower, axis + 1), u, upper], axis + 1)
        return u

    def _outside(self, u: Array, axis: int, side: str, t: Any) -> Array:
        """The cells beyond a face, the nearest first."""
        n = u.shape[axis + 1]
        first = 0 if side == "-" else n - self.width
        inside = jax.lax.slice_in_dim(u, first, first + self.width, axis=axis + 1)
        inside = inside if side == "-" else jnp.flip(inside, axis + 1)
        conditions = self.conditions[f"{self.grid.box.names[axis]}{side}"]
        mixed = len({c.beta == 0 for c in conditions}) > 1
        distance = jnp.arange(1, self.width + 1) * self.grid.spacing[axis]
        distance = distance.reshape([-1 if a == axis else 1 for a in range(self.grid.dim)])
        fields = []
        for values, condition in zip(inside, conditions, strict=True):
            given = self._given(condition, axis, side, t)
            if condition.beta == 0:
                filled = 2 * given - values if mixed else jnp.broadcast_to(given, values.shape)
            elif mixed:
                filled = values + given * (2 * distance - self.grid.spacing[axis])
            else:
                filled = jax.lax.slice_in_dim(values, 0, 1, axis=axis) + given * distance
            fields.append(filled)
        return jnp.stack(fields)

    def _given(self, condition: Condition, axis: int, side: str, t: Any) -> Any:
        """What a condition demands on the cells next to a face: a number, or an array with one entry along `axis`."""
        factor = 1.0 / (condition.alpha or condition.beta)
        if not callable(condition.value):
            return factor * condition.value
        widths = [self.width if a < axis else 0 for a in range(self.grid.dim)]
        points = padded_points(self.grid, widths, face_axis=axis)
        face = np.take(points, [0 if side == "-" else -1], axis=axis)
        return factor * evaluate_on(condition.value, face, t)
