"""The Fourier symbol of a linear operator with constant coefficients, read from the text of its equation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, final

from sciml.calculus.base import Calculus, FieldArithmetic, is_number, total
from sciml.calculus.spectral import FourierBasis
from sciml.domain import Grid
from sciml.errors import ConfigError
from sciml.functions import Coefficient, is_sampled


def _refuse(what: str) -> NoReturn:
    raise ConfigError(
        "the stiff part of an equation has to be linear with constant coefficients",
        got=what,
        reason="exponential and IMEX integrators treat it by its Fourier symbol",
        fix="move this term to `nonstiff` or `flux`",
    )


@final
class SymbolField(FieldArithmetic):
    """A linear operator applied to a Fourier mode: the factor the mode is multiplied by, per wave number."""

    def __init__(self, factor: Any) -> None:
        self.factor = factor

    def combine(self, function: Callable[..., Any], *others: Any) -> NoReturn:
        """Always raises `ConfigError`: products are not linear."""
        _refuse("a product, power or quotient of fields")

    def linear(self, function: Callable[..., Any], other: Any) -> SymbolField:
        """Sum or difference of two operators, or with the number zero."""
        if is_number(other) and not isinstance(other, SymbolField):
            if isinstance(other, (int, float)) and other == 0:
                return SymbolField(function(self.factor, 0.0))
            _refuse("a constant term")
        return SymbolField(function(self.factor, other.factor))

    def scaled(self, factor: Any) -> SymbolField:
        """Product with a number."""
        return SymbolField(factor * self.factor)


@final
class Symbol(Calculus[SymbolField]):
    """Fields are Fourier multipliers on the wave numbers of a periodic grid; `field(1.0)` is the identity."""

    def __init__(self, grid: Grid) -> None:
        self.grid, self.dim, self.basis = grid, grid.dim, FourierBasis(grid)

    def field(self, values: Any) -> SymbolField:
        """The operator that multiplies by a number."""
        return SymbolField(values)

    def values(self, u: Any) -> Any:
        """The multiplier, broadcastable against the coefficients of `rfftn`."""
        return u.factor if isinstance(u, SymbolField) else u

    def partial(self, u: SymbolField, axis: int, order: int = 1) -> SymbolField:
        """(i k)^order."""
        return SymbolField(u.factor * self.basis.multiplier(axis, order))

    def dt(self, u: SymbolField) -> NoReturn:
        """Always raises `ConfigError`."""
        _refuse("a time derivative")

    def gradient(self, u: SymbolField) -> tuple[SymbolField, ...]:
        """i k per axis."""
        return tuple(self.partial(u, axis) for axis in range(self.dim))

    def divergence(self, flux: Sequence[SymbolField]) -> SymbolField:
        """Sum of i k times the components."""
        return total([self.partial(component, axis) for axis, component in enumerate(flux)])

    def laplacian(self, u: SymbolField) -> SymbolField:
        """-|k|^2."""
        return SymbolField(u.factor * self.basis.laplacian)

    def potential(self, f: SymbolField) -> SymbolField:
        """-1/|k|^2, and 0 for the mean."""
        return SymbolField(f.factor * self.basis.inverse_laplacian)

    def map(self, function: Callable[..., Any], *u: SymbolField) -> NoReturn:
        """Always raises `ConfigError`."""
        _refuse("a nonlinear map")

    def sample(self, coefficient: Coefficient) -> Any:
        """Numbers stay; raises `ConfigError` for a coefficient that varies in space."""
        if callable(coefficient) or is_sampled(coefficient):
            _refuse("a coefficient that varies in space")
        return coefficient

    @property
    def coordinates(self) -> tuple[SymbolField, ...]:
        """Raises `ConfigError`: coordinates are not constant coefficients."""
        _refuse("the coordinates")

    @property
    def time(self) -> Any:
        """Raises `ConfigError`: time is not a constant coefficient."""
        _refuse("the time")
