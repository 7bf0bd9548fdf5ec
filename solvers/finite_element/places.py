"""Where points lie in a mesh: the cell and the coordinates inside it, also in cells with curved sides."""

from __future__ import annotations

from typing import Any

import numpy as np

from sciml.errors import ConfigError
from sciml.geometry.mesh import Mesh

OUTSIDE = 1e-9  # how far a point may lie outside of a cell, in coordinates whose sum is 1
CANDIDATES = 24
NEWTON_STEPS = 12


def locate(mesh: Mesh, mapping: Any, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cell numbers, shape (p,), and coordinates in the cells, shape (dim, p), of points of shape (p, dim).

    `mapping` is scikit-fem's. The cells with the nearest centers are tried. Raises `ConfigError` for points outside.
    """
    from scipy.spatial import KDTree

    centers = mesh.points[mesh.cells[:, : mesh.dim + 1]].mean(axis=1)
    count = min(CANDIDATES, len(centers))
    nearest = np.atleast_2d(KDTree(centers).query(points, k=count)[1]).reshape(len(points), count)
    cells, places = np.full(len(points), -1), np.zeros((mesh.dim, len(points)))
    for candidate in nearest.T:
        open_ = np.flatnonzero(cells < 0)
        if not len(open_):
            break
        found = _inverse(mesh, mapping, points[open_], candidate[open_])
        rest = 1.0 - found.sum(axis=0)
        good = np.all(found > -OUTSIDE, axis=0) & (rest > -OUTSIDE)
        cells[open_[good]], places[:, open_[good]] = candidate[open_][good], found[:, good]
    if np.any(cells < 0):
        lost = points[np.argmax(cells < 0)]
        raise ConfigError("a point lies outside of the mesh", expected="points of the domain", got=lost.tolist())
    return cells, places


def _inverse(mesh: Mesh, mapping: Any, points: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Coordinates of points in given cells, shape (dim, p): at once for straight cells, else by Newton's method."""
    x = points.T[:, :, None]
    if mesh.degree == 1:
        return mapping.invF(x, tind=cells)[:, :, 0]
    places = np.full(x.shape, 1.0 / (mesh.dim + 1))
    with np.errstate(all="ignore"):
        for _ in range(NEWTON_STEPS):
            change = np.einsum("ijkl,jkl->ikl", mapping.invDF(places, cells), x - mapping.F(places, cells))
            places = np.clip(places + change, -1.0, 2.0)
        missed = np.abs(mapping.F(places, cells) - x).max(axis=(0, 2)) > 1e-9 * np.ptp(mesh.points)
    places[:, missed] = np.nan
    return places[:, :, 0]
