"""What an equation says is conserved, or never grows, along computed solutions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciml.calculus import Spectral
from sciml.domain import Grid
from sciml.equations.base import Evolution
from sciml.errors import NumericalError
from sciml.problem import Problem, make_problem
from sciml.solvers.march import Schedule
from sciml.solvers.method import TimeStepper
from sciml.solvers.solve import solve_traced, with_dt
from sciml.solvers.status import Code
from sciml.solvers.trial import QUICK, box, smooth_fields
from sciml.types import Array

GRID_POINTS = {1: 64, 2: 32, 3: 16}
HORIZON = 0.25
FRAMES = 9
SMALL = 1e-11  # a drift that needs no smaller steps
STEPS = (8, 32, 128, 512, 2048)  # per frame


@dataclass(frozen=True)
class Drift:
    """How the integrals changed, by name, relative to the integral of the absolute value at the start.

    `drifts`: largest change of an invariant; `growths`: largest increase between saved times of what must not grow.
    """

    steps: int
    drifts: dict[str, float]
    growths: dict[str, float]

    @property
    def worst(self) -> float:
        """The largest of them."""
        return max((*self.drifts.values(), *self.growths.values()), default=0.0)


def measure_drift(equation: Evolution, method: TimeStepper) -> Drift:
    """The drifts over `HORIZON` from a smooth state on a periodic box, with steps halved until nothing improves."""
    dim = min(equation.dims)
    grid = Grid(box(dim), (GRID_POINTS[dim],) * dim)
    start = {name: f.at_start for name, f in smooth_fields(equation, dim, seed=31).items()}
    names = [field.name for field in equation.fields]
    problem = make_problem(equation, grid.box, initial={n: start[n] for n in names}, horizon=HORIZON)
    plan = Schedule(tuple(np.linspace(0.0, HORIZON, FRAMES)), 1, True)
    shape = with_dt(method, 1.0)

    @partial(jax.jit, compiler_options=QUICK)
    def run(count: Any) -> tuple[Any, dict[str, Array], dict[str, Array]]:
        values, outcome = solve_traced(problem, count, grid, shape, plan, checked=False)
        fields = {name: values[:, i] for i, name in enumerate(names)}
        return outcome, *integrals(problem, grid, fields)

    found = best = None
    for count in STEPS:
        outcome, *means = run(count)
        found = _drift(count, *means) if Code(int(outcome.code)) is Code.OK else None
        if found is None:
            continue
        if best is not None and found.worst > 0.5 * best.worst:
            break
        best = found
        if best.worst < SMALL:
            break
    if best is None:
        raise NumericalError(
            "no step is small enough to follow the invariants", got=f"{STEPS[-1]} steps per {HORIZON / FRAMES:.3g}"
        )
    return best


def integrals(problem: Problem, grid: Grid, values: dict[str, Array]) -> tuple[dict[str, Array], dict[str, Array]]:
    """Means over the box of the invariants and of what decreases, for trajectories of shape (T, *grid.shape).

    Each has the shape (2, T): the density, and its absolute value.
    """
    d = Spectral(grid, time=0.0)
    fields = problem.fields({name: d.field(v) for name, v in values.items()}, d)
    frames = next(iter(values.values())).shape

    def mean(density: Any) -> Array:
        raw = jnp.broadcast_to(d.values(density) if hasattr(density, "values") else density, frames)
        axes = tuple(range(1, len(frames)))
        return jnp.stack([jnp.mean(raw, axis=axes), jnp.mean(jnp.abs(raw), axis=axes)])

    texts = problem.equation.invariants(fields, d), problem.equation.decreasing(fields, d)
    conserved, decreasing = ({name: mean(density) for name, density in text.items()} for text in texts)
    return conserved, decreasing


def _drift(steps: int, conserved: dict[str, Array], decreasing: dict[str, Array]) -> Drift:
    drifts = {n: _relative(means, lambda v: np.abs(v - v[0]).max()) for n, means in conserved.items()}
    growths = {n: _relative(means, lambda v: max(np.diff(v).max(), 0.0)) for n, means in decreasing.items()}
    return Drift(steps, drifts, growths)


def _relative(means: Any, change: Callable[[np.ndarray], float]) -> float:
    density, size = np.asarray(means)
    return float(change(density) / max(size[0], 1e-300))
