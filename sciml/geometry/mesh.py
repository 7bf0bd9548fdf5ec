"""Meshes of triangles or tetrahedra with named boundary parts, checked when they are made."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from sciml.errors import ConfigError
from sciml.types import register_static

REST = "rest"
CORNERS = {2: 3, 3: 4}
NODES = {2: {3: 1, 6: 2}, 3: {4: 1, 10: 2}}
"""Nodes per cell to the degree of its shape, by dimension."""
FLATTEST = 1e-10  # volume of a cell over the cube (or square) of its longest edge


@register_static
@dataclass(frozen=True, eq=False)
class Mesh:
    """A domain cut into triangles (2D) or tetrahedra (3D). Meshes with the same contents are equal.

    `points`: shape (n, dim), in `unit`; `cells`: indices into them, shape (m, 3 or 4), or (m, 6 or 10) for curved
    cells: the corners, then the middles of the edges 01 12 02 (03 13 23), as in VTK.
    `parts`: name to the corner indices of boundary facets, shape (k, dim); boundary facets without a name become the
    part `rest`. Raises `ConfigError` for indices out of range, points that no cell uses, flat cells, facets that do not
    lie on the boundary or have two names. Clockwise cells are turned.
    """

    points: np.ndarray
    cells: np.ndarray
    parts: Mapping[str, np.ndarray]
    unit: str = "m"

    def __post_init__(self) -> None:
        points, cells = np.array(self.points, float), np.array(self.cells, np.int64)
        _check_shapes(points, cells)
        _check_use(points, cells)
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "cells", _oriented(points, cells))
        for array in (self.points, self.cells):
            array.flags.writeable = False  # the digest stays that of the contents
        object.__setattr__(self, "parts", _named(self.boundary_facets, self.parts))

    @property
    def dim(self) -> int:
        """Number of space dimensions."""
        return self.points.shape[1]

    @property
    def degree(self) -> int:
        """1 for straight cells, 2 for cells with curved sides."""
        return NODES[self.dim][self.cells.shape[1]]

    @property
    def faces(self) -> tuple[str, ...]:
        """Names of the boundary parts, each of which needs a condition."""
        return tuple(self.parts)

    @cached_property
    def boundary_facets(self) -> np.ndarray:
        """Corner indices of the facets that belong to one cell only, sorted, shape (k, dim)."""
        found, counts = np.unique(_all_facets(self.cells[:, : self.dim + 1]), axis=0, return_counts=True)
        if counts.max() > 2:
            raise ConfigError(
                "more than two cells of the mesh share a facet",
                got=f"the facet of the points {found[counts.argmax()].tolist()} in {counts.max()} cells",
                reason="cells that overlap, or one that is listed twice",
            )
        return found[counts == 1]

    @cached_property
    def digest(self) -> str:
        """Hash of all contents."""
        state = hashlib.sha256(repr((self.points.shape, self.cells.shape, self.unit)).encode())
        for array in (self.points, self.cells):
            state.update(np.ascontiguousarray(array).tobytes())
        for name, facets in self.parts.items():
            state.update(name.encode() + facets.tobytes())
        return state.hexdigest()

    def __hash__(self) -> int:
        return hash(self.digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mesh) and self.digest == other.digest

    def __repr__(self) -> str:
        kind = {2: "triangles", 3: "tetrahedra"}[self.dim]
        return f"Mesh({len(self.points)} points, {len(self.cells)} {kind}, parts {', '.join(self.parts)})"

    @classmethod
    def from_file(cls, path: Path | str, *, unit: str = "m") -> Mesh:
        """A mesh from a file that meshio can read; see `sciml.geometry.files.read_mesh`."""
        from sciml.geometry.files import read_mesh

        return cls(*read_mesh(path), unit=unit)


def _check_shapes(points: np.ndarray, cells: np.ndarray) -> None:
    dim = points.shape[-1] if points.ndim == 2 else 0
    if dim not in NODES or cells.ndim != 2 or cells.shape[1] not in NODES[dim] or not len(cells):
        raise ConfigError(
            "a mesh consists of triangles in the plane or of tetrahedra in space",
            expected="points of shape (n, 2) with cells of shape (m, 3) or (m, 6), or (n, 3) with (m, 4) or (m, 10)",
            got=f"points of shape {points.shape}, cells of shape {cells.shape}",
        )
    if not np.all(np.isfinite(points)):
        raise ConfigError("a point of the mesh is not finite", got=f"point {np.argwhere(~np.isfinite(points))[0, 0]}")
    if cells.min() < 0 or cells.max() >= len(points):
        raise ConfigError(
            "a cell of the mesh refers to a point that does not exist",
            expected=f"indices from 0 to {len(points) - 1}",
            got=f"{cells.min()} to {cells.max()}",
        )


def _check_use(points: np.ndarray, cells: np.ndarray) -> None:
    loose = np.setdiff1d(np.arange(len(points)), cells)
    if len(loose):
        raise ConfigError(
            "the mesh has points that belong to no cell",
            expected="every point in at least one cell",
            got=f"{len(loose)} loose points, the first is number {loose[0]} at {points[loose[0]].tolist()}",
            reason="a value at such a point would be determined by nothing",
            fix="used, cells = numpy.unique(cells, return_inverse=True); points = points[used]",
        )


def _oriented(points: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """The cells with positive volume; raises `ConfigError` for a flat one, or a curved one that folds over."""
    dim = points.shape[1]
    corners = points[cells[:, : dim + 1]]
    edges = corners[:, 1:] - corners[:, :1]
    volume = np.linalg.det(edges)
    longest = np.linalg.norm(corners[:, :, None] - corners[:, None, :], axis=-1).max(axis=(1, 2))
    flat = np.abs(volume) <= FLATTEST * longest**dim
    if flat.any():
        raise ConfigError(
            f"{flat.sum()} cells of the mesh are flat",
            expected="cells with a volume",
            got=f"cell {flat.argmax()} with corners {corners[flat.argmax()].tolist()}",
            reason="corners that coincide or lie on one line (in one plane)",
            fix="mesh again, or merge coinciding points",
        )
    # exchanging the corners 0 and 1 exchanges the edges 12 and 02, in space also 03 and 13
    turn = {3: [1, 0, 2], 6: [1, 0, 2, 3, 5, 4], 4: [1, 0, 2, 3], 10: [1, 0, 2, 3, 4, 6, 5, 8, 7, 9]}
    return np.where(volume[:, None] < 0, cells[:, turn[cells.shape[1]]], cells)


def _all_facets(corners: np.ndarray) -> np.ndarray:
    """The facets of all cells with sorted corners; inner ones occur twice."""
    count = corners.shape[1]
    facets = [np.delete(corners, i, axis=1) for i in range(count)]
    return np.sort(np.concatenate(facets), axis=1)


def _named(boundary: np.ndarray, parts: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The facets of each part, sorted; the boundary facets that no part contains as the part `rest`."""
    places = {tuple(facet): i for i, facet in enumerate(boundary.tolist())}
    owner: dict[int, str] = {}
    found: dict[str, np.ndarray] = {}
    for name, facets in parts.items():
        rows = np.unique(np.sort(np.asarray(facets, np.int64).reshape(-1, boundary.shape[1]), axis=1), axis=0)
        for row in map(tuple, rows.tolist()):
            if row not in places:
                raise ConfigError(
                    f"a facet of the part {name!r} does not lie on the boundary of the mesh",
                    expected="facets that belong to exactly one cell",
                    got=f"the facet of the points {list(row)}",
                    reason="a line or surface inside the domain was named, or points of the mesh are doubled",
                )
            other = owner.setdefault(places[row], name)
            if other != name:
                raise ConfigError(f"a facet belongs to the parts {other!r} and {name!r}", got=f"points {list(row)}")
        if len(rows):
            found[name] = rows
    unnamed = [i for i in range(len(boundary)) if i not in owner]
    if unnamed:
        found[REST] = boundary[unnamed] if REST not in found else np.concatenate([found[REST], boundary[unnamed]])
    return found
