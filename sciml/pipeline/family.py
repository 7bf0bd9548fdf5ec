"""The problems of a recipe: what is the same for all samples, and what is drawn anew for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciml.boundary import CONDITIONS
from sciml.domain import Box, Grid
from sciml.equations.base import Equation, Evolution, field_names
from sciml.errors import ConfigError
from sciml.functions import evaluate_on
from sciml.problem import Problem, make_problem
from sciml.recipe import Component, GeneratedData, ProblemSection, Recipe
from sciml.sampling.series import Constant
from sciml.solvers import stack
from sciml.types import Array, Key

DRAWS, TRAINING, SENSORS, NOISE = range(4)
"""First fold of the seed: every purpose has its own stream of random numbers."""


@dataclass(frozen=True)
class Varying:
    """Something that differs from sample to sample: a number, or a field given by coefficients.

    It is found in a problem at `place` = (part of the problem, name); `unit` is that of its values.
    """

    name: str
    unit: str
    is_field: bool
    coefficients: int
    place: tuple[str, str]

    @property
    def coefficient_name(self) -> str:
        """Name of the variable that holds the numbers which define a field."""
        return f"{self.name}_coefficients"

    def values(self, problem: Problem, grid: Grid) -> dict[str, Array]:
        """A number (), or the field on the grid and its coefficients."""
        value = _at(problem, self.place)
        if not self.is_field:
            return {self.name: jnp.asarray(value, jnp.float64)}
        field = {self.name: evaluate_on(value, grid.points, 0.0)}
        return {**field, self.coefficient_name: value.coefficients} if self.coefficients else field


class Family:
    """All problems that a recipe stands for; `draw(i)` is sample number i, whoever asks for it."""

    def __init__(self, section: ProblemSection, seed: int) -> None:
        self.section, self.seed = section, seed
        axes = section.domain
        self.box = Box(
            tuple(a.lower for a in axes.values()),
            tuple(a.upper for a in axes.values()),
            tuple(a.periodic for a in axes.values()),
        )
        self.equation_class: type[Equation] = section.equation.load()
        self._parameters = {k: _drawable(v) for k, v in section.equation.options.items()}
        self._initial = {k: _drawable(v) for k, v in section.initial.items()}
        self._source = {k: _drawable(v) for k, v in section.source.items()}

    @classmethod
    def of(cls, recipe: Recipe) -> Family:
        """The family of a recipe; `ConfigError` for one that has no `problem`."""
        if recipe.problem is None:
            raise ConfigError(
                "this recipe has no problem to solve",
                expected="a section `problem:` with equation, domain, initial",
                got="data from a file only",
            )
        return cls(recipe.problem, recipe.seed)

    @property
    def is_evolution(self) -> bool:
        """Whether the problems have a time."""
        return issubclass(self.equation_class, Evolution)

    @property
    def field_names(self) -> tuple[str, ...]:
        """Names of the unknowns."""
        return field_names(self.equation_class)

    def draw(self, sample: Any) -> Problem:
        """Problem number `sample` (an integer, traceable); depends on the seed and the number only."""
        key = jax.random.fold_in(jax.random.fold_in(jax.random.key(self.seed), DRAWS), sample)
        groups = (self._parameters, self._initial, self._source)
        parameters, initial, source = (
            self._drawn(group, jax.random.fold_in(key, number)) for number, group in enumerate(groups)
        )
        return make_problem(
            self.equation_class(**parameters),
            self.box,
            initial={k: _function(v) for k, v in initial.items()},
            source={k: _function(v) for k, v in source.items()},
            boundary=self._boundary(),
            horizon=self.section.horizon,
        )

    def _drawn(self, group: Mapping[str, Any], key: Key) -> dict[str, Any]:
        return {
            name: what(jax.random.fold_in(key, number), self.box) if callable(what) else what
            for number, (name, what) in enumerate(sorted(group.items()))
        }

    def _boundary(self) -> dict[str, Any]:
        conditions = {}
        for number, (face, section) in enumerate(self.section.boundary.items()):
            options = {k: v for k, v in section if k != "kind"}
            drawn = _drawable(options.pop("value"))
            value = drawn(jax.random.key(number), self.box) if callable(drawn) else drawn
            conditions[face] = CONDITIONS[section.kind](value=value, **options)
        return conditions

    def problem(self, sample: int) -> Problem:
        """Problem number `sample`, concrete; compiled once for all samples."""
        return self._compiled(sample)

    @cached_property
    def _compiled(self) -> Callable[[int], Problem]:
        return jax.jit(self.draw)

    def stacked(self, samples: np.ndarray) -> Problem:
        """Several problems as one PyTree with a leading sample axis. Drawn one by one, so that the bits agree."""
        return stack([self.problem(int(i)) for i in samples])

    @cached_property
    def varying(self) -> tuple[Varying, ...]:
        """What differs between samples, in the order initial fields, coefficients, sources."""
        example = self.problem(0)
        units = {f.name: f.unit for f in self.equation_class.fields}
        options = {o.name: o.unit or "1" for o in self.section.equation.info.options}
        candidates = [
            *((f"{name}0", units[name], random, ("initial", name)) for name, random in self._initial.items()),
            *((name, options[name], random, ("equation", name)) for name, random in self._parameters.items()),
            *((f"{name}_source", "1", random, ("source", name)) for name, random in self._source.items()),
        ]
        found = [_varying(name, unit, random, place, example) for name, unit, random, place in candidates]
        return tuple(v for v in (*self._bound(found[: len(self._initial)], units), *found) if v is not None)

    def _bound(self, drawn: list[Varying | None], units: Mapping[str, str]) -> list[Varying]:
        """Initial fields that are given, and yet start otherwise in each sample: a constraint ties them to others."""
        changes = getattr(self.equation_class, "start", Evolution.start) is not Evolution.start
        is_tied = changes and all(self.box.periodic) and any(drawn)
        given = [name for name, v in zip(self._initial, drawn, strict=True) if v is None and is_tied]
        return [Varying(f"{name}0", units[name], True, 0, ("initial", name)) for name in given]

    @cached_property
    def fixed_initial(self) -> dict[str, float]:
        """Initial fields that are the same number everywhere and in every sample."""
        example, varying = self.problem(0), {v.place for v in self.varying}
        given = {n: f for n, f in example.initial.items() if isinstance(f, Constant) and ("initial", n) not in varying}
        return {name: float(function.value) for name, function in given.items()}


def grid_of(family: Family, data: GeneratedData) -> Grid:
    """The grid of the data section."""
    assert data.grid is not None, "settled before"
    points = {str(axis): n for axis, n in data.grid.items()}
    cells = getattr(data.method.load(), "cells", False)
    return Grid(family.box, tuple(points[axis] for axis in family.box.names), cells)


def saved_times(family: Family, data: GeneratedData) -> np.ndarray:
    """The saved times after t = 0, shape (T,); empty for a steady problem."""
    if not family.is_evolution:
        return np.zeros(0)
    assert family.section.horizon is not None and data.times is not None, "checked by the recipe"
    if isinstance(data.times, tuple):
        return np.asarray(data.times, dtype=float)
    return np.linspace(0.0, family.section.horizon, int(data.times) + 1)[1:]


def _drawable(value: Any) -> Any:
    """A number as it is, or a function (key, box) -> number or field."""
    if not isinstance(value, Component):
        return value
    random = value.build()
    return random.draw if value.category == "field" else lambda key, box: random.draw(key)


def _function(value: Any) -> Any:
    return value if callable(value) else Constant(jnp.asarray(float(value)))


def _varying(name: str, unit: str, random: Any, place: tuple[str, str], example: Problem) -> Varying | None:
    if not callable(random):
        return None
    value = _at(example, place)
    if not callable(value):
        return Varying(name, unit, False, 0, place)
    size = int(value.coefficients.size)
    return Varying(name, unit, True, size, place) if size else None


def _at(problem: Problem, place: tuple[str, str]) -> Any:
    part, name = getattr(problem, place[0]), place[1]
    return part[name] if isinstance(part, Mapping) else getattr(part, name)
