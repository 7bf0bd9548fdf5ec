"""The linear system that a steady problem leads to, as its solvers see it: where the unknowns live, what is special."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from sciml.solvers.field_modes import modes_for
from sciml.solvers.method import Matvec
from sciml.solvers.modes import FourierModes, Modes
from sciml.solvers.spaces import GridSpace
from sciml.solvers.structure import Structure, is_constant, is_uncoupled, separable_kind
from sciml.types import Array


@dataclass(frozen=True, eq=False)
class LinearSystem:
    """What a linear solver may know besides the products with vectors.

    `pin`: what was added, times the mean of u, where the operator does not see constants (else 0).
    """

    space: GridSpace
    structure: Structure
    pin: Any = 0.0

    @cached_property
    def weights(self) -> Array:
        """Shares of a cell, shape (*interior): the operator is symmetric, if it is, in the product sum(w a b)."""
        return self.space.fractions

    @cached_property
    def exact_modes(self) -> Modes | None:
        """Modes that diagonalize the operator, None where there are none."""
        if not (is_constant(self.structure) and is_uncoupled(self.structure)):
            return None
        if self.space.is_spectral:
            return FourierModes(self.space.grid)
        kind = separable_kind(self.structure)
        return self._difference_modes(kind) if kind else None

    @cached_property
    def laplacian_modes(self) -> Modes:
        """Modes of the Laplacian on the same grid with the same kind of conditions."""
        if self.space.is_spectral:
            return FourierModes(self.space.grid)
        return self.exact_modes or self._difference_modes("compact")

    def _difference_modes(self, kind: str) -> Modes:
        return modes_for(self.space.grid, self.space.boundary, self.space.names, self.space.order, kind)

    def inner(self, a: Array, b: Array) -> Array:
        """sum(w a b), shape ()."""
        return jnp.sum(self.weights * a * b)

    def mean(self, u: Array) -> Array:
        """Mean over space, per field, keeping the rank."""
        return jnp.sum(self.weights * u, axis=tuple(range(1, u.ndim)), keepdims=True) / jnp.sum(self.weights)

    def inverse_laplacian(self, v: Array) -> Array:
        """(-Laplacian)^{-1} v, the null mode (if any) scaled like the slowest other one."""
        modes = self.laplacian_modes
        size = -modes.eigenvalues
        is_null = np.abs(size) <= 1e-10 * np.abs(size).max()
        safe = np.where(is_null, np.abs(size[~is_null]).min(), size)
        return modes.backward(modes.forward(v) / safe)


def divide(modes: Modes, matvec: Matvec, b: Array) -> Array:
    """The solution of `matvec(x) = b` for an operator that `modes` diagonalize."""
    symbol = symbol_of(modes, matvec, b)
    return modes.backward(modes.forward(b) / jnp.where(symbol == 0, 1.0, symbol))


def symbol_of(modes: Modes, matvec: Matvec, like: Array) -> Array:
    """The factor of each mode of an operator that `modes` diagonalize."""
    return modes.forward(matvec(modes.backward(jnp.ones_like(modes.forward(like)))))


class Spectrum(NamedTuple):
    """Of a constant-coefficient operator, all of shape (): how near it is to singular, and whether it has both signs.

    `distance`: of the undifferentiated term from the nearest eigenvalue of the rest, relative to it; `resolved`: how
    well the grid knows that eigenvalue. A distance below that is a resonance.
    """

    distance: Array
    resolved: Array
    indefinite: Array


def spectrum(system: LinearSystem, matvec: Matvec, like: Array) -> Spectrum | None:
    """Read off the symbol; None where no modes diagonalize the operator."""
    modes = system.exact_modes
    if modes is None:
        return None
    symbol = symbol_of(modes, matvec, like)
    laplacian = np.broadcast_to(np.real(modes.eigenvalues), symbol.shape)
    size = np.abs(laplacian)
    slowest, fastest = np.argmin(np.where(size > 1e-10 * size.max(), size, np.inf)), np.argmax(size)
    flat, plain = symbol.ravel(), laplacian.ravel()
    factor = (flat[fastest] - flat[slowest]) / (plain[fastest] - plain[slowest])
    shift = flat[slowest] - factor * plain[slowest]
    real = symbol.real
    indefinite = jnp.any(real > 0) & jnp.any(real < 0)
    has_shift = jnp.abs(shift) > 1e-9 * jnp.abs(symbol).max()
    error = np.clip(_eigenvalue_error(system, size), 0.0, 0.5)
    margin = jnp.where(has_shift & indefinite, jnp.abs(symbol) / (error * jnp.abs(factor) * size + 1e-300), jnp.inf)
    worst = jnp.argmin(margin)
    distance = jnp.abs(flat[worst]) / jnp.maximum(jnp.abs(shift), 1e-300)
    return Spectrum(jnp.where(has_shift & indefinite, distance, jnp.inf), jnp.asarray(error).ravel()[worst], indefinite)


def _eigenvalue_error(system: LinearSystem, size: np.ndarray) -> np.ndarray:
    """Relative error of the eigenvalue -size of the discrete Laplacian: of the differences, or rounding."""
    if system.space.is_spectral:
        return np.full(size.shape, 1e-10)
    step = max(system.space.grid.spacing)
    return size * step**2 / 12 if system.space.order == 2 else (size * step**2) ** 2 / 90
