"""Bases in which constant-coefficient operators on a grid are diagonal: Fourier, or eigenvectors per axis."""

from __future__ import annotations

from collections.abc import Mapping
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
from sciml.solvers.transforms import Transform, transform_for
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
    """Eigenvectors (columns) of the second difference along one axis, their inverse, and the eigenvalues.

    `transform` does the same faster on many points, if there is one.
    """

    vectors: np.ndarray
    inverse: np.ndarray
    values: np.ndarray
    transform: Transform | None = None

    def forward(self, values: Any, place: int) -> Array:
        """Coefficients along the axis `place` < 0."""
        if self.transform is not None and self.values.size >= self.transform.worthwhile:
            return self.transform.forward(values, place)
        return _product(self.inverse, values, place)

    def backward(self, coefficients: Any, place: int) -> Array:
        """Values along the axis `place` < 0."""
        if self.transform is not None and self.values.size >= self.transform.worthwhile:
            return self.transform.backward(coefficients, place)
        return _product(self.vectors, coefficients, place)


def _product(rows: np.ndarray, values: Any, place: int) -> Array:
    return jnp.moveaxis(jnp.tensordot(rows, values, axes=(1, jnp.ndim(values) + place)), 0, place)


def _natural(conditions: Conditions, order: int) -> frozenset[str]:
    """The faces that carry unknowns, as `sciml.boundary.natural_faces` has it."""
    return frozenset(face for face, _, beta in conditions if order == 2 and beta)


@final
class DifferenceModes:
    """Fast diagonalization: products of the eigenvectors of the second difference along each axis.

    R. E. Lynch, J. R. Rice, D. H. Thomas, Numer. Math. 6 (1964) 185. `kind` is "second" (`d.laplacian`) or
    "compact" (`d.divergence(d.gradient(u))`), which differ for order 4. `natural`: the faces that carry unknowns,
    by default those whose condition has a slope, in order 2.
    """

    def __init__(
        self, grid: Grid, conditions: Conditions, order: int, kind: str, natural: frozenset[str] | None = None
    ) -> None:
        natural = _natural(conditions, order) if natural is None else natural
        self.axes = tuple(
            _axis_modes(_line(grid, axis), _on_axis(conditions, axis), _of_axis(natural, axis), order, kind)
            for axis in range(grid.dim)
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
        for axis, modes in enumerate(self.axes):
            values = modes.forward(values, axis - len(self.axes))
        return values

    def backward(self, coefficients: Any) -> Array:
        """Coefficients to real grid values."""
        for axis, modes in enumerate(self.axes):
            coefficients = modes.backward(coefficients, axis - len(self.axes))
        return jnp.real(coefficients)


def conditions_of(boundary: Mapping[str, Condition]) -> Conditions:
    """The hashable part of the boundary conditions of one field."""
    return tuple((face, condition.alpha, condition.beta) for face, condition in boundary.items())


def _line(grid: Grid, axis: int) -> Grid:
    box = grid.box
    return Grid(Box((box.lower[axis],), (box.upper[axis],), (box.periodic[axis],), box.unit), (grid.shape[axis],))


def _on_axis(conditions: Conditions, axis: int) -> Conditions:
    return tuple((f"x{face[1]}", alpha, beta) for face, alpha, beta in conditions if face[0] == "xyz"[axis])


def _of_axis(natural: frozenset[str], axis: int) -> frozenset[str]:
    return frozenset(f"x{face[1]}" for face in natural if face[0] == "xyz"[axis])


@lru_cache(maxsize=64)
def _axis_modes(grid: Grid, conditions: Conditions, natural: frozenset[str], order: int, kind: str) -> AxisModes:
    second = _second_difference(grid, conditions, natural, order, kind)
    cells = cell_fractions_of(second.shape[0], natural)
    root = np.sqrt(cells)
    balanced = root[:, None] * second / root
    if np.allclose(balanced, balanced.T, rtol=0, atol=1e-12 * np.abs(second).max()):
        transform = transform_for(grid, conditions, natural) if order == 2 else None
        if transform is not None:
            return AxisModes(transform.vectors, np.linalg.inv(transform.vectors), transform.eigenvalues, transform)
        values, vectors = np.linalg.eigh((balanced + balanced.T) / 2)
        return AxisModes(vectors / root[:, None], vectors.T * root, values)
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


def cell_fractions_of(unknowns: int, natural: frozenset[str]) -> np.ndarray:
    """Cell sizes of the unknowns of one axis x in grid spacings: half a cell at a natural face."""
    cells = np.ones(unknowns)
    cells[0] *= 0.5 if "x-" in natural else 1.0
    cells[-1] *= 0.5 if "x+" in natural else 1.0
    return cells


def _second_difference(
    line: Grid, conditions: Conditions, natural: frozenset[str], order: int, kind: str
) -> np.ndarray:
    """The matrix of the second derivative at the unknowns of one axis, as the finite-difference reading applies it."""
    (n,), (h,), (periodic,) = line.shape, line.spacing, line.box.periodic
    nodes, faces = (n, 0.0), (n if periodic else n - 1, 0.5)
    if kind == "second" or order == 2:
        second = matrix(*nodes, *nodes, h, 2, order, periodic)
    else:
        second = matrix(*faces, *nodes, h, 1, order, periodic) @ matrix(*nodes, *faces, h, 1, order, periodic)
    if periodic:
        return second
    slopes = matrix(*nodes, *nodes, h, 1, order, False)
    second, filled = second.copy(), np.eye(n)
    for face, alpha, beta in conditions:
        end, next_to, outward = (0, 1, -slopes[0]) if face[1] == "-" else (n - 1, n - 2, slopes[-1])
        if face in natural:  # the mirrored point beyond the face, as the reading has it
            second[end] = 0.0
            second[end, [end, next_to]] = -2.0 / h**2 - 2.0 * alpha / (beta * h), 2.0 / h**2
        else:
            inside = np.arange(n) != end
            filled[end] = -beta * np.where(inside, outward, 0.0) / (alpha + beta * outward[end])
    first, last = 0 if "x-" in natural else 1, n if "x+" in natural else n - 1
    return (second @ filled)[first:last, first:last]
