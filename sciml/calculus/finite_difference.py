"""The reading on a grid with bounded axes: finite differences of order 2 or 4 with conditions on the faces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, final

import jax.numpy as jnp
import numpy as np

from sciml.boundary import Condition, check_boundary
from sciml.calculus.base import Calculus, FieldArithmetic, total
from sciml.calculus.differences import matrix
from sciml.calculus.spectral import sample_on_grid, time_derivative
from sciml.domain import Grid
from sciml.errors import ConfigError
from sciml.functions import Coefficient, evaluate_on
from sciml.types import Array


@final
class Stencils:
    """The difference matrices of one grid, order 2 or 4, acting on the last `dim` axes of an array."""

    def __init__(self, grid: Grid, order: int) -> None:
        self.grid, self.order = grid, order

    def apply(self, values: Any, axis: int, derivative: int, move: Literal["", "to_face", "to_node"] = "") -> Array:
        """A derivative along one space axis, at the same points, or from points to midpoints or back."""
        n, periodic = self.grid.shape[axis], self.grid.box.periodic[axis]
        faces = n if periodic else n - 1
        sizes = {"": (n, 0.0, n, 0.0), "to_face": (n, 0.0, faces, 0.5), "to_node": (faces, 0.5, n, 0.0)}[move]
        rows = matrix(*sizes, self.grid.spacing[axis], derivative, self.order, periodic)
        place = axis - self.grid.dim
        return jnp.moveaxis(jnp.tensordot(rows, values, axes=(1, jnp.ndim(values) + place)), 0, place)

    def outward_weights(self, axis: int, side: str) -> np.ndarray:
        """Weights (n,) of the one-sided outward derivative at an end of a bounded axis."""
        n, step = self.grid.shape[axis], self.grid.spacing[axis]
        rows = matrix(n, 0.0, n, 0.0, step, 1, self.order, False)
        return rows[-1] if side == "+" else -rows[0]


@final
class GridField(FieldArithmetic):
    """Values at the grid points, or (`face` not None) at the midpoints along one axis, where gradients live."""

    def __init__(self, stencils: Stencils, values: Any, face: int | None = None) -> None:
        self.stencils, self.raw, self.face = stencils, values, face

    def at_nodes(self) -> Any:
        """Values at the grid points, interpolated there if need be."""
        return self.raw if self.face is None else self.stencils.apply(self.raw, self.face, 0, "to_node")

    def at_faces(self, axis: int) -> Any:
        """Values at the midpoints along `axis`."""
        return self.raw if self.face == axis else self.stencils.apply(self.at_nodes(), axis, 0, "to_face")

    def combine(self, function: Callable[..., Any], *others: Any) -> GridField:
        """Pointwise combination: at the midpoints of an axis if only those occur, else at the grid points."""
        fields = [self, *(o for o in others if isinstance(o, GridField))]
        faces = {f.face for f in fields} - {None}
        axis = faces.pop() if len(faces) == 1 else None
        place = (lambda f: f.at_nodes()) if axis is None else (lambda f: f.at_faces(axis))
        raw = [place(o) if isinstance(o, GridField) else o for o in (self, *others)]
        return GridField(self.stencils, function(*raw), axis)

    def linear(self, function: Callable[..., Any], other: Any) -> GridField:
        """Sum or difference."""
        return self.combine(function, other)

    def scaled(self, factor: Any) -> GridField:
        """Product with a number."""
        return GridField(self.stencils, factor * self.raw, self.face)


@final
class FiniteDifference(Calculus[GridField]):
    """Central differences inside, one-sided at bounded ends, all of the same order; periodic axes wrap around.

    `state` fills the points on the faces from the conditions, so an equation is to be used at the interior points
    only (`interior`). Gradients stand at midpoints, so `divergence(a * gradient)` is the compact conservative stencil.
    Raises `ConfigError` for an order other than 2 or 4, too few points, or conditions that do not fit the faces.
    """

    def __init__(
        self,
        grid: Grid,
        boundary: Mapping[str, Condition],
        order: int = 2,
        times: Any = None,
        time: Any = None,
    ) -> None:
        if order not in (2, 4) or min(grid.shape) < 2 * order:
            raise ConfigError(
                "finite differences are of order 2 or 4 and need at least twice as many points per axis",
                got=f"order {order} on a grid of shape {grid.shape}",
            )
        self.grid, self.dim, self.stencils = grid, grid.dim, Stencils(grid, order)
        self.boundary = check_boundary(grid.box, boundary)
        self._times, self._time = times, time

    @property
    def interior(self) -> tuple[slice, ...]:
        """The index of the points that are not on a bounded face, to be used after `...`."""
        return tuple(slice(None) if p else slice(1, -1) for p in self.grid.box.periodic)

    def field(self, values: Any) -> GridField:
        """The field of grid values, shape (..., *grid.shape), taken as they are."""
        return GridField(self.stencils, values)

    def state(self, values: Any) -> GridField:
        """The field of the unknown: its values on the bounded faces are replaced by what the conditions demand."""
        for face, condition in self.boundary.items():
            values = self._fill(values, "xyz".index(face[0]), face[1], condition)
        return GridField(self.stencils, values)

    def embed(self, interior: Any) -> GridField:
        """The state whose interior values are given, shape (..., *interior shape)."""
        lead = jnp.shape(interior)[: jnp.ndim(interior) - self.dim]
        full = jnp.zeros(lead + self.grid.shape, jnp.result_type(interior))
        return self.state(full.at[(..., *self.interior)].set(interior))

    def _fill(self, values: Any, axis: int, side: str, condition: Condition) -> Array:
        place, end = axis - self.dim, (0 if side == "-" else -1)
        slopes = self.stencils.outward_weights(axis, side)
        lead = jnp.moveaxis(jnp.asarray(values), place, -1)
        others = condition.beta * np.where(np.arange(len(slopes)) == end % len(slopes), 0.0, slopes)
        target = self._condition_value(condition, axis, end)
        edge = (target - lead @ others) / (condition.alpha + condition.beta * slopes[end])
        return jnp.moveaxis(lead.at[..., end].set(edge), -1, place)

    def _condition_value(self, condition: Condition, axis: int, end: int) -> Any:
        if not callable(condition.value):
            return condition.value
        points = np.take(self.grid.points, end, axis=axis)
        if self._times is None:
            return evaluate_on(condition.value, points, self._time)
        return jnp.stack([evaluate_on(condition.value, points, t) for t in jnp.asarray(self._times)])

    def values(self, u: Any) -> Any:
        """Values at the grid points."""
        return u.at_nodes() if isinstance(u, GridField) else jnp.broadcast_to(jnp.asarray(u), self.grid.shape)

    def partial(self, u: GridField, axis: int, order: int = 1) -> GridField:
        """Derivative at the grid points; higher ones than the second are repeated."""
        values = u.at_nodes()
        for part in [2] * (order // 2) + [1] * (order % 2):
            values = self.stencils.apply(values, axis, part)
        return GridField(self.stencils, values)

    def dt(self, u: GridField) -> GridField:
        """Finite differences over the saved times; raises `ConfigError` without `times`."""
        return GridField(self.stencils, time_derivative(u.at_nodes(), self._times))

    def gradient(self, u: GridField) -> tuple[GridField, ...]:
        """First derivatives at the midpoints along each axis."""
        nodes = u.at_nodes()
        return tuple(GridField(self.stencils, self.stencils.apply(nodes, a, 1, "to_face"), a) for a in range(self.dim))

    def divergence(self, flux: Sequence[GridField]) -> GridField:
        """Sum of the derivatives of the components: compact from midpoints, central from grid points."""
        return total([self._divergence_part(component, axis) for axis, component in enumerate(flux)])

    def _divergence_part(self, component: Any, axis: int) -> GridField:
        if not isinstance(component, GridField):
            return GridField(self.stencils, jnp.zeros(self.grid.shape))
        if component.face != axis:
            return self.partial(component, axis)
        return GridField(self.stencils, self.stencils.apply(component.raw, axis, 1, "to_node"))

    def laplacian(self, u: GridField) -> GridField:
        """Sum of second derivatives at the grid points."""
        return total([self.partial(u, axis, 2) for axis in range(self.dim)])

    def map(self, function: Callable[..., Any], *u: GridField) -> GridField:
        """Pointwise map."""
        return u[0].combine(function, *u[1:])

    def sample(self, coefficient: Coefficient) -> Any:
        """Numbers stay; functions are evaluated at the grid points."""
        return sample_on_grid(self, coefficient)

    @property
    def coordinates(self) -> tuple[GridField, ...]:
        """The coordinates of the grid points."""
        return tuple(self.field(jnp.asarray(self.grid.points[..., axis])) for axis in range(self.dim))

    @property
    def time(self) -> Any:
        """The time this reading stands at, or the saved times, broadcastable against trajectories."""
        return self._time if self._times is None else jnp.reshape(jnp.asarray(self._times), (-1,) + (1,) * self.dim)
