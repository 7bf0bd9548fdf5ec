"""Bases in which constant-coefficient operators on a grid are diagonal: Fourier, or eigenvectors per axis."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, final

import jax
import jax.numpy as jnp
import numpy as np

from sciml.boundary import Condition
from sciml.calculus import FiniteDifference, FourierBasis
from sciml.domain import Box, Grid
from sciml.errors import NumericalError
from sciml.types import Array

Conditions = tuple[tuple[str, float, float], ...]
"""(face, alpha, beta) of every bounded face: what the eigenvectors depend on."""

LARGEST_CONDITION = 1e8  # of an eigenvector basis; beyond it half of the digits are lost


class Modes(Protocol):
    """A basis of the unknowns, shape (..., *interior), in which the Laplacian is diagonal."""

    @property
    def eigenvalues(self) -> np.ndarray:
        """The Laplacian of each mode, broadcastable against coefficients."""
        ...

    def forward(self, values: Any) -> Array:
        """Coefficients of grid values."""
        ...

    def backward(self, coefficients: Any) -> Array:
        """Grid values of coefficients."""
        ...


@final
class FourierModes:
    """Fourier modes of a periodic grid."""

    def __init__(self, grid: Grid) -> None:
        self._basis = FourierBasis(grid)

    @property
    def eigenvalues(self) -> np.ndarray:
        """-|k|^2."""
        return self._basis.laplacian

    def forward(self, values: Any) -> Array:
        """Real values to coefficients."""
        return self._basis.forward(values)

    def backward(self, coefficients: Any) -> Array:
        """Coefficients to real values."""
        return self._basis.backward(coefficients)


@dataclass(frozen=True, eq=False)
class AxisModes:
    """Eigenvectors (columns) of the second difference along one axis, their inverse, and the eigenvalues."""

    vectors: np.ndarray
    inverse: np.ndarray
    values: np.ndarray


@final
class DifferenceModes:
    """Fast diagonalization: products of the eigenvectors of the second difference along each axis.

    R. E. Lynch, J. R. Rice, D. H. Thomas, Numer. Math. 6 (1964) 185. `kind` is "second" (`d.laplacian`) or
    "compact" (`d.divergence(d.gradient(u))`), which differ for order 4.
    """

    def __init__(self, grid: Grid, conditions: Conditions, order: int, kind: str) -> None:
        self.axes = tuple(
            _axis_modes(_line(grid, axis), _on_axis(conditions, axis), order, kind) for axis in range(grid.dim)
        )

    @property
    def eigenvalues(self) -> np.ndarray:
        """Sum over the axes, shape (*interior)."""
        dim = len(self.axes)
        return sum(
            (m.values.reshape([-1 if a == i else 1 for a in range(dim)]) for i, m in enumerate(self.axes)), np.zeros(1)
        )

    def forward(self, values: Any) -> Array:
        """Grid values to coefficients."""
        return self._along(values, [m.inverse for m in self.axes])

    def backward(self, coefficients: Any) -> Array:
        """Coefficients to real grid values."""
        return jnp.real(self._along(coefficients, [m.vectors for m in self.axes]))

    def _along(self, values: Any, matrices: list[np.ndarray]) -> Array:
        for axis, matrix in enumerate(matrices):
            place = axis - len(matrices)
            values = jnp.moveaxis(jnp.tensordot(matrix, values, axes=(1, jnp.ndim(values) + place)), 0, place)
        return values


def conditions_of(boundary: dict[str, Condition]) -> Conditions:
    """The hashable part of boundary conditions."""
    return tuple((face, condition.alpha, condition.beta) for face, condition in boundary.items())


def _line(grid: Grid, axis: int) -> Grid:
    box = grid.box
    return Grid(Box((box.lower[axis],), (box.upper[axis],), (box.periodic[axis],), box.unit), (grid.shape[axis],))


def _on_axis(conditions: Conditions, axis: int) -> Conditions:
    return tuple((f"x{face[1]}", alpha, beta) for face, alpha, beta in conditions if face[0] == "xyz"[axis])


@lru_cache(maxsize=64)
def _axis_modes(grid: Grid, conditions: Conditions, order: int, kind: str) -> AxisModes:
    with jax.ensure_compile_time_eval():
        boundary = {face: Condition(0.0, alpha, beta) for face, alpha, beta in conditions}
        d = FiniteDifference(grid, boundary, order)
        identity = np.eye(grid.shape[0] - 2 * (not grid.box.periodic[0]))
        u = d.embed(identity)
        second = d.laplacian(u) if kind == "second" else d.divergence(d.gradient(u))
        matrix = np.asarray(d.values(second)[(..., *d.interior)]).T
    if np.allclose(matrix, matrix.T, rtol=0, atol=1e-12 * np.abs(matrix).max()):
        values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
        return AxisModes(vectors, vectors.T, values)
    values, vectors = np.linalg.eig(matrix)
    condition = float(np.linalg.cond(vectors))
    if condition > LARGEST_CONDITION:
        raise NumericalError(
            "the second difference along an axis has no well-conditioned eigenvectors",
            expected=f"a condition number below {LARGEST_CONDITION:g}",
            got=f"{condition:.3g} for the conditions {conditions} on {grid.shape[0]} points",
            fix="method: {kind: bicgstab} for a steady problem, {kind: rk4} for an evolution",
        )
    return AxisModes(vectors, np.linalg.inv(vectors), values)
