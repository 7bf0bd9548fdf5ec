"""Many problems of one structure, such that no sample depends on the company it is solved in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciml.domain import Grid
from sciml.errors import ConfigError, NumericalError
from sciml.functions import PlainFunction
from sciml.problem import Problem
from sciml.solvers.admissible import Extremes, extremes, inadmissible
from sciml.solvers.march import Schedule
from sciml.solvers.method import Method
from sciml.solvers.solve import check, compiled_part, place_of, plan_of, solve_traced
from sciml.solvers.status import Status, failure

CHUNK = 16
CACHE_BYTES = 2**20  # of a core, about; the bits of a result must not depend on the machine, so it is not asked
ARRAYS = 8  # of the size of the state that one step touches


@dataclass(frozen=True)
class BatchSolution:
    """What `solve_batch` returns for n problems.

    `times` as in `Solution`; `fields`: name to values, shape (n, T, *grid.shape) or (n, *grid.shape), NaN from the
    first bad time on; `failures`: the failed ones, position in the batch (or id) to the error that explains it;
    `steps`: shape (n,), time steps taken per saved time, or iterations.
    """

    times: np.ndarray | None
    fields: dict[str, np.ndarray]
    failures: dict[int, NumericalError]
    steps: np.ndarray


def stack(problems: Sequence[Problem]) -> Problem:
    """Problems of the same structure as one PyTree whose leaves have a leading axis."""
    return jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *problems)


def solve_batch(
    problems: Problem | Callable[[Any], Problem],
    grid: Grid,
    method: Method,
    *,
    times: Any = None,
    ids: Any = None,
    chunk: int = CHUNK,
) -> BatchSolution:
    """Solve many problems inside programs of `chunk` samples each, a block of them at a time.

    `problems` is a stacked `Problem` (see `stack`), or a function (jax-traceable) from one of the integers `ids`,
    shape (n,), to its problem. The bits of a sample do not depend on the others, on its position, or on n: the program
    has a fixed size, its blocks are as large as the cache of a core holds (all at once on an accelerator), and the
    last chunk is filled up. Failures, coefficients outside of their limits among them, are values, not exceptions;
    raises `ConfigError` as `solve` does.
    """
    make, rows = _as_function(problems, ids)
    example = jax.eval_shape(make, jax.tree.map(lambda leaf: leaf[0], rows))
    check(example, grid, method, times)
    n = len(jax.tree.leaves(rows)[0])
    shape, steps = compiled_part(method, times)
    block = block_size(grid, len(example.field_names), chunk)
    settings = {"make": make, "grid": grid, "method": shape, "plan": plan_of(method, times), "block": block}
    parts: list[tuple[np.ndarray, Status, dict[str, Extremes]]] = []
    for first in range(0, n, chunk):
        taken = np.minimum(np.arange(first, first + chunk), n - 1)
        part = _solve_chunk(_rows_at(rows, taken), steps, **settings)
        parts.append(_rows_at(part, slice(0, n - first)))
    values, outcomes, seen = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
    names = range(n) if ids is None else np.asarray(ids).tolist()
    failures: dict[int, NumericalError] = {}
    for position, name in enumerate(names):
        who, coefficients = f"sample {name}", _rows_at(seen, position)
        error: Any = inadmissible(example.equation, coefficients, grid, NumericalError, f"of {who} ")
        if error is not None:
            values[position] = np.nan
        elif outcomes.code[position]:
            one = Status(*(entry[position] for entry in outcomes))
            error = failure(one, method, who, place_of(one, example, grid, method))
        if error is not None:
            failures[int(name)] = error
    fields = {name: values[..., i, *(slice(None),) * grid.dim] for i, name in enumerate(example.field_names)}
    saved = None if times is None else np.atleast_1d(np.asarray(times, float))
    return BatchSolution(saved, fields, failures, outcomes.steps)


def _as_function(problems: Any, ids: Any) -> tuple[Callable[[Any], Problem], Any]:
    if isinstance(problems, Problem):
        leaves = [jnp.shape(leaf) for leaf in jax.tree.leaves(problems)]
        if not leaves or len({shape[:1] for shape in leaves}) != 1 or leaves[0] == ():
            raise ConfigError(
                "the problems of a batch need one leading axis on every leaf",
                expected="stack([problem, problem, ...])",
                got=f"leaves of shape {leaves}",
            )
        return PlainFunction(_itself), jax.tree.map(np.asarray, problems)
    if ids is None or np.ndim(ids) != 1:
        raise ConfigError("a function of problems needs the ids to call it with", got=ids, fix="ids=np.arange(100)")
    return PlainFunction(problems), np.asarray(ids)


def _rows_at(tree: Any, index: Any) -> Any:
    return jax.tree.map(lambda leaf: np.asarray(leaf)[index], tree)


def _itself(problem: Problem) -> Problem:
    return problem


def block_size(grid: Grid, fields: int, chunk: int) -> int:
    """How many samples are advanced at once: the largest divisor of `chunk` whose arrays fit into the cache of a core.

    Small fields share the cost of a pass, large ones would push each other out of the cache.
    """
    if jax.default_backend() != "cpu":
        return chunk
    fitting = CACHE_BYTES // (ARRAYS * 8 * fields * int(np.prod(grid.shape)))
    return max(n for n in range(1, chunk + 1) if chunk % n == 0 and n <= max(1, fitting))


@partial(jax.jit, static_argnames=("make", "grid", "method", "plan", "block"))
def _solve_chunk(
    rows: Any, steps: Any, *, make: Any, grid: Grid, method: Method, plan: Schedule | None, block: int
) -> Any:
    def one(row: Any) -> Any:
        problem = make(row)
        return *solve_traced(problem, steps, grid, method, plan), extremes(problem, grid)

    return jax.lax.map(one, rows) if block == 1 else jax.lax.map(one, rows, batch_size=block)
