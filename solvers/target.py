"""A grid and a step for a target error, found by measuring what refinement changes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sciml.domain import Grid
from sciml.errors import ConfigError, NumericalError
from sciml.problem import Problem
from sciml.solvers.accuracy import relative_difference
from sciml.solvers.method import EllipticSolver, Method, Scheme, TimeStepper
from sciml.solvers.solve import solve, with_dt

MOST_POINTS = 2**24
MOST_HALVINGS = 20  # of the step
SMALLEST = 1e-12  # target above rounding, which long runs add up


@dataclass(frozen=True)
class Settings:
    """What reaches a target error: `grid` holds every point of the grid given; `method` has the step.

    `step_error` and `grid_error`: relative L2 change of the solution when the step alone, or the grid alone, is
    refined by two, times 1/(1 - 2^-p) for what refinement without end would still change at order p (Richardson);
    `told` says what was tried, a line each.
    """

    grid: Grid
    method: Method
    step_error: float
    grid_error: float
    told: tuple[str, ...]

    @property
    def error(self) -> float:
        """The estimated relative L2 error: the sum of both."""
        return self.step_error + self.grid_error


def settings_for(
    problem: Problem,
    grid: Grid,
    method: Method,
    *,
    error: float,
    times: Any = None,
    most_points: int = MOST_POINTS,
    tell: Callable[[str], None] | None = None,
) -> Settings:
    """Grid and step, as coarse as doubling finds them, with an estimated relative L2 error of at most `error`.

    Starts from `grid` and the step of `method`, halves whichever of spacing and step costs more than half of the
    error allowed (a step by as much as the order of the method promises), and compares at the points and `times` of
    `grid`. A run that is unstable or blows up counts as infinitely wrong and halves the step. Raises `ConfigError`
    unless 1e-12 <= error < 1, `NumericalError` when a grid of `most_points` or a step of dt/2^20 does not reach it.
    """
    if not SMALLEST <= error < 1:
        raise ConfigError(
            "a target error is relative and above rounding",
            expected=f"{SMALLEST:g} <= error < 1",
            got=error,
            fix="error=1e-4",
        )
    search = _Search(problem, grid, method, times)
    told: list[str] = []
    while search.halvings <= MOST_HALVINGS and math.prod(search.fine.shape) <= most_points:
        step_error, grid_error = search.errors()
        told.append(f"{search.described}: step {step_error:.1e}, grid {grid_error:.1e}")
        if tell is not None:
            tell(told[-1])
        if step_error + grid_error <= error:
            return Settings(search.fine, search.stepper, step_error, grid_error, tuple(told))
        search.refine(step_error, grid_error, error)
    raise NumericalError(
        "the target error was not reached",
        expected=f"an estimated error of at most {error:g}",
        got=told[-1] if told else f"{math.prod(grid.shape)} points to begin with",
        reason="the solution is not smooth, or the order of the method too low",
        fix="a larger error, or a method of higher order",
    )


class _Search:
    """The present grid and step, and the solutions that have been computed."""

    def __init__(self, problem: Problem, grid: Grid, method: Method, times: Any) -> None:
        self._problem, self._grid, self._method, self._times = problem, grid, method, times
        self._factor, self.halvings = 1, 0
        self._solved: dict[tuple[int, int], dict[str, np.ndarray] | None] = {}

    @property
    def fine(self) -> Grid:
        """The present grid."""
        return self._grid if self._factor == 1 else self._grid.refined(self._factor)

    @property
    def stepper(self) -> Method:
        """The method with the present step."""
        return self._with_step(self.halvings)

    @property
    def described(self) -> str:
        """Points and step in words."""
        points = " x ".join(map(str, self.fine.shape))
        steps = isinstance(self._method, TimeStepper | Scheme)
        return f"{points} points, dt = {getattr(self.stepper, 'dt', 0.0):.3g}" if steps else f"{points} points"

    def errors(self) -> tuple[float, float]:
        """What half the step changes, and half the spacing; the first is 0 without steps."""
        here = self._solution(self._factor, self.halvings)
        has_steps = isinstance(self._method, TimeStepper | Scheme)
        shorter = self._solution(self._factor, self.halvings + 1) if has_steps else here
        finer = self._solution(2 * self._factor, self.halvings)
        if here is None or shorter is None:
            return math.inf, 0.0
        step_error = _without_end(self._time_order) * relative_difference(here, shorter)
        if finer is None:
            return step_error, math.inf
        return step_error, _without_end(self._space_order) * relative_difference(here, finer)

    def refine(self, step_error: float, grid_error: float, error: float) -> None:
        """Halve what is more than half of the error allowed; a grid that is too fine for the step shortens it."""
        if math.isinf(step_error) or math.isinf(grid_error):
            self.halvings += 1
            return
        if step_error > error / 2:
            self.halvings += max(1, math.floor(math.log2(2 * step_error / error) / self._time_order))
        if grid_error > error / 2:
            self._factor *= 2

    @property
    def _time_order(self) -> int:
        method = self._method
        return method.order if isinstance(method, TimeStepper) else getattr(method, "time_order", 1)

    @property
    def _space_order(self) -> float:
        """1 where there may be shocks, none for Fourier series, else that of the differences."""
        if not isinstance(self._method, TimeStepper | EllipticSolver):
            return 1.0
        is_series = isinstance(self._method, TimeStepper) and all(self._grid.box.periodic)
        return math.inf if is_series else self._method.difference_order

    def _with_step(self, halvings: int) -> Method:
        if not isinstance(self._method, TimeStepper | Scheme):
            return self._method
        return with_dt(self._method, self._method.dt / 2**halvings)

    def _solution(self, factor: int, halvings: int) -> dict[str, np.ndarray] | None:
        if (factor, halvings) not in self._solved:
            self._solved[factor, halvings] = self._solve(factor, halvings)
        return self._solved[factor, halvings]

    def _solve(self, factor: int, halvings: int) -> dict[str, np.ndarray] | None:
        grid = self._grid if factor == 1 else self._grid.refined(factor)
        try:
            fields = solve(self._problem, grid, self._with_step(halvings), times=self._times).fields
        except NumericalError:
            return None
        cells = self._with_step(halvings).cells
        return {n: self._grid.restricted(np.asarray(v), factor, averages=cells) for n, v in fields.items()}


def _without_end(order: float) -> float:
    return 1 / (1 - 2.0**-order)
