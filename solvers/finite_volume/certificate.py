"""Finite volumes as a part of the certificate of a conservation law: their order on smooth averages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciml.calculus import Pointwise
from sciml.domain import Grid
from sciml.equations.base import add, field_names, read, remainder, stiff_part
from sciml.equations.conservation import ConservationLaw
from sciml.problem import make_problem
from sciml.solvers.finite_volume.cells import cell_averages
from sciml.solvers.finite_volume.reconstruction import RECONSTRUCTIONS
from sciml.solvers.finite_volume.system import CellSystem
from sciml.solvers.structure import derivatives, read_structure
from sciml.solvers.trial import QUICK, box, smooth_fields

COUNTS = {1: (32, 48, 64, 96), 2: (24, 32, 40, 48), 3: (12, 16, 20, 24)}
DIFFUSION_ORDER = 4
TOLERANCE = 0.2


def tendency_errors(law: ConservationLaw, reconstruction: str) -> np.ndarray:
    """Errors of the rates of change of the averages on four grids of `COUNTS` cells per axis, shape (4,).

    Against the averages of the pointwise reading of the same text at a smooth state, relative to their mean size. The
    mean of all cells, except where a limiter flattens extrema: then the median, which is that of the other cells.
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
    typical = np.median if RECONSTRUCTIONS[reconstruction][1] == 2 else np.mean
    for n in COUNTS[dim]:
        grid = Grid(box(dim), (n,) * dim, cells=True)
        system = CellSystem(problem, grid, reconstruction, "van_leer", "hllc", limited=False)

        def both(system: CellSystem = system, grid: Grid = grid) -> tuple[Any, Any]:
            exact = jnp.stack([cell_averages(functions[name], grid) for name in problem.field_names])
            return system.rate(system.initial(), 0.0, 1e-6), exact

        found, exact = map(np.asarray, jax.jit(both, compiler_options=QUICK)())
        errors.append(float(typical(np.abs(found - exact)) / np.abs(exact).mean()))
    return np.asarray(errors)


def _of_space(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: function(jnp.append(x, 0.0))


def orders_on_cells(law: ConservationLaw) -> Iterator[tuple[str, float, float, np.ndarray]]:
    """(reconstruction, observed order, declared order, errors) of each; that of diffusion is 4, whatever the rest."""
    dim = min(law.dims)
    counts, limit = COUNTS[dim], DIFFUSION_ORDER if _diffuses(law, dim) else np.inf
    for reconstruction, (_, order) in RECONSTRUCTIONS.items():
        declared = min(order, limit)
        errors = tendency_errors(law, reconstruction)
        yield reconstruction, -float(np.polyfit(np.log(counts), np.log(errors), 1)[0]), declared, errors


def _diffuses(law: ConservationLaw, dim: int) -> bool:
    def terms(u: Any, d: Any) -> dict[str, Any]:
        return add(stiff_part(law, u, d), read(law.nonstiff, u, d))

    return bool(derivatives(read_structure(terms, field_names(law), dim)) & {"second", "compact", "even"})


def order_on_cells(law: ConservationLaw) -> tuple[bool, tuple[str, ...]]:
    """Every reconstruction reaches its order, to 0.2."""
    passed, lines = True, []
    for reconstruction, order, declared, errors in orders_on_cells(law):
        passed &= order >= declared - TOLERANCE
        listed = "  ".join(f"{e:.1e}" for e in errors)
        counts = COUNTS[min(law.dims)]
        lines.append(f"{reconstruction}, observed {order:.2f}, declared {declared:g}, on {counts} cells: {listed}")
    return passed, tuple(lines)
