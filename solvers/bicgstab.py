"""Stabilized biconjugate gradients for elliptic problems that are not symmetric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from sciml.registry import option, register
from sciml.solvers.krylov import LinearSolver, bicgstab_solver
from sciml.solvers.method import EllipticSolver
from sciml.solvers.system import LinearSystem, divide


@register("method", "bicgstab")
@final
@dataclass(frozen=True)
class Bicgstab(EllipticSolver):
    """BiCGStab preconditioned by the fast diagonalized Laplacian, for operators that are not symmetric.

    Those are: first derivatives, differences of order 4.
    """

    references: ClassVar[tuple[str, ...]] = ("H. A. van der Vorst, SIAM J. Sci. Stat. Comput. 13 (1992) 631",)
    needs_symmetry: ClassVar[bool] = False

    difference_order: int = option(2, minimum=2, maximum=4, doc="order of the differences on bounded boxes, 2 or 4")
    tolerance: float = option(1e-10, above=0.0, doc="relative residual at which to stop, and the largest accepted")
    max_iterations: int = option(1000, minimum=1, doc="iterations per linear system after which the solve has failed")

    def linear_solver(self, system: LinearSystem) -> LinearSolver:
        """BiCGStab."""
        modes = system.exact_modes
        inverse = None if modes is None else lambda matvec, v: divide(modes, matvec, v)
        return bicgstab_solver(system.inverse_laplacian, self.tolerance, self.max_iterations, inverse)
