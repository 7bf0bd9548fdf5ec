"""One sample over several ranks: the same problem, grid and method as for `solve`, each rank on a part of the grid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import jax.numpy as jnp
import numpy as np

from sciml.domain import Grid
from sciml.equations.base import stiff_part
from sciml.problem import Problem
from sciml.solvers.admissible import check_coefficients
from sciml.solvers.decomposed.basis import SlabBasis
from sciml.solvers.decomposed.checks import agree, check_alike, check_halo, check_sharing
from sciml.solvers.decomposed.communicator import Communicator
from sciml.solvers.decomposed.halo import HaloSpace
from sciml.solvers.decomposed.part import local_problem, slab
from sciml.solvers.decomposed.reach import reach_of
from sciml.solvers.evolution import discretize
from sciml.solvers.march import Schedule, march_watched
from sciml.solvers.method import TimeStepper
from sciml.solvers.solve import Solution, check, compiled_part, plan_of, sampled
from sciml.solvers.status import Status, failure
from sciml.types import Array

BASIS = SlabBasis
"""Importing it is what makes a part of a periodic grid have coefficients."""


@dataclass(frozen=True)
class RankSolution:
    """What `solve_over_ranks` returns to each process.

    `times`: shape (T,) in s; `fields`: name to values at the rows that this process holds, shape (T, rows, ...), in the
    units of the equation; `first`: the first of these rows; `steps`: time steps taken per saved time.
    """

    times: np.ndarray
    fields: Mapping[str, np.ndarray]
    first: int
    steps: int
    over: Communicator

    def gathered(self) -> Solution | None:
        """The whole solution on the first process, None on the others; all have to call this."""
        whole = self.over.gathered(np.stack(list(self.fields.values()), axis=1))
        if whole is None:
            return None
        return Solution(self.times, {name: jnp.asarray(whole[:, i]) for i, name in enumerate(self.fields)}, self.steps)


def solve_over_ranks(
    problem: Problem, grid: Grid, method: Any, *, times: Any, over: Communicator, alike: bool = True
) -> RankSolution:
    """The solution that `solve` gives, to rounding, with the points shared by the ranks of `over`.

    Every process calls it with the same arguments, which `alike` has compared. Slabs along the first axis: on periodic
    boxes of two or three dimensions by a distributed Fourier transform, with every time stepper; on boxes with faces by
    an exchange of the rows at their edges, with explicit ones. Raises `ConfigError`, on all ranks, for numbers of ranks
    that do not divide the points, slabs thinner than the derivatives reach, methods that cannot be shared and arguments
    that differ; `NumericalError` as `solve` does.
    """
    agree(over, lambda: _check(problem, grid, method, times, over))
    if alike:
        check_alike(problem, grid, method, times, over)
    shape, steps = compiled_part(method, times)
    plan = plan_of(method, times)
    assert isinstance(shape, TimeStepper) and plan is not None, "checked"
    values, outcome = over.run(OnRows(grid, shape, plan, over), problem, steps)
    error = failure(outcome, method, f"the problem of {type(problem.equation).__name__}")
    if error is not None:
        raise error
    here, first = over.held(values)
    fields = {name: here[:, i] for i, name in enumerate(problem.field_names)}
    rows = grid.shape[0] // over.size
    return RankSolution(np.atleast_1d(np.asarray(times, float)), fields, first * rows, int(outcome.steps), over)


@final
@dataclass(frozen=True)
class OnRows:
    """What one rank runs; hashable, so that it is compiled once."""

    grid: Grid
    method: TimeStepper
    plan: Schedule
    over: Communicator

    def __call__(self, problem: Problem, steps: Any) -> tuple[Array, Status]:
        """The saved values of the rows of one rank, shape (T, fields, rows, ...), and how it ended."""
        part: Any = slab(self.grid, self.over)
        space, order = None, self.method.difference_order
        framed: Any = part
        if not all(self.grid.box.periodic):
            space = HaloSpace(part, problem.field_names, problem.boundary, order, halo_width(problem, order))
            framed = space.framed
        problem = sampled(local_problem(problem, part, framed), framed)
        system = discretize(problem, part, self.method, space)
        return march_watched(system, self.method, self.plan, steps, True)


def halo_width(problem: Problem, order: int) -> int:
    """How many rows of its neighbors a rank needs for differences of an order."""

    def whole(u: Any, d: Any) -> dict[str, Any]:
        stiff, rest = stiff_part(problem.equation, u, d), problem.remainder(u, d)
        return {f"{i} {name}": term for i, part in enumerate((stiff, rest)) for name, term in part.items()}

    return reach_of(whole, problem.field_names, problem.domain.dim, order)


def _check(problem: Problem, grid: Grid, method: Any, times: Any, over: Communicator) -> None:
    check(problem, grid, method, times)
    check_coefficients(problem, grid)
    check_sharing(problem, grid, method, over)
    if not all(grid.box.periodic):
        order = method.difference_order
        check_halo(grid, over.size, halo_width(problem, order), order)
