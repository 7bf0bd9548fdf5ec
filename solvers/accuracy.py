"""How wrong a numerical solution is: against a finer one, or against a reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sciml.domain import Grid
from sciml.metrics import relative_l2
from sciml.problem import Problem
from sciml.solvers.conjugate_gradient import ConjugateGradient
from sciml.solvers.etdrk4 import Etdrk4
from sciml.solvers.exact import exact_solution
from sciml.solvers.method import Method, Scheme, TimeStepper
from sciml.solvers.solve import solve, with_dt

DEFAULT_STEPS = 1000  # per horizon, of a reference without a method


@dataclass(frozen=True)
class Reference:
    """Fields to compare with, name to (T, *grid.shape) or (*grid.shape), and their own relative L2 `error`."""

    fields: Mapping[str, np.ndarray]
    error: float
    kind: Literal["exact", "refined"]


def error_estimate(problem: Problem, grid: Grid, method: Method, *, times: Any = None) -> float:
    """The solver's measured error: relative L2 difference to half the step and twice the resolution.

    Taken over all fields, saved times and the points of `grid`, of which the finer grid holds all. Raises as `solve`.
    """
    coarse = {name: np.asarray(v) for name, v in solve(problem, grid, method, times=times).fields.items()}
    return relative_difference(coarse, _finer(problem, grid, method, times, 2))


def reference_solution(problem: Problem, grid: Grid, *, times: Any = None, method: Method | None = None) -> Reference:
    """The exact solution where one is known, else the solution on a grid refined fourfold with a quarter of the step.

    The error of a refined reference is its difference to the next coarser one, an upper bound once it converges.
    `method` is what a refined reference is computed with; averages over cells are compared with refined
    ones only. Raises as `solve`.
    """
    chosen = method or _default_method(problem)
    has_averages = isinstance(chosen, Scheme) and chosen.cells
    exact = None if has_averages else exact_solution(problem, grid, times)
    if exact is not None:
        return Reference(exact.fields, exact.error, "exact")
    once, twice = (_finer(problem, grid, chosen, times, factor) for factor in (2, 4))
    return Reference(twice, relative_difference(once, twice), "refined")


def relative_difference(values: Mapping[str, np.ndarray], reference: Mapping[str, np.ndarray]) -> float:
    """|values - reference| / |reference| in L2 per field, the largest of them; NaN if any is.

    A field whose reference is zero counts with the norm of its values. Raises `DataError` for unequal shapes.
    """
    return float(np.max([relative_l2(values[name], right) for name, right in reference.items()]))


def _finer(problem: Problem, grid: Grid, method: Method, times: Any, factor: int) -> dict[str, np.ndarray]:
    """The solution on a grid `factor` times as fine with a step `factor` times as short, on `grid`."""
    finer = with_dt(method, method.dt / factor) if isinstance(method, TimeStepper | Scheme) else method
    fields = solve(problem, grid.refined(factor), finer, times=times).fields
    return {n: grid.restricted(np.asarray(v), factor, averages=method.cells) for n, v in fields.items()}


def _default_method(problem: Problem) -> Method:
    if problem.is_evolution:
        return Etdrk4(dt=float(problem.horizon) / DEFAULT_STEPS)
    return ConjugateGradient()
