"""The methods that solve problems on meshes: Galerkin's for steady ones, with TR-BDF2 in time for evolutions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from sciml.errors import ConfigError
from sciml.solvers.method import Method


@final
@dataclass(frozen=True)
class Galerkin(Method):
    """Finite elements for steady problems; Newton's method if they are nonlinear.

    `linear_solver`: "direct" (SuperLU), "conjugate_gradients" (symmetric positive definite systems, large ones in
    space) or "petsc" (needs petsc4py). `tolerance`: of the residual, relative to the size of its terms.
    """

    references: ClassVar[tuple[str, ...]] = (
        "S. C. Brenner, L. R. Scott, The Mathematical Theory of Finite Element Methods (2008), ch. 5",
    )
    linear_solver: str = "direct"
    tolerance: float = 1e-9
    max_newton_steps: int = 30


@final
@dataclass(frozen=True)
class TrBdf2(Method):
    """Finite elements in space and TR-BDF2 in time: one step, order 2, L-stable, for any time step.

    `dt` is the largest step; steps are shortened to land on the saved times. Both stages have the same matrix, which
    a linear equation with coefficients constant in time factors once.
    """

    references: ClassVar[tuple[str, ...]] = (
        "R. E. Bank et al., IEEE Trans. Electron Devices 32 (1985) 1992",
        "M. E. Hosea, L. F. Shampine, Appl. Numer. Math. 20 (1996) 21, eqs. (2)-(4)",
    )
    order: ClassVar[int] = 2
    dt: float = 0.01
    linear_solver: str = "direct"
    tolerance: float = 1e-9
    max_newton_steps: int = 30

    def __post_init__(self) -> None:
        if isinstance(self.dt, (int, float)) and not self.dt > 0:
            raise ConfigError("a time step is positive", got=self.dt, fix="TrBdf2(dt=0.01)")
