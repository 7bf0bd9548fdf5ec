"""Finite elements on meshes: P1 and P2 triangles and tetrahedra (scikit-fem builds the tables, JAX computes)."""

from sciml.solvers.finite_element.elements import Elements
from sciml.solvers.finite_element.linear import LINEAR_SOLVERS, linear_solver
from sciml.solvers.finite_element.methods import Galerkin, TrBdf2

__all__ = ["LINEAR_SOLVERS", "Elements", "Galerkin", "TrBdf2", "linear_solver"]
