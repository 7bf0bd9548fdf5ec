"""A conservation law made discrete on cells: rates of change of the averages, speeds, and what went wrong where."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np

from sciml.calculus.finite_volume import CellAverages, FaceStates
from sciml.domain import Grid
from sciml.equations.base import FieldSet, add, read, stiff_part
from sciml.functions import takes_time
from sciml.problem import Problem
from sciml.solvers.finite_volume.cells import Ghosts, cell_averages, padded_points
from sciml.solvers.finite_volume.positivity import blended, pulled
from sciml.solvers.finite_volume.reconstruction import (
    GHOSTS,
    LIMITERS,
    RECONSTRUCTIONS,
    at_centers,
    averaged,
    window,
)
from sciml.solvers.finite_volume.riemann import RIEMANN, Faces, rusanov
from sciml.types import Array

MOST_GAIN = 2.0  # in speed, from the averages around to the end of a cell


class Speeds(NamedTuple):
    """`transport`: speed over length of the cell, the sum over the axes of its maxima; `diffusion`: largest decay rate.

    Shapes (), in 1/s.
    """

    transport: Array
    diffusion: Array


class Fault(NamedTuple):
    """`place`: -1 if all is well, else which cell and why (see `CellSystem.explain`); `measure`: the value there."""

    place: Array
    measure: Array


@final
class CellSystem:
    """The averages change by the fluxes through the faces, and by sources, reactions and diffusion in the cells.

    States have the shape (fields, *grid.shape). What keeps them positive can be left out (not `limited`), as long as
    they are smooth.
    """

    def __init__(
        self, problem: Problem, grid: Grid, reconstruction: str, limiter: str, riemann: str, limited: bool = True
    ) -> None:
        self.problem, self.law, self.grid, self.names = problem, problem.equation, grid, problem.field_names
        self.reconstruct, order = RECONSTRUCTIONS[reconstruction]
        self.limiter, self.riemann = LIMITERS[limiter], RIEMANN[riemann]
        self.reach = GHOSTS[reconstruction]
        self.sides = 4 if order > 2 and grid.dim > 1 else 0  # layers beside a face that its average flux depends on
        self.width = max(self.reach, self.sides)
        self.ghosts = Ghosts(problem, grid, self.width)
        states = jnp.ones((len(self.names), *grid.shape))
        self.is_positive = limited and bool(jax.eval_shape(self._positive, states))
        self._steady = {n: cell_averages(s, grid) for n, s in problem.source.items() if not takes_time(s)}

    @property
    def cells(self) -> int:
        """Number of cells."""
        return int(np.prod(self.grid.shape))

    def initial(self) -> Array:
        """The averages at time zero."""
        return jnp.stack([cell_averages(self.problem.initial[name], self.grid, 0.0) for name in self.names])

    def rate(self, u: Array, t: Any, step: Any) -> Array:
        """The rate of change of the averages; `step` is the time step, which positivity depends on."""
        padded = self.ghosts.fill(u, t)
        change = self._inside(self._cell_terms(padded, t)) + self._sources(t)
        shares = self._axis_speeds(u, t) if self.is_positive else jnp.ones(self.grid.dim)
        for axis, length in enumerate(self.grid.spacing):
            factor = 2 * step / length * jnp.sum(shares) / jnp.where(shares[axis] > 0, shares[axis], 1.0)
            flux = self._flux(padded, axis, t, factor)
            change = change - jnp.diff(flux, axis=axis + 1) / length
        return change

    def speeds(self, u: Array, t: Any) -> Speeds:
        """How fast the state changes, for the choice of the time step."""
        padded = self.ghosts.fill(u, t)
        rough = jnp.asarray((-1.0) ** np.indices(padded.shape[1:]).sum(axis=0))  # the fastest mode of diffusion
        change = jax.jvp(lambda v: self._cell_terms(v, t), (padded,), (jnp.broadcast_to(rough, padded.shape),))[1]
        return Speeds(jnp.sum(self._axis_speeds(u, t)), jnp.max(jnp.abs(self._inside(change))))

    def fault(self, u: Array, t: Any) -> Fault:
        """Whether averages are not finite or not positive, and where first."""
        quantities = self._positive(u)
        unfit = [~jnp.all(jnp.isfinite(u), axis=0), *(q < 0 for q in quantities.values())]
        flags = jnp.stack(unfit).ravel()
        values = jnp.stack([jnp.full(self.grid.shape, jnp.nan), *quantities.values()]).ravel()
        place = jnp.argmax(flags).astype(jnp.int32)
        return Fault(jnp.where(jnp.any(flags), place, -1), values[place])

    def fastest_cell(self, u: Array, t: Any) -> Array:
        """The place of the largest speed."""
        faces = (self._faces(axis, self.grid.points, t) for axis in range(self.grid.dim))
        rates = sum((f.speed(u) / length for f, length in zip(faces, self.grid.spacing, strict=True)), jnp.zeros(()))
        return jnp.argmax(jnp.nan_to_num(rates, nan=jnp.inf)).astype(jnp.int32)

    def _positive(self, u: Array) -> dict[str, Any]:
        d = FaceStates(self.grid.dim, self.grid.points)
        return self.law.positive(FieldSet({name: u[i] for i, name in enumerate(self.names)}), d)

    def _axis_speeds(self, u: Array, t: Any) -> Array:
        """Largest speed over length of the cell, shape (dim,)."""
        faces = (self._faces(axis, self.grid.points, t) for axis in range(self.grid.dim))
        return jnp.stack([jnp.max(f.speed(u)) / length for f, length in zip(faces, self.grid.spacing, strict=True)])

    def _faces(self, axis: int, points: Any, t: Any) -> Faces:
        return Faces(self.law, self.names, axis, FaceStates(self.grid.dim, points, t))

    def _cell_terms(self, padded: Array, t: Any) -> Array:
        points = padded_points(self.grid, (self.width,) * self.grid.dim)
        d = CellAverages(self.grid.spacing, points, t)
        fields = {name: padded[i] for i, name in enumerate(self.names)}
        terms: Mapping[str, Any] = add(stiff_part(self.law, fields, d), read(self.law.nonstiff, fields, d))
        return jnp.stack([jnp.broadcast_to(terms.get(name, 0.0), padded.shape[1:]) for name in self.names])

    def _sources(self, t: Any) -> Any:
        known = {n: self._steady[n] if n in self._steady else cell_averages(s, self.grid, t)
                 for n, s in self.problem.source.items()}  # fmt: skip
        zero = jnp.zeros(self.grid.shape)
        return jnp.stack([known.get(name, zero) for name in self.names]) if known else 0.0

    def _inside(self, padded: Array) -> Array:
        for axis, n in enumerate(self.grid.shape):
            padded = window(padded, axis + 1, self.width, n)
        return padded

    def _beside(self, values: Array, axis: int, has: int, keeps: int) -> Array:
        """Fewer layers of ghost cells beside the faces at right angles to an axis."""
        for other, n in enumerate(self.grid.shape):
            if other != axis:
                values = window(values, other + 1, has - keeps, n + 2 * keeps)
        return values

    def _quantities(self, faces: Faces) -> Any:
        return lambda state: list(self.law.positive(faces.fields(state), faces.d).values())

    def _flux(self, padded: Array, axis: int, t: Any, factor: Any) -> Array:
        """The mean flux through the n + 1 faces along an axis, shape (fields, ..., n + 1, ...)."""
        n, place, across = self.grid.shape[axis], axis + 1, [a for a in range(self.grid.dim) if a != axis]
        kept = self._beside(padded, axis, self.width, self.sides)
        means = window(kept, place, self.width - 1, n + 2)
        near = window(kept, place, self.width - self.reach, n + 2 * self.reach)
        lower, upper = self.reconstruct(near, place, self.limiter)
        faces = self._faces(axis, padded_points(self.grid, (self.sides // 2,) * self.grid.dim, axis), t)
        quantities = self._quantities(faces)
        if self.is_positive:
            lower, upper = self._admissible(means, jnp.stack([lower, upper], axis=1), axis, t)
        left, right = window(upper, place, 0, n + 1), window(lower, place, 1, n + 1)
        if self.sides:
            left, right = self._at_centers(left, axis, quantities), self._at_centers(right, axis, quantities)
        flux = self.riemann(faces, left, right)
        if self.sides:
            for other in across:
                flux = averaged(flux, other + 1)
        if not self.is_positive:
            return flux
        means = self._beside(means, axis, self.sides, 0)
        cells = window(means, place, 0, n + 1), window(means, place, 1, n + 1)
        faces = self._faces(axis, padded_points(self.grid, (0,) * self.grid.dim, axis), t)
        first = rusanov(faces, *cells)
        return blended(self._quantities(faces), cells, (first, flux), factor)

    def _admissible(self, means: Array, ends: Array, axis: int, t: Any) -> tuple[Array, Array]:
        """Both ends of the cells, positive, and not much faster than the cells around: a shallow end with the momentum
        of a deep cell would be."""
        widths = [1 if a == axis else self.sides for a in range(self.grid.dim)]
        faces = self._faces(axis, padded_points(self.grid, widths), t)
        ends = pulled(self._quantities(faces), means[:, None], ends)
        speed = faces.speed(means)
        first, last = (jax.lax.slice_in_dim(speed, k, k + 1, axis=axis) for k in (0, speed.shape[axis] - 1))
        n = speed.shape[axis]
        padded = jnp.concatenate([first, speed, last], axis)
        around = jnp.maximum(jnp.maximum(window(padded, axis, 0, n), speed), window(padded, axis, 2, n))
        ends = jnp.where(faces.speed(ends) > MOST_GAIN * around, means[:, None], ends)
        return ends[:, 0], ends[:, 1]

    def _at_centers(self, means: Array, axis: int, quantities: Any) -> Array:
        """States in the middle of the faces from means over them."""
        found = means
        for other in range(self.grid.dim):
            if other != axis:
                found = at_centers(found, other + 1)
        safe = self._beside(means, axis, self.sides, self.sides // 2)
        return pulled(quantities, safe, found) if self.is_positive else found
