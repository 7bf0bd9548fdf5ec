"""Finite volumes as a part of the certificate of a conservation law: their order on smooth averages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciml.calculus import Pointwise
from sciml.domain import Grid
from sciml.equations.base import add, remainder, stiff_part
from sciml.equations.conservation import ConservationLaw
from sciml.problem import make_problem
from sciml.solvers.finite_volume.cells import cell_averages
from sciml.solvers.finite_volume.system import CellSystem
from sciml.solvers.trial import box, smooth_fields

COUNTS = (32, 48, 64, 96)
DIFFUSION_ORDER = 4


def tendency_errors(law: ConservationLaw, reconstruction: str) -> np.ndarray:
    """Mean error of the rates of change of the averages on grids of 32 to 96 cells per axis, shape (4,).

    Against the averages of the pointwise reading of the same text at a smooth state, relative to their mean size.
    """
    dim = min(law.dims)
    fields = smooth_fields(law, dim, seed=5, highest=1)
    state = {name: f.at_start for name, f in fields.items()}
    problem = make_problem(law, box(dim), initial=state, horizon=1.0)
    d = Pointwise(dim, has_time=True)
    at_points = {n: d.field(lambda z, f=f: f(z[:dim])) for n, f in state.items()}
    terms = add(stiff_part(law, at_points, d), remainder(law, at_points, d))
    functions = {name: _of_space(d.values(terms.get(name, 0.0))) for name in problem.field_names}
    errors = []
    for n in COUNTS:
        grid = Grid(box(dim), (n,) * dim, cells=True)
        system = CellSystem(problem, grid, reconstruction, "van_leer", "hllc", limited=False)
        found = np.asarray(jax.jit(lambda system=system: system.rate(system.initial(), 0.0, 1e-6))())
        exact = np.stack([np.asarray(cell_averages(functions[name], grid)) for name in problem.field_names])
        errors.append(float(np.abs(found - exact).mean() / np.abs(exact).mean()))
    return np.asarray(errors)


def _of_space(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: function(jnp.append(x, 0.0))


def order_on_cells(law: ConservationLaw) -> tuple[bool, tuple[str, ...]]:
    """WENO5 reaches order 5 where nothing diffuses, else at least the 4 of diffusion."""
    errors = tendency_errors(law, "weno5")
    order = -float(np.polyfit(np.log(COUNTS), np.log(errors), 1)[0])
    listed = "  ".join(f"{e:.1e}" for e in errors)
    return order > DIFFUSION_ORDER - 0.2, (f"weno5, observed {order:.2f}, errors on {COUNTS} cells: {listed}",)
