"""The points of a grid that one rank holds, in the place of a grid."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np

from sciml.calculus.series import GridSeries
from sciml.calculus.spectral import fitted
from sciml.domain import Box, Grid
from sciml.functions import is_sampled
from sciml.problem import Problem
from sciml.solvers.decomposed.communicator import Communicator
from sciml.solvers.stability import ROUGH, rough_on, rough_values
from sciml.types import Array


@final
class Part:
    """Rows `first` to `first + count - 1` along the first axis of `whole`; past an end they go on at the other.

    It has what readings ask of a grid. `first` may be traced; `box` is that of the whole grid unless given, with the
    faces that this part has. Sampled values may have `spare` = (before, after) rows more.
    """

    def __init__(self, whole: Grid, over: Communicator, first: Any, count: int, box: Box | None = None) -> None:
        self.spare: tuple[int, int] = (0, 0)
        self.whole, self.over, self.first, self.box = whole, over, first, box or whole.box
        self.dim, self.cells = whole.dim, whole.cells
        self.shape = (count, *whole.shape[1:])
        self.spacing = whole.spacing
        numbers = jnp if isinstance(first, jax.Array) else np
        self.rows: Any = (first + numbers.arange(count)) % whole.shape[0]
        coordinate: Any = numbers.take(numbers.asarray(whole.axes[0]), self.rows)
        self.axes: tuple[Any, ...] = (coordinate, *whole.axes[1:])

    @property
    def is_traced(self) -> bool:
        """Whether jax does not know yet which rank this is."""
        return isinstance(self.rows, jax.Array)

    @cached_property
    def points(self) -> Any:
        """Coordinates of the points, shape (*shape, dim)."""
        numbers = jnp if self.is_traced else np
        return numbers.stack(numbers.meshgrid(*self.axes, indexing="ij"), axis=-1)

    def of(self, values: Any) -> Any:
        """The rows of this part of values on the whole grid, shape (..., *whole.shape)."""
        numbers = np if isinstance(values, np.ndarray) and not self.is_traced else jnp
        return numbers.take(values, self.rows, axis=-self.dim)


def inner(outer: Part, low: int, high: int, box: Box) -> Part:
    """The rows `low` to `high - 1` of a part, for which values sampled on the whole part are good."""
    part = Part(outer.whole, outer.over, outer.first + low, high - low, box)
    part.spare = (low, outer.shape[0] - high)
    return part


@fitted.register
def _(part: Part, values: Any) -> Any:
    """Without the spare rows."""
    place = jnp.ndim(values) - part.dim
    before, after = part.spare
    if not before + after or jnp.shape(values)[place] != before + part.shape[0] + after:
        return values
    return jax.lax.slice_in_dim(jnp.asarray(values), before, before + part.shape[0], axis=place)


def slab(whole: Grid, over: Communicator) -> Part:
    """The rows of one rank; they are as many on each."""
    count = whole.shape[0] // over.size
    return Part(whole, over, over.rank * count, count)


@rough_on.register
def _(part: Part, fields: int) -> Array:
    """The same values as on the whole grid; a rank that knows its rows makes no more than a few others at a time."""
    if part.is_traced:
        return part.of(rough_values(fields, part.whole.shape))
    draw, row = np.random.default_rng(ROUGH), part.whole.shape[1:]
    values = np.empty((fields, *part.shape))
    last = part.first + part.shape[0]
    for field in range(fields):
        for i in range(part.whole.shape[0]):
            numbers = draw.standard_normal(row)
            if part.first <= i < last:
                values[field, i - part.first] = numbers
    return jnp.asarray(values)


def local_problem(problem: Problem, part: Part, framed: Part) -> Problem:
    """The problem with sampled values cut: those of the start to a part, the others to one with more rows."""
    equation = problem.equation
    coefficients = {f.name: _cut(getattr(equation, f.name), framed) for f in dataclasses.fields(equation)}
    return dataclasses.replace(
        problem,
        equation=dataclasses.replace(equation, **coefficients),
        initial={name: _cut(value, part) for name, value in problem.initial.items()},
        source={name: _cut(value, framed) for name, value in problem.source.items()},
    )


def _cut(value: Any, part: Part) -> Any:
    if isinstance(value, GridSeries):
        return dataclasses.replace(value, values=part.of(value.values))
    return part.of(value) if is_sampled(value) and jnp.shape(value) == part.whole.shape else value
