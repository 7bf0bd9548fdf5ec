"""Preconditioned conjugate gradients for symmetric elliptic problems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from sciml.registry import option, register
from sciml.solvers.krylov import LinearSolver, conjugate_gradients, transposable
from sciml.solvers.method import EllipticSolver, Matvec
from sciml.solvers.system import LinearSystem
from sciml.types import Array


@register("method", "conjugate_gradient")
@final
@dataclass(frozen=True)
class ConjugateGradient(EllipticSolver):
    """Conjugate gradients preconditioned by the fast diagonalized Laplacian; the operator must be symmetric.

    The number of iterations depends on the contrast of the coefficients, hardly on the grid. Symmetric means in
    practice: no first derivatives, differences of order 2 (or a periodic box), one kind of condition per face.
    """

    references: ClassVar[tuple[str, ...]] = (
        "M. R. Hestenes, E. Stiefel, J. Res. Nat. Bur. Standards 49 (1952) 409",
        "P. Concus, G. H. Golub, SIAM J. Numer. Anal. 10 (1973) 1103",
    )
    needs_symmetry: ClassVar[bool] = True

    difference_order: int = option(2, minimum=2, maximum=4, doc="order of the differences on bounded boxes, 2 or 4")
    tolerance: float = option(1e-10, above=0.0, doc="relative residual at which to stop, and the largest accepted")
    max_iterations: int = option(1000, minimum=1, doc="iterations per linear system after which the solve has failed")

    def linear_solver(self, system: LinearSystem) -> LinearSolver:
        """Conjugate gradients in the product weighted by the cells, in which natural faces keep the symmetry."""
        settings = (self.tolerance, self.max_iterations)

        def solve(matvec: Matvec, b: Array) -> tuple[Array, Array]:
            return conjugate_gradients(matvec, system.inverse_laplacian, b, *settings, system.inner)

        return transposable(solve, system.weights)
