"""The reading on a periodic grid by Fourier series, and the Fourier symbol of a linear operator."""

from __future__ import annotations

import abc
import operator
from collections.abc import Callable, Sequence
from functools import cached_property, reduce, singledispatch
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np

from sciml.calculus.base import Calculus, FieldArithmetic, total
from sciml.calculus.differences import nodes_matrix
from sciml.calculus.series import GridSeries
from sciml.domain import Grid
from sciml.errors import ConfigError
from sciml.functions import Coefficient, Function, evaluate_on, takes_time
from sciml.types import Array

TIME_ORDER = 6


class WaveNumbers(abc.ABC):
    """The factors of a periodic grid in Fourier space, from its `orders`; numpy arrays if those are."""

    @property
    @abc.abstractmethod
    def whole(self) -> Grid:
        """The grid of all points."""

    @property
    @abc.abstractmethod
    def orders(self) -> tuple[Any, ...]:
        """Integer wave numbers per axis, broadcastable against the coefficients."""

    def multiplier(self, axis: int, order: int) -> Any:
        """(i k)^order along one axis, k in rad per length; odd orders drop the Nyquist mode of an even grid."""
        orders, n = self.orders[axis], self.whole.shape[axis]
        where = np.where if isinstance(orders, np.ndarray) else jnp.where
        k = 2 * np.pi * orders / self.whole.box.lengths[axis]
        if order % 2:
            k = where(abs(orders) * 2 == n, 0.0, k)
        power = (1j * k) ** order
        return power if order % 2 else power.real

    @cached_property
    def laplacian(self) -> Any:
        """-|k|^2, real."""
        return sum((self.multiplier(axis, 2) for axis in range(self.whole.dim)), np.zeros(1))

    @cached_property
    def inverse_laplacian(self) -> Any:
        """-1/|k|^2, and 0 for the mean."""
        where = np.where if isinstance(self.laplacian, np.ndarray) else jnp.where
        return where(self.laplacian == 0, 0.0, 1 / where(self.laplacian == 0, 1.0, self.laplacian))

    @cached_property
    def resolved(self) -> Any:
        """The 2/3 rule: true where every |wave number| is below a third of the points (Orszag 1971)."""
        masks = [abs(k) * 3 < n for k, n in zip(self.orders, self.whole.shape, strict=True)]
        return reduce(operator.and_, masks)


@final
class FourierBasis(WaveNumbers):
    """Wavenumbers and transforms of a periodic grid; coefficients are those of `rfftn`, shape (n_1, ..., n_d//2 + 1).

    Raises `ConfigError` for a box with a bounded axis.
    """

    def __init__(self, grid: Grid) -> None:
        if not all(grid.box.periodic):
            raise ConfigError(
                "the Fourier reading needs every axis to be periodic",
                got=grid.box,
                fix="FiniteDifference(grid, boundary) for a domain with bounded axes",
            )
        self.grid = grid

    @property
    def whole(self) -> Grid:
        """The grid itself."""
        return self.grid

    @cached_property
    def orders(self) -> tuple[np.ndarray, ...]:
        """In the order of `fftfreq`, on the last axis of `rfftfreq`."""
        dim, shape = self.grid.dim, self.grid.shape
        last = [np.fft.rfftfreq(n, 1 / n) if a == dim - 1 else np.fft.fftfreq(n, 1 / n) for a, n in enumerate(shape)]
        return tuple(k.reshape([-1 if a == axis else 1 for a in range(dim)]) for axis, k in enumerate(last))

    def forward(self, values: Any) -> Array:
        """Coefficients of grid values, over the last `dim` axes."""
        return jnp.fft.rfftn(values, axes=self._axes)

    def backward(self, coefficients: Any) -> Array:
        """Grid values of coefficients, over the last `dim` axes."""
        return jnp.fft.irfftn(coefficients, s=self.grid.shape, axes=self._axes)

    def of_real(self, coefficients: Any) -> Array:
        """The coefficients without what no real field has: of opposite waves in the plane 0 of the last axis (and in
        that of its Nyquist mode) each has to be the conjugate of the other.

        Grid values do not show such a part, so no nonlinear term holds it down where a linear one lets it grow.
        """
        planes = (0, -1) if self.grid.shape[-1] % 2 == 0 else (0,)
        axes = self._axes[1:]
        for plane in planes:
            values = coefficients[..., plane]
            opposite = jnp.roll(jnp.flip(values, axes), 1, axes) if axes else values
            coefficients = coefficients.at[..., plane].set(0.5 * (values + jnp.conj(opposite)))
        return coefficients

    def total(self, value: Array) -> Array:
        """A sum over the coefficients: all are here."""
        return value

    @property
    def _axes(self) -> tuple[int, ...]:
        return tuple(range(-self.grid.dim, 0))


@singledispatch
def basis_of(grid: Any) -> Any:
    """The basis of a periodic grid: a `FourierBasis`, or what the class of the grid has registered."""
    return FourierBasis(grid)


@final
class SpectralField(FieldArithmetic):
    """A field that holds grid values, Fourier coefficients or both, and transforms only when the other is asked for.

    Sums and derivatives stay coefficients, products stay values: a conservative Burgers stage costs two transforms.
    """

    def __init__(
        self, basis: Any, values: Any = None, coefficients: Any = None, dealias: bool = False
    ) -> None:
        self.basis, self._values, self._coefficients, self._dealias = basis, values, coefficients, dealias

    @property
    def values(self) -> Any:
        """Grid values, shape (..., *grid.shape)."""
        if self._values is None:
            self._values = self.basis.backward(self._coefficients)
        return self._values

    @property
    def coefficients(self) -> Any:
        """Fourier coefficients; those of a product are cut by the 2/3 rule."""
        if self._coefficients is None:
            coefficients = self.basis.forward(self._values)
            self._coefficients = jnp.where(self.basis.resolved, coefficients, 0.0) if self._dealias else coefficients
        return self._coefficients

    def combine(self, function: Callable[..., Any], *others: Any) -> SpectralField:
        """Pointwise combination of grid values."""
        raw = (o.values if isinstance(o, SpectralField) else o for o in others)
        return SpectralField(self.basis, values=function(self.values, *raw), dealias=True)

    def linear(self, function: Callable[..., Any], other: Any) -> SpectralField:
        """Sum or difference, in whichever space both already are."""
        if not isinstance(other, SpectralField):
            return SpectralField(self.basis, values=function(self.values, other), dealias=self._dealias)
        if self._values is not None and other._values is not None:
            dealias = self._dealias or other._dealias
            return SpectralField(self.basis, values=function(self._values, other._values), dealias=dealias)
        return SpectralField(self.basis, coefficients=function(self.coefficients, other.coefficients))

    def scaled(self, factor: Any) -> SpectralField:
        """Product with a number."""
        values, coefficients = (None if a is None else factor * a for a in (self._values, self._coefficients))
        return SpectralField(self.basis, values, coefficients, self._dealias)

    def multiplied(self, symbol: Any) -> SpectralField:
        """The field whose coefficients are multiplied by `symbol`."""
        return SpectralField(self.basis, coefficients=_product(symbol, self.coefficients))


def _product(symbol: Any, coefficients: Any) -> Any:
    """The product; where all of `symbol` is real or all imaginary, half of a complex product can be left out."""
    if isinstance(symbol, np.ndarray):
        if not np.any(symbol.imag):
            return jax.lax.complex(symbol.real * coefficients.real, symbol.real * coefficients.imag)
        if not np.any(symbol.real):
            return jax.lax.complex(-symbol.imag * coefficients.imag, symbol.imag * coefficients.real)
    return symbol * coefficients


@final
class Spectral(Calculus[SpectralField]):
    """Fourier series on a periodic grid, exact for band-limited fields; products follow the 2/3 rule.

    With `times` (increasing, shape (T,)) fields are trajectories of shape (T, *grid.shape), and `dt` is a finite
    difference of order 6 (or as many frames as there are) over the saved times.
    """

    def __init__(self, grid: Grid, times: Any = None, time: Any = None) -> None:
        self.grid, self.dim, self.basis = grid, grid.dim, basis_of(grid)
        self._times, self._time = times, time

    def field(self, values: Any) -> SpectralField:
        """The field of grid values, shape (*grid.shape) or (T, *grid.shape)."""
        return SpectralField(self.basis, values=values)

    def from_coefficients(self, coefficients: Any) -> SpectralField:
        """The field of Fourier coefficients as `rfftn` gives them."""
        return SpectralField(self.basis, coefficients=coefficients)

    def values(self, u: Any) -> Any:
        """Grid values."""
        return u.values if isinstance(u, SpectralField) else jnp.broadcast_to(jnp.asarray(u), self.grid.shape)

    def partial(self, u: SpectralField, axis: int, order: int = 1) -> SpectralField:
        """Multiplication by (i k)^order."""
        return u.multiplied(self.basis.multiplier(axis, order))

    def dt(self, u: SpectralField) -> SpectralField:
        """Finite differences over the saved times; raises `ConfigError` without `times`."""
        return SpectralField(self.basis, values=time_derivative(u.values, self._times))

    def gradient(self, u: SpectralField) -> tuple[SpectralField, ...]:
        """First derivatives along each axis."""
        return tuple(self.partial(u, axis) for axis in range(self.dim))

    def divergence(self, flux: Sequence[SpectralField]) -> SpectralField:
        """Sum of the derivatives of the components."""
        return total([self.partial(component, axis) for axis, component in enumerate(flux)])

    def laplacian(self, u: SpectralField) -> SpectralField:
        """Multiplication by -|k|^2."""
        return u.multiplied(self.basis.laplacian)

    def potential(self, f: SpectralField) -> SpectralField:
        """Division by -|k|^2, with mean zero."""
        return f.multiplied(self.basis.inverse_laplacian)

    def map(self, function: Callable[..., Any], *u: SpectralField) -> SpectralField:
        """Pointwise map of grid values."""
        return u[0].combine(function, *u[1:])

    def sample(self, coefficient: Coefficient) -> Any:
        """Numbers stay; functions are evaluated at the grid points."""
        return sample_on_grid(self, coefficient)

    @property
    def coordinates(self) -> tuple[SpectralField, ...]:
        """The coordinates of the grid points."""
        return tuple(self.field(jnp.asarray(self.grid.points[..., axis])) for axis in range(self.dim))

    @property
    def time(self) -> Any:
        """The time this reading stands at, or the saved times, broadcastable against trajectories."""
        return self._time if self._times is None else jnp.reshape(jnp.asarray(self._times), (-1,) + (1,) * self.dim)


@singledispatch
def fitted(grid: Any, values: Any) -> Any:
    """Sampled values as they stand on a grid: themselves, or the part of them that belongs to a part of a grid."""
    del grid
    return values


def sample_on_grid(d: Any, coefficient: Coefficient) -> Any:
    """A coefficient on the grid of the reading `d`: numbers stay; functions, arrays and series become fields."""
    if callable(coefficient):
        return d.field(_on_grid(coefficient, d))
    if isinstance(coefficient, GridSeries):
        return d.field(fitted(d.grid, coefficient.at(d.time)))
    if jnp.ndim(coefficient) == 0:
        return coefficient
    coefficient = fitted(d.grid, coefficient)
    if tuple(jnp.shape(coefficient)) != d.grid.shape:
        raise ConfigError(
            "a sampled coefficient has to stand on the grid of the reading",
            expected=f"shape {d.grid.shape}",
            got=f"shape {jnp.shape(coefficient)}",
        )
    return d.field(jnp.asarray(coefficient))


def _on_grid(function: Function, d: Any) -> Array:
    """Values of f(x), shape (*grid.shape), or of f(x, t): one frame per saved time where the reading has several."""
    if not takes_time(function) or d.time is None or jnp.ndim(d.time) == 0:
        return evaluate_on(function, d.grid.points, d.time)
    return jnp.stack([evaluate_on(function, d.grid.points, t) for t in jnp.ravel(d.time)])


def time_derivative(values: Any, times: Any) -> Array:
    """d/dt of a trajectory of shape (T, ...) by differences of order 6 (or what T frames allow)."""
    if times is None:
        raise ConfigError(
            "this reading stands at one time and has no time derivative",
            fix="give it the saved times: Spectral(grid, times=times)",
        )
    return jnp.tensordot(nodes_matrix(tuple(map(float, times)), 1, TIME_ORDER), values, axes=1)
