"""Stabilized biconjugate gradients for elliptic problems that are not symmetric."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, final

from sciml.registry import option, register
from sciml.solvers.krylov import krylov_solver, stabilized_biconjugate_gradients
from sciml.solvers.method import EllipticSolver, Matvec
from sciml.solvers.spaces import GridSpace
from sciml.solvers.structure import Structure
from sciml.types import Array


@register("method", "bicgstab")
@final
@dataclass(frozen=True)
class Bicgstab(EllipticSolver):
    """BiCGStab preconditioned by the fast diagonalized Laplacian, for operators that are not symmetric.

    Those are: first derivatives, differences of order 4, Neumann and Robin faces.
    """

    references: ClassVar[tuple[str, ...]] = ("H. A. van der Vorst, SIAM J. Sci. Stat. Comput. 13 (1992) 631",)
    needs_symmetry: ClassVar[bool] = False

    difference_order: int = option(2, minimum=2, maximum=4, doc="order of the differences on bounded boxes, 2 or 4")
    tolerance: float = option(1e-10, above=0.0, doc="relative residual at which to stop, and the largest accepted")
    max_iterations: int = option(1000, minimum=1, doc="iterations per linear system after which the solve has failed")

    def linear_solver(self, space: GridSpace, structure: Structure) -> Callable[[Matvec, Array], tuple[Array, Array]]:
        """BiCGStab."""
        settings = (self.tolerance, self.max_iterations)
        return krylov_solver(stabilized_biconjugate_gradients, space, structure, *settings, symmetric=False)
