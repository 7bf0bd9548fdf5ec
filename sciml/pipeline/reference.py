"""What models are compared with: exact or refined solutions of held-out samples, and the solver's own cost."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import numpy as np

from sciml.data import Dataset
from sciml.domain import Grid
from sciml.errors import SciMLError
from sciml.metrics import relative_l2
from sciml.pipeline.generation import Simulation
from sciml.solvers import TimeStepper, reference_solution, solve
from sciml.solvers.accuracy import Reference
from sciml.solvers.method import Scheme
from sciml.solvers.solve import with_dt

SAMPLES = 24
COST_SAMPLES = 3
CALLS = 15
COARSENINGS = (1, 2, 4)
STEP_FACTORS = (1, 2, 4, 8, 16, 32)


@dataclass(frozen=True, eq=False)
class References:
    """Reference solutions of the first test samples, computed on first use."""

    simulation: Simulation
    dataset: Dataset

    @cached_property
    def numbers(self) -> np.ndarray:
        """Ids of the samples."""
        return self.dataset.rows("test")[:SAMPLES]

    @cached_property
    def solutions(self) -> list[Reference]:
        """One reference per sample."""
        return [self.of(int(number)) for number in self.numbers]

    def of(self, number: int) -> Reference:
        """The reference solution of one sample."""
        s = self.simulation
        return reference_solution(s.family.problem(number), s.grid, times=s.times_or_none, method=s.method)

    @property
    def own_error(self) -> float:
        """Largest stated error of the references themselves."""
        return float(np.max([s.error for s in self.solutions]))

    @property
    def kind(self) -> str:
        """`exact` or `refined`."""
        return self.solutions[0].kind

    def fields(self, name: str) -> np.ndarray:
        """Reference values of a field, shape (samples, T, *grid.shape) or (samples, *grid.shape)."""
        return np.stack([np.asarray(s.fields[name]) for s in self.solutions])

    def quantity(self, name: str) -> np.ndarray:
        """A quantity of interest of the references, shape (samples,)."""
        return np.asarray([self._quantity(name, i) for i in range(len(self.numbers))])

    def _quantity(self, name: str, index: int) -> float:
        problem = self.simulation.family.problem(int(self.numbers[index]))
        fields = {k: np.asarray(v) for k, v in self.solutions[index].fields.items()}
        initial = {k: np.asarray(v) for k, v in self.simulation.start(problem).items()}
        return float(self.simulation.measured(fields, initial)[name])

    @cached_property
    def solver_error(self) -> float:
        """Mean relative L2 error of the stored samples against the references."""
        names = self.simulation.family.field_names
        stored = self.dataset.read(names, split="test", indices=np.arange(len(self.numbers)))
        errors = [relative_l2(stored[n][i], self.fields(n)[i]) for n in names for i in range(len(self.numbers))]
        return float(np.mean(errors))

    @cached_property
    def costs(self) -> list[tuple[float, float]]:
        """(mean relative error, seconds per solve) of the solver on coarser grids and with longer steps."""
        return [cost for factor in COARSENINGS for cost in self._costs_on(factor)]

    def _costs_on(self, factor: int) -> list[tuple[float, float]]:
        grid, times = coarsened(self.simulation.grid, factor), self.simulation.times_or_none
        if grid is None:
            return []
        found = []
        for method in _variants(self.simulation.method):
            try:
                errors = [self._error_on(i, grid, method, factor) for i in range(min(COST_SAMPLES, len(self.numbers)))]
            except SciMLError:  # unstable or not converged: not a candidate
                continue
            run = partial(solve, self.simulation.family.problem(int(self.numbers[0])), grid, method, times=times)
            found.append((float(np.mean(errors)), seconds_per_call(lambda run=run: run().fields)))
        return found

    def _error_on(self, index: int, grid: Grid, method: Any, factor: int) -> float:
        problem = self.simulation.family.problem(int(self.numbers[index]))
        fields = solve(problem, grid, method, times=self.simulation.times_or_none).fields
        reference = self.solutions[index].fields
        cells = method.cells
        pairs = [(fields[n], grid.restricted(np.asarray(reference[n]), factor, averages=cells)) for n in reference]
        return float(np.mean([relative_l2(found, expected) for found, expected in pairs]))

    def seconds_at(self, error: float) -> float | None:
        """Time of the cheapest solve whose mean error is at most `error`, or the solver's own where that is larger."""
        return min((seconds for e, seconds in self.costs if e <= max(error, self.solver_error)), default=None)


def coarsened(grid: Grid, factor: int) -> Grid | None:
    """The grid with every `factor`-th point, or with cells that many times as long; None where that is no grid."""
    if any(n % factor or n // factor < 8 for n in grid.intervals):
        return None
    shape = (k // factor + n - k for n, k in zip(grid.shape, grid.intervals, strict=True))
    return Grid(grid.box, tuple(shape), grid.cells)


def _variants(method: Any) -> list[Any]:
    if not isinstance(method, TimeStepper | Scheme):
        return [method]
    return [with_dt(method, method.dt * factor) for factor in STEP_FACTORS]


def seconds_per_call(function: Callable[[], Any]) -> float:
    """Median time of a call, after one that compiles."""
    jax.block_until_ready(function())
    spent = []
    for _ in range(CALLS):
        began = time.perf_counter()
        jax.block_until_ready(function())
        spent.append(time.perf_counter() - began)
    return float(np.median(spent))
