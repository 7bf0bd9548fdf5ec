"""Where the unknowns of a solver live: Fourier coefficients, interior grid values, or coefficients in modes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, final

import jax.numpy as jnp

from sciml.boundary import Boundary
from sciml.calculus import FiniteDifference, Spectral
from sciml.calculus.finite_difference import cell_fractions, unknown_points
from sciml.calculus.spectral import SpectralField, basis_of
from sciml.domain import Grid
from sciml.solvers.modes import Modes
from sciml.types import Array

Text = Callable[[dict[str, Any], Any], Mapping[str, Any]]
"""A part of an equation: (fields by name, calculus) -> terms by name."""


class Space(Protocol):
    """Turns grid values into states and back, and evaluates the text of an equation on a state."""

    grid: Any
    names: tuple[str, ...]

    @property
    def is_modal(self) -> bool:
        """Whether a constant-coefficient operator acts on the state as a factor."""
        ...

    def encode(self, values: Any) -> Array:
        """Grid values (fields, *grid.shape) to a state."""
        ...

    def decode(self, y: Array, t: Any) -> Array:
        """A state to grid values (fields, *grid.shape), conditions on the faces at time t included."""
        ...

    def read(self, text: Text, y: Array, t: Any) -> Array:
        """The terms of `text` for the state y at time t, as a state; a field without a term gets zero."""
        ...

    def settled(self, y: Array) -> Array:
        """A state after a step, without what rounding has brought in that grid values do not show."""
        ...

    def total(self, value: Array) -> Array:
        """The sum over a whole state from that over the part of it that is here."""
        ...


@final
class FourierSpace:
    """States are Fourier coefficients, shape (fields, n_1, ..., n_d//2 + 1), cut by the 2/3 rule if `truncated`."""

    def __init__(self, grid: Grid, names: tuple[str, ...], truncated: bool) -> None:
        self.grid, self.names, self._basis = grid, names, basis_of(grid)
        self._mask = self._basis.resolved if truncated else None

    @property
    def is_modal(self) -> bool:
        """Always."""
        return True

    def encode(self, values: Any) -> Array:
        """rfftn."""
        return self._cut(self._basis.forward(values))

    def decode(self, y: Array, t: Any) -> Array:
        """irfftn."""
        del t
        return self._basis.backward(y)

    def read(self, text: Text, y: Array, t: Any) -> Array:
        """Evaluate with the spectral reading; derivatives and sums stay in Fourier space."""
        d = Spectral(self.grid, time=t)
        terms = text({name: d.from_coefficients(y[i]) for i, name in enumerate(self.names)}, d)
        zero = jnp.zeros(y.shape[1:], y.dtype)
        return self._cut(jnp.stack([self._coefficients(terms[n]) if n in terms else zero for n in self.names]))

    def settled(self, y: Array) -> Array:
        """Coefficients of real fields."""
        return self._basis.of_real(y)

    def total(self, value: Array) -> Array:
        """That of the basis."""
        return self._basis.total(value)

    def _coefficients(self, term: Any) -> Array:
        if isinstance(term, SpectralField):
            return jnp.broadcast_to(term.coefficients, jnp.shape(self._basis.laplacian))
        return self._basis.forward(jnp.broadcast_to(jnp.asarray(term, float), self.grid.shape))

    def _cut(self, coefficients: Array) -> Array:
        return coefficients if self._mask is None else jnp.where(self._mask, coefficients, 0.0)


@final
class GridSpace:
    """States are values at the points not on a bounded face, shape (fields, *interior), or coefficients in `modes`.

    The reading is spectral where every axis is periodic (unless `differences`), else finite differences of the given
    order, whose faces with Neumann or Robin conditions carry unknowns in order 2.
    """

    def __init__(
        self,
        grid: Grid,
        names: tuple[str, ...],
        boundary: Boundary,
        order: int,
        modes: Modes | None = None,
        differences: bool = False,
    ) -> None:
        self.grid, self.names, self.boundary, self.order, self._modes = grid, names, boundary, order, modes
        self.interior = unknown_points(grid, boundary, order)
        self.is_spectral = all(grid.box.periodic) and not differences

    @property
    def is_modal(self) -> bool:
        """Whether it has modes."""
        return self._modes is not None

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the unknowns at the grid points, (fields, *interior)."""
        axes = zip(self.grid.shape, self.interior, strict=True)
        return (len(self.names), *(len(range(n)[part]) for n, part in axes))

    @property
    def fractions(self) -> Array:
        """The share of a full cell that belongs to each unknown, shape (*interior)."""
        return jnp.asarray(cell_fractions(self.grid, self.boundary, self.order))

    def encode(self, values: Any) -> Array:
        """The values at the interior points, or their coefficients."""
        inside = values[(..., *self.interior)]
        return inside if self._modes is None else self._modes.forward(inside)

    def decode(self, y: Array, t: Any) -> Array:
        """The values everywhere."""
        d = self._calculus(t)
        inside = self._points(y)
        if isinstance(d, Spectral):
            return inside
        return jnp.stack([d.embed(inside[i], name).raw for i, name in enumerate(self.names)])

    def read(self, text: Text, y: Array, t: Any) -> Array:
        """Evaluate at the grid points."""
        d = self._calculus(t)
        inside = self._points(y)
        fields = {
            name: d.field(inside[i]) if isinstance(d, Spectral) else d.embed(inside[i], name)
            for i, name in enumerate(self.names)
        }
        terms = text(fields, d)
        values = [jnp.broadcast_to(d.values(terms.get(n, 0.0)), self.grid.shape) for n in self.names]
        return self.encode(jnp.stack([jnp.asarray(v, inside.dtype) for v in values]))

    def settled(self, y: Array) -> Array:
        """The state itself: nothing is hidden in it."""
        return y

    def total(self, value: Array) -> Array:
        """The value itself: all is here."""
        return value

    def _points(self, y: Array) -> Array:
        return y if self._modes is None else self._modes.backward(y)

    def _calculus(self, t: Any) -> Spectral | FiniteDifference:
        if self.is_spectral:
            return Spectral(self.grid, time=t)
        return FiniteDifference(self.grid, self.boundary, self.order, time=t)
