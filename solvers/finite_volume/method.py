"""Finite volumes as a method of recipes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, final

import jax
import numpy as np

from sciml.boundary import Condition
from sciml.calculus.finite_volume import FaceStates
from sciml.domain import Grid
from sciml.equations.base import FieldSet, read
from sciml.equations.conservation import ConservationLaw
from sciml.errors import ConfigError
from sciml.registry import option, register
from sciml.solvers.finite_volume.march import LARGEST_COURANT, march_plainly, march_watched
from sciml.solvers.finite_volume.reconstruction import RECONSTRUCTIONS
from sciml.solvers.finite_volume.system import CellSystem
from sciml.solvers.march import Schedule
from sciml.solvers.method import Scheme
from sciml.solvers.status import Status
from sciml.solvers.structure import flux_is_pointwise
from sciml.types import Array


@register("method", "finite_volume")
@final
@dataclass(frozen=True)
class FiniteVolume(Scheme):
    """Finite volumes with SSP-RK3 for conservation laws, with or without shocks; fields are averages over the cells.

    The ends of the cells are reconstructed by `weno5` (order 5 where smooth) or by `muscl` with a limiter (order 2,
    more robust, but on dry ground it sends a thin film ahead of the water); `riemann` makes fluxes of them (`hllc` is
    `rusanov` for laws without contacts). Mass is conserved to rounding, density, pressure and depth stay positive.
    Diffusion, reactions and sources are explicit. Steps are as long as `cfl` allows: sum over axes of
    speed * dt / cell; `dt` bounds them, too, and `integrate` takes it as it is, up to half a cell per step: beyond it,
    and where a density, pressure or depth is negative, its values are NaN.
    """

    references: ClassVar[tuple[str, ...]] = (
        "C.-W. Shu, S. Osher, J. Comput. Phys. 77 (1988) 439, eq. (2.18)",
        "G.-S. Jiang, C.-W. Shu, J. Comput. Phys. 126 (1996) 202",
        "E. F. Toro, Riemann Solvers and Numerical Methods for Fluid Dynamics (2009), ch. 10, 14",
    )
    cells: ClassVar[bool] = True
    time_order: ClassVar[int] = 3

    dt: float = option(1.0, above=0.0, unit="s", doc="largest time step; cfl usually makes it shorter")
    cfl: float = option(0.4, above=0.0, maximum=0.5, doc="cells that the fastest wave may cross per step, at most 0.5")
    reconstruction: Literal["weno5", "muscl"] = "weno5"
    limiter: Literal["mc", "minmod", "van_leer"] = "mc"
    riemann: Literal["hllc", "rusanov"] = "hllc"

    @property
    def order(self) -> int:
        """The order in space where the solution is smooth."""
        return RECONSTRUCTIONS[self.reconstruction][1]

    def check(self, problem: Any, grid: Grid) -> None:
        """A conservation law, cells on bounded axes, a possible CFL number, conditions of a kind that is known."""
        name = type(problem.equation).__name__
        if not isinstance(problem.equation, ConservationLaw):
            raise ConfigError(
                f"{name} is no conservation law that finite volumes could read",
                expected="an equation class with a base ConservationLaw, which tells its max_speed",
                got=f"{name}({', '.join(base.__name__ for base in type(problem.equation).__bases__)})",
                fix="method: {kind: etdrk4}, or def max_speed(self, u, axis, d) in the class",
            )
        flux = jax.tree.map(lambda leaf: 1.0, problem.equation).flux  # coefficients may be shapes without values
        if not flux_is_pointwise(lambda u, d: read(flux, u, d), problem.field_names, grid.dim):
            raise ConfigError(
                f"the flux of {name} contains a derivative",
                expected="a flux that the state at a face tells; diffusion stands in `stiff` or `nonstiff`",
                reason="finite volumes would lose it: states at the faces have no slope",
                fix="def nonstiff(self, u, d): return {'u': d.divergence(tuple(k * s for s in d.gradient(u.u)))}",
            )
        if grid.box.faces and not grid.cells:
            raise ConfigError(
                "finite volumes on a bounded axis need a grid of cells",
                expected="Grid(box, shape, cells=True), whose points are the centers of the cells",
                got="a grid with points on the faces of the box",
            )
        if not 0 < self.cfl <= LARGEST_COURANT:
            raise ConfigError(
                "the CFL number is not allowed",
                expected=f"0 < cfl <= {LARGEST_COURANT:g}",
                got=self.cfl,
                reason="beyond it a step is no mean of steps of first order, so that new extrema and negative "
                "densities can appear",
                fix="cfl: 0.4",
            )
        for face, conditions in problem.boundary.items():
            kinds = [conditions] if isinstance(conditions, Condition) else list(conditions.values())
            if any(c.alpha and c.beta for c in kinds):
                raise ConfigError(
                    f"finite volumes know no Robin condition (face {face})",
                    expected="dirichlet (the state that flows in), neumann 0 (outflow), or "
                    "sciml.solvers.finite_volume.cells.wall(equation, axis)",
                    fix=f"boundary={{'{face}': neumann(0.0)}}",
                )

    def explain(self, problem: Any, grid: Grid, place: int) -> str:
        """The cell, its center, and which quantity is negative."""
        quantity, cell = divmod(place, int(np.prod(grid.shape)))
        d, ones = FaceStates(grid.dim, grid.points), FieldSet(dict.fromkeys(problem.field_names, 1.0))
        names = ("", *(f"of {name} " for name in jax.eval_shape(lambda e: e.positive(ones, d), problem.equation)))
        return names[quantity] + grid.described(cell)

    def march_plainly(self, problem: Any, grid: Grid, plan: Schedule) -> Array:
        """Fixed steps."""
        return march_plainly(self._system(problem, grid), plan)

    def march_watched(self, problem: Any, grid: Grid, plan: Schedule, steps: Any) -> tuple[Array, Status]:
        """Adaptive steps."""
        return march_watched(self._system(problem, grid), plan, steps, self.cfl)

    def _system(self, problem: Any, grid: Grid) -> CellSystem:
        return CellSystem(problem, grid, self.reconstruction, self.limiter, self.riemann)
