"""The reading on a grid with bounded axes: finite differences of order 2 or 4 with conditions on the faces."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np

from sciml.boundary import Boundary, Condition, check_boundary, conditions_for, natural_faces
from sciml.calculus.base import Calculus, FieldArithmetic, total
from sciml.calculus.differences import Move, conservative_matrix, matrix, multiply
from sciml.calculus.spectral import sample_on_grid, time_derivative
from sciml.domain import Grid
from sciml.errors import ConfigError
from sciml.functions import Coefficient, evaluate_on
from sciml.types import Array


def unknown_points(grid: Grid, boundary: Boundary, order: int) -> tuple[slice, ...]:
    """The points at which an equation is read, to be used after `...`: all but those that conditions fix."""
    natural = natural_faces(boundary, order)

    def inside(name: str) -> slice:
        return slice(0 if name + "-" in natural else 1, None if name + "+" in natural else -1)

    axes = zip(grid.box.names, grid.box.periodic, strict=True)
    return tuple(slice(0, None) if periodic else inside(name) for name, periodic in axes)


def cell_fractions(grid: Grid, boundary: Boundary, order: int) -> np.ndarray:
    """The share of a full cell that belongs to each unknown point: 1, half of it per natural face it lies on."""
    natural, fractions = natural_faces(boundary, order), np.ones(grid.shape)
    for face in natural:
        index: list[Any] = [slice(None)] * grid.dim
        index["xyz".index(face[0])] = 0 if face[1] == "-" else -1
        fractions[tuple(index)] *= 0.5
    return fractions[unknown_points(grid, boundary, order)]


@final
class Stencils:
    """The difference matrices of one grid, order 2 or 4, acting on the last `dim` axes of an array."""

    def __init__(self, grid: Grid, order: int) -> None:
        self.grid, self.order = grid, order

    def apply(self, values: Any, axis: int, derivative: int, move: Move = "") -> Array:
        """A derivative along one space axis, at the same points, or from points to midpoints or back.

        In order 2 the midpoints of a bounded axis stand between its two ends (`conservative_matrix`).
        """
        n, periodic, step = self.grid.shape[axis], self.grid.box.periodic[axis], self.grid.spacing[axis]
        if move and self.order == 2 and not periodic:
            return multiply(conservative_matrix(n, step, derivative, move), values, axis - self.grid.dim, False)
        faces = n if periodic else n - 1
        sizes = {"": (n, 0.0, n, 0.0), "to_face": (n, 0.0, faces, 0.5), "to_node": (faces, 0.5, n, 0.0)}[move]
        return multiply(matrix(*sizes, step, derivative, self.order, periodic), values, axis - self.grid.dim, periodic)

    def harmonic(self, values: Any, axis: int) -> Array:
        """The harmonic mean at the midpoints along an axis, in order 2; where the sign changes, the plain mean.

        It is the conductance of two half cells in series, so the flux through a jump midway between two points is
        exact. S. V. Patankar, Numerical Heat Transfer and Fluid Flow (1980), eq. (4.9).
        """
        same = jnp.all(values > 0) | jnp.all(values < 0)
        resistance = self.apply(1.0 / jnp.where(same, values, 1.0), axis, 0, "to_face")
        return jnp.where(same, 1.0 / resistance, self.apply(values, axis, 0, "to_face"))

    def outward_weights(self, axis: int, side: str) -> np.ndarray:
        """Weights (n,) of the one-sided outward derivative at an end of a bounded axis."""
        n, step = self.grid.shape[axis], self.grid.spacing[axis]
        rows = matrix(n, 0.0, n, 0.0, step, 1, self.order, False)
        return rows[-1] if side == "+" else -rows[0]


Slopes = Mapping[str, Any]
"""Face name to the outward derivative there, shape (..., the face without its axis)."""


@final
class GridField(FieldArithmetic):
    """Values at the grid points, or (`face` not None) at the midpoints along one axis, where gradients live.

    `slopes`: outward derivatives that conditions prescribe, on natural faces; `sampled`: a coefficient, not made from
    an unknown, whose product with a gradient takes harmonic means in order 2.
    """

    def __init__(
        self,
        stencils: Stencils,
        values: Any,
        face: int | None = None,
        slopes: Slopes | None = None,
        sampled: bool = False,
    ) -> None:
        self.stencils, self.raw, self.face, self.slopes, self.sampled = stencils, values, face, slopes or {}, sampled

    def at_nodes(self) -> Any:
        """Values at the grid points, interpolated there if need be."""
        return self.raw if self.face is None else self.stencils.apply(self.raw, self.face, 0, "to_node")

    def at_faces(self, axis: int) -> Any:
        """Values at the midpoints along `axis`."""
        return self.raw if self.face == axis else self.stencils.apply(self.at_nodes(), axis, 0, "to_face")

    def combine(self, function: Callable[..., Any], *others: Any) -> GridField:
        """Pointwise combination: at the midpoints of an axis if only those occur, else at the grid points."""
        operands = (self, *others)
        fields = [o for o in operands if isinstance(o, GridField)]
        faces = {f.face for f in fields} - {None}
        sampled = all(f.sampled for f in fields)
        if len(faces) != 1:
            raw = [o.at_nodes() if isinstance(o, GridField) else o for o in operands]
            return GridField(self.stencils, function(*raw), None, _chain_rule(function, operands), sampled)
        axis: Any = faces.pop()
        harmonic = function is operator.mul and self.stencils.order == 2

        def place(operand: Any) -> Any:
            if not isinstance(operand, GridField):
                return operand
            is_coefficient = harmonic and operand.sampled and operand.face is None
            return self.stencils.harmonic(operand.raw, axis) if is_coefficient else operand.at_faces(axis)

        return GridField(self.stencils, function(*map(place, operands)), axis)

    def linear(self, function: Callable[..., Any], other: Any) -> GridField:
        """Sum or difference."""
        return self.combine(function, other)

    def scaled(self, factor: Any) -> GridField:
        """Product with a number."""
        slopes = {face: factor * slope for face, slope in self.slopes.items()}
        return GridField(self.stencils, factor * self.raw, self.face, slopes, self.sampled)


def _chain_rule(function: Callable[..., Any], operands: Sequence[Any]) -> Slopes:
    """The outward derivatives of function(*operands) on the faces where those of every field are known."""
    fields = [o for o in operands if isinstance(o, GridField)]
    known = set.intersection(*(set(f.slopes) if f.face is None else set() for f in fields))
    slopes = {}
    for face in sorted(known):
        values = [_on_face(o.raw, face, o.stencils.grid.dim) if isinstance(o, GridField) else o for o in operands]
        if any(jnp.ndim(o) > 0 for o in operands if not isinstance(o, GridField)):
            continue
        places = [i for i, o in enumerate(operands) if isinstance(o, GridField)]

        def of_fields(*parts: Any, values: list[Any] = values, places: list[int] = places) -> Any:
            full = list(values)
            for i, part in zip(places, parts, strict=True):
                full[i] = part
            return function(*full)

        points = [jnp.asarray(values[i], float) for i in places]
        tangents = [jnp.broadcast_to(f.slopes[face], p.shape) for f, p in zip(fields, points, strict=True)]
        slopes[face] = jax.jvp(of_fields, points, tangents)[1]
    return slopes


def _end(face: str) -> tuple[int, int]:
    """Axis and index (0 or -1) of a face."""
    return "xyz".index(face[0]), 0 if face[1] == "-" else -1


def _on_face(values: Any, face: str, dim: int) -> Any:
    axis, end = _end(face)
    return jnp.take(values, end, axis=axis - dim)


def _put_on_face(values: Any, face: str, dim: int, new: Any) -> Array:
    axis, end = _end(face)
    values = jnp.asarray(values)
    place = values.ndim - dim + axis
    face_shape = values.shape[:place] + values.shape[place + 1 :]
    slab = jnp.expand_dims(jnp.broadcast_to(jnp.asarray(new, values.dtype), face_shape), place)
    return jax.lax.dynamic_update_slice_in_dim(values, slab, end % values.shape[place], place)


@final
class FiniteDifference(Calculus[GridField]):
    """Central differences inside, one-sided at bounded ends, all of the same order; periodic axes wrap around.

    An equation is to be used at the points `interior`. In order 2 these include the natural faces (Neumann or Robin
    conditions of all fields), where a field made by `state` has the prescribed slope, gradients end, and divergences
    balance half a cell: fluxes are conserved exactly. On the other faces `state` fills in what the conditions demand.
    Gradients stand at midpoints, so `divergence(a * gradient)` is the compact conservative stencil; in order 2 a
    sampled coefficient `a` of one sign enters by its harmonic mean, which keeps order 2 where it is smooth and is
    right where it jumps. Order 4 needs smooth coefficients.
    Raises `ConfigError` for an order other than 2 or 4, too few points, or conditions that do not fit the faces.
    """

    def __init__(
        self,
        grid: Grid,
        boundary: Boundary,
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
        self.natural = natural_faces(self.boundary, order)
        self._times, self._time = times, time

    @property
    def interior(self) -> tuple[slice, ...]:
        """The index of the points where the equation holds, to be used after `...`."""
        return unknown_points(self.grid, self.boundary, self.stencils.order)

    def field(self, values: Any) -> GridField:
        """The field of grid values, shape (..., *grid.shape), taken as they are."""
        return GridField(self.stencils, values)

    def state(self, values: Any, name: str | None = None) -> GridField:
        """The field of the unknown `name`: what the conditions demand is put on the bounded faces.

        `name` may be left out where every face has one condition for all fields.
        """
        conditions = conditions_for(self.boundary, name)
        for face, condition in conditions.items():
            if face not in self.natural:
                values = self._fill(values, face, condition)
        slopes = {face: self._slope(values, face, conditions[face]) for face in conditions if face in self.natural}
        return GridField(self.stencils, values, slopes=slopes)

    def embed(self, interior: Any, name: str | None = None) -> GridField:
        """The state whose interior values are given, shape (..., *interior shape)."""
        index = self.interior
        if index == (slice(0, None),) * self.dim:
            return self.state(interior, name)
        ends = [part.indices(n)[:2] for part, n in zip(index, self.grid.shape, strict=True)]
        widths = [(first, n - last) for (first, last), n in zip(ends, self.grid.shape, strict=True)]
        return self.state(jnp.pad(interior, [(0, 0)] * (jnp.ndim(interior) - self.dim) + widths), name)

    def _fill(self, values: Any, face: str, condition: Condition) -> Array:
        axis, end = _end(face)
        place = axis - self.dim
        slopes = self.stencils.outward_weights(axis, face[1])
        target = self._condition_value(condition, axis, end)
        if condition.beta == 0:
            return _put_on_face(values, face, self.dim, target / condition.alpha)
        lead = jnp.moveaxis(jnp.asarray(values), place, -1)
        others = condition.beta * np.where(np.arange(len(slopes)) == end % len(slopes), 0.0, slopes)
        edge = (target - lead @ others) / (condition.alpha + condition.beta * slopes[end])
        return jnp.moveaxis(lead.at[..., end].set(edge), -1, place)

    def _slope(self, values: Any, face: str, condition: Condition) -> Any:
        target = self._condition_value(condition, *_end(face))
        level = condition.alpha * _on_face(values, face, self.dim) if condition.alpha else 0.0
        return (target - level) / condition.beta

    def _condition_value(self, condition: Condition, axis: int, end: int) -> Any:
        if not callable(condition.value):
            return condition.value
        points = self.grid.points[(*(slice(None),) * axis, end)]
        if self._times is None:
            return evaluate_on(condition.value, points, self._time)
        return jnp.stack([evaluate_on(condition.value, points, t) for t in jnp.asarray(self._times)])

    def values(self, u: Any) -> Any:
        """Values at the grid points."""
        return u.at_nodes() if isinstance(u, GridField) else jnp.broadcast_to(jnp.asarray(u), self.grid.shape)

    def partial(self, u: GridField, axis: int, order: int = 1) -> GridField:
        """Derivative at the grid points; higher ones than the second are repeated."""
        values, known = u.at_nodes(), u.slopes
        for part in [2] * (order // 2) + [1] * (order % 2):
            values, known = self._derivative(values, axis, part, known), {}
        return GridField(self.stencils, values)

    def _derivative(self, values: Any, axis: int, order: int, slopes: Slopes) -> Array:
        """First or second derivative; where the outward slope is known, a mirrored point beyond the face gives it."""
        derivative, step = self.stencils.apply(values, axis, order), self.grid.spacing[axis]
        for face, slope in slopes.items():
            if _end(face)[0] != axis:
                continue
            end = _end(face)[1]
            if order == 1:
                new = slope if end else -slope
            else:
                edge, next_to = (jnp.take(values, i, axis=axis - self.dim) for i in (end, -2 if end else 1))
                new = 2.0 * (next_to - edge) / step**2 + 2.0 * slope / step
            derivative = _put_on_face(derivative, face, self.dim, new)
        return derivative

    def dt(self, u: GridField) -> GridField:
        """Finite differences over the saved times; raises `ConfigError` without `times`."""
        return GridField(self.stencils, time_derivative(u.at_nodes(), self._times))

    def gradient(self, u: GridField) -> tuple[GridField, ...]:
        """First derivatives at the midpoints along each axis."""
        nodes = u.at_nodes()
        return tuple(GridField(self.stencils, self._at_midpoints(nodes, a, u.slopes), a) for a in range(self.dim))

    def _at_midpoints(self, nodes: Any, axis: int, slopes: Slopes) -> Array:
        values = self.stencils.apply(nodes, axis, 1, "to_face")
        for face, slope in slopes.items():
            if _end(face)[0] == axis:
                values = _put_on_face(values, face, self.dim, slope if face[1] == "+" else -slope)
        return values

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
        sampled = sample_on_grid(self, coefficient)
        is_field = isinstance(sampled, GridField)
        return GridField(self.stencils, sampled.raw, sampled=True) if is_field else sampled

    @property
    def coordinates(self) -> tuple[GridField, ...]:
        """The coordinates of the grid points."""
        return tuple(self.field(jnp.asarray(self.grid.points[..., axis])) for axis in range(self.dim))

    @property
    def time(self) -> Any:
        """The time this reading stands at, or the saved times, broadcastable against trajectories."""
        return self._time if self._times is None else jnp.reshape(jnp.asarray(self._times), (-1,) + (1,) * self.dim)
