"""Direct solution: division by the symbol, fast diagonalization, or a dense factorization."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, final

import jax
import jax.numpy as jnp
import numpy as np

from sciml.errors import ConfigError
from sciml.registry import option, register
from sciml.solvers.method import EllipticSolver, Matvec
from sciml.solvers.system import LinearSystem, divide
from sciml.types import Array


@register("method", "direct")
@final
@dataclass(frozen=True)
class Direct(EllipticSolver):
    """Direct elliptic solve: by modes where coefficients are constant, else one dense LU (moderate grids).

    Its order is that of the differences on bounded boxes; on periodic ones it is spectral.
    """

    references: ClassVar[tuple[str, ...]] = (
        "R. E. Lynch, J. R. Rice, D. H. Thomas, Numer. Math. 6 (1964) 185",
        "G. H. Golub, C. F. Van Loan, Matrix Computations (2013), sec. 3.2",
    )
    needs_symmetry: ClassVar[bool] = False
    iterates: ClassVar[bool] = False

    difference_order: int = option(2, minimum=2, maximum=4, doc="order of the differences on bounded boxes, 2 or 4")
    tolerance: float = option(1e-9, above=0.0, doc="largest relative residual accepted, apart from rounding")
    max_iterations: int = option(1, minimum=1, doc="not used: a direct solve does not iterate")
    most_unknowns: int = option(5000, minimum=1, doc="largest dense system; 5000 unknowns take 200 MB")

    def linear_solver(self, system: LinearSystem) -> Callable[[Matvec, Array], tuple[Array, Array]]:
        """By modes if the equation allows it, else dense."""
        modes = system.exact_modes
        if modes is not None:
            return lambda matvec, b: (divide(modes, matvec, b), jnp.asarray(1.0))
        n = int(np.prod(system.space.shape))
        if n > self.most_unknowns:
            raise ConfigError(
                "this system is too large for a dense factorization",
                expected=f"at most {self.most_unknowns} unknowns",
                got=f"{n} unknowns",
                reason="its coefficients vary in space, or it couples fields, so no basis diagonalizes it",
                fix="method: {kind: multigrid}, {kind: conjugate_gradient}, or {kind: bicgstab} if it is not symmetric",
            )
        return lambda matvec, b: (_dense(matvec, b), jnp.asarray(1.0))


def _dense(matvec: Matvec, b: Array) -> Array:
    identity = jnp.eye(b.size).reshape(b.size, *b.shape)
    matrix = jax.vmap(matvec)(identity).reshape(b.size, b.size).T
    return jnp.linalg.solve(matrix, b.ravel()).reshape(b.shape)
