"""Bases in which constant-coefficient operators on a grid are diagonal: Fourier, or eigenvectors per axis."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, final

import jax.numpy as jnp
import numpy as np

from sciml.boundary import Condition
from sciml.calculus import FourierBasis
from sciml.calculus.differences import matrix
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
        for axis, basis in enumerate(matrices):
            place = axis - len(matrices)
            values = jnp.moveaxis(jnp.tensordot(basis, values, axes=(1, jnp.ndim(values) + place)), 0, place)
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
    second = _second_difference(grid, conditions, order, kind)
    if np.allclose(second, second.T, rtol=0, atol=1e-12 * np.abs(second).max()):
        values, vectors = np.linalg.eigh((second + second.T) / 2)
        return AxisModes(vectors, vectors.T, values)
    values, vectors = np.linalg.eig(second)
    condition = float(np.linalg.cond(vectors))
    if condition > LARGEST_CONDITION:
        raise NumericalError(
            "the second difference along an axis has no well-conditioned eigenvectors",
            expected=f"a condition number below {LARGEST_CONDITION:g}",
            got=f"{condition:.3g} for the conditions {conditions} on {grid.shape[0]} points",
            fix="method: {kind: bicgstab} for a steady problem, {kind: rk4} for an evolution",
        )
    return AxisModes(vectors, np.linalg.inv(vectors), values)


def _second_difference(line: Grid, conditions: Conditions, order: int, kind: str) -> np.ndarray:
    """The matrix of the second derivative at the unknowns of one axis, as the finite-difference reading applies it."""
    (n,), (h,), (periodic,) = line.shape, line.spacing, line.box.periodic
    nodes, faces = (n, 0.0), (n if periodic else n - 1, 0.5)
    if kind == "second":
        second = matrix(*nodes, *nodes, h, 2, order, periodic)
    else:
        second = matrix(*faces, *nodes, h, 1, order, periodic) @ matrix(*nodes, *faces, h, 1, order, periodic)
    if periodic:
        return second
    slopes = matrix(*nodes, *nodes, h, 1, order, False)
    filled = np.zeros((n, n - 2))
    filled[1:-1] = np.eye(n - 2)
    for face, alpha, beta in conditions:
        end, outward = (0, -slopes[0]) if face[1] == "-" else (n - 1, slopes[-1])
        filled[end] = -beta * outward[1:-1] / (alpha + beta * outward[end])
    return (second @ filled)[1:-1]
