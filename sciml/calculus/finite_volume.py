"""The readings on cells: states at the faces, where transport is read, and averages, where all else is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

import jax.numpy as jnp

from sciml.calculus.base import Calculus, FieldArithmetic, total
from sciml.errors import ConfigError
from sciml.functions import Coefficient, evaluate_on, is_sampled
from sciml.types import Array


@final
class Transport(FieldArithmetic):
    """A divergence that is not taken: its flux at the faces, one component per axis, added and scaled as it is."""

    def __init__(self, flux: tuple[Any, ...]) -> None:
        self.flux = flux

    def combine(self, function: Callable[..., Any], *others: Any) -> Transport:
        """Raises `ConfigError`: a product with a divergence has no flux."""
        raise ConfigError(
            "a derivative multiplied by a field is not the divergence of a flux",
            expected="transport in `flux`, such as u^2/2 for u u_x",
            reason="finite volumes change averages by what passes through the faces of the cells, and by nothing else",
            fix='def flux(self, u, d): return {"u": (0.5 * u.u * u.u,) * d.dim}',
        )

    def linear(self, function: Callable[..., Any], other: Any) -> Transport:
        """A sum of divergences is the divergence of the sum; terms without derivative are read elsewhere."""
        parts = other.flux if isinstance(other, Transport) else (0.0,) * len(self.flux)
        return Transport(tuple(function(a, b) for a, b in zip(self.flux, parts, strict=True)))

    def scaled(self, factor: Any) -> Transport:
        """The flux times a number."""
        return Transport(tuple(factor * part for part in self.flux))


@final
class FaceStates(Calculus[Array]):
    """States at given points, from which fluxes are computed: arrays without derivatives.

    `divergence` gives a `Transport`; diffusive terms vanish, because `CellAverages` reads them. `points` has the shape
    (*shape, dim) of the states.
    """

    def __init__(self, dim: int, points: Any, time: Any = None) -> None:
        self.dim, self._points, self._time = dim, points, time

    def field(self, values: Any) -> Array:
        """The values."""
        return values

    def values(self, u: Any) -> Any:
        """The values."""
        return u

    def partial(self, u: Array, axis: int, order: int = 1) -> Any:
        """Transport along one axis if of order 1."""
        _check_order(order)
        return Transport(tuple(u if a == axis and order == 1 else 0.0 * u for a in range(self.dim)))

    def dt(self, u: Array) -> Array:
        """Raises `ConfigError`: states have no history."""
        raise ConfigError("a state at the faces has no time derivative")

    def gradient(self, u: Array) -> tuple[Array, ...]:
        """Zero: diffusion is read on averages."""
        return (jnp.zeros_like(u),) * self.dim

    def divergence(self, flux: Sequence[Any]) -> Transport:
        """The flux itself."""
        return Transport(tuple(flux))

    def laplacian(self, u: Array) -> Transport:
        """No transport."""
        return Transport((jnp.zeros_like(u),) * self.dim)

    def map(self, function: Callable[..., Any], *u: Array) -> Array:
        """Pointwise map."""
        return function(*u)

    def sample(self, coefficient: Coefficient) -> Any:
        """Numbers stay, functions are evaluated at the points; raises `ConfigError` for an array on the grid."""
        return _sampled(coefficient, self._points, self._time)

    @property
    def coordinates(self) -> tuple[Array, ...]:
        """The coordinates of the points."""
        return tuple(self._points[..., axis] for axis in range(self.dim))

    @property
    def time(self) -> Any:
        """The time of the states."""
        return self._time


@final
class Slope(FieldArithmetic):
    """The derivative along one axis at the upper faces of the cells; a factor is averaged to the faces."""

    def __init__(self, values: Any, axis: int) -> None:
        self.raw, self.axis = values, axis

    def combine(self, function: Callable[..., Any], *others: Any) -> Slope:
        """Pointwise at the faces."""
        return Slope(function(self.raw, *(self._at_faces(other) for other in others)), self.axis)

    def linear(self, function: Callable[..., Any], other: Any) -> Slope:
        """Sum or difference of slopes; raises `ConfigError` for a slope plus averages, of which transport is a part."""
        if not isinstance(other, Slope) and jnp.ndim(other):
            raise ConfigError(
                "a diffusive flux is added to another one inside one divergence",
                expected="transport in `flux`, diffusion in a divergence of its own",
                reason="finite volumes read transport from states at the faces and diffusion from averages",
            )
        return self.combine(function, other)

    def scaled(self, factor: Any) -> Slope:
        """Product with a number."""
        return Slope(factor * self.raw, self.axis)

    def _at_faces(self, other: Any) -> Any:
        if isinstance(other, Slope):
            return other.raw
        return 0.5 * (other + _ahead(other, self.axis, 1)) if jnp.ndim(other) else other


@final
class CellAverages(Calculus[Array]):
    """Averages over cells, ghost cells included: sources, reactions and diffusion, which is differenced over the faces.

    Arrays of shape (*padded shape,); the outermost two layers of cells get no meaning. Diffusion is of order 4, a
    product of averages stands for the average of the product (order 2). First derivatives vanish: transport is read
    by `FaceStates`. `points` are the centers, shape (*padded shape, dim).
    """

    def __init__(self, spacing: Sequence[float], points: Any, time: Any = None) -> None:
        self.dim, self.spacing, self._points, self._time = len(spacing), tuple(spacing), points, time

    def field(self, values: Any) -> Array:
        """The averages."""
        return values

    def values(self, u: Any) -> Any:
        """The averages."""
        return u

    def partial(self, u: Array, axis: int, order: int = 1) -> Array:
        """The second derivative; zero for the first."""
        _check_order(order)
        return jnp.zeros_like(u) if order == 1 else self._difference(self._slope(u, axis).raw, axis)

    def dt(self, u: Array) -> Array:
        """Raises `ConfigError`: averages have no history."""
        raise ConfigError("averages over cells have no time derivative here")

    def gradient(self, u: Array) -> tuple[Slope, ...]:
        """Slopes at the faces."""
        return tuple(self._slope(u, axis) for axis in range(self.dim))

    def divergence(self, flux: Sequence[Any]) -> Array:
        """Differences of slopes; what has no slope is transport, read elsewhere."""
        parts = [self._difference(f.raw, f.axis) for f in flux if isinstance(f, Slope)]
        return total(parts) if parts else jnp.zeros(self._points.shape[:-1])

    def laplacian(self, u: Array) -> Array:
        """Sum of second derivatives."""
        return self.divergence(self.gradient(u))

    def map(self, function: Callable[..., Any], *u: Array) -> Array:
        """Pointwise map."""
        return function(*u)

    def sample(self, coefficient: Coefficient) -> Any:
        """Numbers stay, functions are evaluated at the centers; raises `ConfigError` for an array on the grid."""
        return _sampled(coefficient, self._points, self._time)

    @property
    def coordinates(self) -> tuple[Array, ...]:
        """The coordinates of the centers."""
        return tuple(self._points[..., axis] for axis in range(self.dim))

    @property
    def time(self) -> Any:
        """The time of the averages."""
        return self._time

    def _slope(self, u: Array, axis: int) -> Slope:
        """(15 (u_1 - u_0) - (u_2 - u_-1)) / (12 h), exact for averages of polynomials of degree 4."""
        near, wide = _ahead(u, axis, 1) - u, _ahead(u, axis, 2) - _ahead(u, axis, -1)
        return Slope((15 * near - wide) / (12 * self.spacing[axis]), axis)

    def _difference(self, faces: Array, axis: int) -> Array:
        return (faces - _ahead(faces, axis, -1)) / self.spacing[axis]


def _ahead(u: Any, axis: int, cells: int) -> Array:
    """The values that many cells further along an axis."""
    return jnp.roll(u, -cells, axis)


def _check_order(order: int) -> None:
    if order > 2:
        raise ConfigError(
            "finite volumes read first and second derivatives only",
            got=f"a derivative of order {order}",
            fix="method: {kind: etdrk4} on a periodic box",
        )


def _sampled(coefficient: Coefficient, points: Any, time: Any) -> Any:
    if callable(coefficient):
        return evaluate_on(coefficient, points, time)
    if is_sampled(coefficient):
        raise ConfigError(
            "finite volumes evaluate coefficients at the faces of the cells, where an array has no values",
            expected="a number or a function f(x)",
            got=f"an array of shape {jnp.shape(coefficient)}",
            fix="sciml.sampling.GridFunction(grid, values)",
        )
    return coefficient
