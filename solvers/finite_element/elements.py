"""Lagrange elements on a mesh: where the unknowns are, and the tables that integrals over cells and facets need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np

from sciml.errors import ConfigError
from sciml.geometry.files import need
from sciml.geometry.mesh import Mesh
from sciml.solvers.finite_element.places import locate
from sciml.types import register_static

NAMES = {(2, 1): "ElementTriP1", (2, 2): "ElementTriP2", (3, 1): "ElementTetP1", (3, 2): "ElementTetP2"}
MESHES = {(2, 1): "MeshTri1", (2, 2): "MeshTri2", (3, 1): "MeshTet1", (3, 2): "MeshTet2"}


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Patch:
    """Tables of k cells, or of k facets seen from their cells, with q quadrature points each.

    `nodes`: the unknowns of each cell, shape (k, n); `shapes` and `slopes`: values and gradients of their functions,
    (k or 1, q, n) and (k, q, n, dim); `points`: (k, q, dim); `weights`: (k, q), lengths, areas or volumes included;
    `normals`: (k, q, dim), outward, of facets.
    """

    nodes: Any
    shapes: Any
    slopes: Any
    points: Any
    weights: Any
    normals: Any = None


@register_static
@dataclass(frozen=True)
class Elements:
    """Continuous piecewise polynomials of `degree` 1 or 2 on a mesh: what a `Grid` is to a `Box`.

    Fields are arrays of values at `nodes`. Integrals are exact for polynomials of degree `accuracy` on straight
    cells. Raises `ConfigError` for another degree, for a curved mesh that folds over, or where scikit-fem is missing.
    """

    mesh: Mesh
    degree: int = 2
    accuracy: int = 0

    def __post_init__(self) -> None:
        if self.degree not in (1, 2):
            raise ConfigError("elements have the degree 1 or 2", expected="1 or 2", got=self.degree)

    @property
    def dim(self) -> int:
        """Number of space dimensions."""
        return self.mesh.dim

    @property
    def shape(self) -> tuple[int]:
        """Shape of a field: (number of nodes,)."""
        return (len(self.nodes),)

    @cached_property
    def nodes(self) -> np.ndarray:
        """Where the values of a field stand, shape (n, dim): the corners of the cells, then middles of edges."""
        return np.ascontiguousarray(self._cells_basis.doflocs.T)

    @property
    def points(self) -> np.ndarray:
        """The same as `nodes`, by the name that grids use."""
        return self.nodes

    @cached_property
    def cells(self) -> Patch:
        """Tables for integrals over the domain."""
        return self._patch(self._cells_basis)

    @cached_property
    def facets(self) -> dict[str, Patch]:
        """Tables for integrals over each part of the boundary."""
        return {name: self._patch(basis, facets=True) for name, basis in self._facet_bases.items()}

    @cached_property
    def nodes_on(self) -> Mapping[str, np.ndarray]:
        """Numbers of the nodes on each part of the boundary."""
        return {name: np.unique(self._cells_basis.get_dofs(rows).all()) for name, rows in self._facet_numbers.items()}

    def integral(self, values: Any) -> Any:
        """The integral of a field, shape (..., n), over the domain: shape (...)."""
        at_points = np.einsum("...kn,kqn->...kq", np.asarray(values)[..., self.cells.nodes], self._full_shapes)
        return np.sum(at_points * self.cells.weights, axis=(-2, -1))

    def error(self, values: Any, exact: Any) -> float:
        """The L2 norm of a field minus the function `exact` of points (..., dim) -> (...), shape ()."""
        at_points = np.einsum("kn,kqn->kq", np.asarray(values)[self.cells.nodes], self._full_shapes)
        return float(np.sqrt(np.sum((at_points - exact(self.cells.points)) ** 2 * self.cells.weights)))

    def nodal_slopes(self, values: Any) -> np.ndarray:
        """The gradient of a field at the nodes, shape (n, dim): the mean of what the cells around a node give."""
        patch = self._patch(self._at_nodes)
        slopes = np.einsum("kn,kqnd->kqd", np.asarray(values)[patch.nodes], patch.slopes)
        total, count = np.zeros((len(self.nodes), self.dim)), np.zeros(len(self.nodes))
        np.add.at(total, patch.nodes, slopes)
        np.add.at(count, patch.nodes, 1.0)
        return total / count[:, None]

    def at(self, values: Any, points: Any) -> np.ndarray:
        """A field at points of the domain, shape (p, dim): shape (p,); raises `ConfigError` for points outside."""
        basis = self._cells_basis
        cells, places = locate(self.mesh, basis.mapping, np.asarray(points, float).reshape(-1, self.dim))
        shapes = [self._element.lbasis(places, i)[0] for i in range(len(basis.element_dofs))]
        return np.sum(np.stack(shapes) * np.asarray(values)[basis.element_dofs[:, cells]], axis=0)

    @property
    def _full_shapes(self) -> np.ndarray:
        return np.broadcast_to(self.cells.shapes, self.cells.slopes.shape[:3])

    @cached_property
    def _skfem_mesh(self) -> Any:
        mesh = self.mesh
        return getattr(need("skfem"), MESHES[mesh.dim, mesh.degree])(mesh.points.T.copy(), mesh.cells.T.copy())

    @property
    def _element(self) -> Any:
        return getattr(need("skfem"), NAMES[self.dim, self.degree])()

    @property
    def _intorder(self) -> int:
        return self.accuracy or 2 * self.degree + 1

    @cached_property
    def _cells_basis(self) -> Any:
        skfem = need("skfem")
        basis = skfem.Basis(self._skfem_mesh, self._element, intorder=self._intorder)
        _check_orientation(basis, self.mesh)
        return basis

    @cached_property
    def _at_nodes(self) -> Any:
        """The cells with their nodes as quadrature points."""
        places = np.asarray(self._element.doflocs).T
        quadrature = (places, np.ones(places.shape[1]))
        return need("skfem").Basis(self._skfem_mesh, self._element, quadrature=quadrature)

    @cached_property
    def _facet_numbers(self) -> dict[str, np.ndarray]:
        corners = np.unique(self.mesh.cells[:, : self.dim + 1])
        known = {tuple(sorted(f)): i for i, f in enumerate(self._skfem_mesh.facets.T.tolist())}
        rows = {name: np.searchsorted(corners, facets) for name, facets in self.mesh.parts.items()}
        return {name: np.asarray([known[tuple(sorted(f))] for f in r.tolist()]) for name, r in rows.items()}

    @cached_property
    def _facet_bases(self) -> dict[str, Any]:
        skfem = need("skfem")
        return {
            name: skfem.FacetBasis(self._skfem_mesh, self._element, intorder=self._intorder, facets=numbers)
            for name, numbers in self._facet_numbers.items()
        }

    def _patch(self, basis: Any, *, facets: bool = False) -> Patch:
        fields = [functions[0] for functions in basis.basis]
        shapes = np.stack([np.atleast_2d(np.asarray(f)) for f in fields], axis=-1)
        slopes = np.moveaxis(np.stack([f.grad for f in fields]), (0, 1), (2, 3))
        nodes = basis.element_dofs.T
        normals = np.moveaxis(np.asarray(basis.normals), 0, -1) if facets else None
        points = np.moveaxis(np.asarray(basis.global_coordinates()), 0, -1)
        weights = np.asarray(basis.dx)
        shapes = shapes[:1] if np.all(shapes == shapes[:1]) else shapes
        return Patch(np.ascontiguousarray(nodes), shapes, slopes, points, weights, normals)


def _check_orientation(basis: Any, mesh: Mesh) -> None:
    if mesh.degree == 1:
        return
    determinant = np.asarray(basis.mapping.detDF(basis.quadrature[0]))
    folded = np.any(determinant <= 0, axis=-1)
    if folded.any():
        raise ConfigError(
            f"{folded.sum()} curved cells of the mesh fold over",
            expected="a mapping from the straight cell whose determinant is positive everywhere",
            got=f"{determinant[folded.argmax()].min():.3g} in cell {folded.argmax()}",
            reason="the middle of a side lies too far from the middle between its ends",
            fix="more cells along curved sides, or straight cells",
        )
