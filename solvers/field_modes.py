"""Modes for fields whose conditions on the faces differ in kind: a basis per field."""

from __future__ import annotations

from typing import Any, final

import jax.numpy as jnp
import numpy as np

from sciml.boundary import Boundary, conditions_for, natural_faces
from sciml.domain import Grid
from sciml.solvers.modes import Conditions, DifferenceModes, Modes, conditions_of
from sciml.types import Array


def kinds_of(boundary: Boundary, names: tuple[str, ...]) -> tuple[Conditions, ...]:
    """What the eigenvectors of each field depend on."""
    return tuple(conditions_of(conditions_for(boundary, name)) for name in names)


def modes_for(grid: Grid, boundary: Boundary, names: tuple[str, ...], order: int, kind: str) -> Modes:
    """The eigenvectors of the second difference, one basis for all fields where their conditions allow it.

    `order` and `kind` as in `DifferenceModes`.
    """
    natural = natural_faces(boundary, order)
    kinds = kinds_of(boundary, names)
    parts = [DifferenceModes(grid, conditions, order, kind, natural) for conditions in dict.fromkeys(kinds)]
    if len(parts) == 1:
        return parts[0]
    by_kind = dict(zip(dict.fromkeys(kinds), parts, strict=True))
    return FieldModes(tuple(by_kind[kind] for kind in kinds))


@final
class FieldModes:
    """Values and coefficients have the shape (fields, *interior); `parts` are the modes of each field."""

    def __init__(self, parts: tuple[DifferenceModes, ...]) -> None:
        self._parts = parts

    @property
    def eigenvalues(self) -> np.ndarray:
        """The Laplacian of each field and mode."""
        return np.stack([part.eigenvalues for part in self._parts])

    def forward(self, values: Any) -> Array:
        """Coefficients of grid values."""
        return jnp.stack([part.forward(values[i]) for i, part in enumerate(self._parts)])

    def backward(self, coefficients: Any) -> Array:
        """Real grid values of coefficients."""
        return jnp.stack([part.backward(coefficients[i]) for i, part in enumerate(self._parts)])
