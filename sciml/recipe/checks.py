"""Whether the sections of a recipe fit together; everything here is known without importing jax."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import InitErrorDetails

from sciml.recipe.components import Component, find
from sciml.recipe.layout import PlanSection
from sciml.recipe.messages import missing_key, problem, unknown_key
from sciml.recipe.sections import FileData, GeneratedData, ModelSection, ProblemSection
from sciml.registry import ComponentInfo, suggestion

Found = Iterator[InitErrorDetails]
EVOLUTION = ("Evolution", "ConservationLaw")
STEADY = ("Steady",)
AXES = ("x", "y", "z")


@dataclass(frozen=True)
class Sections:
    """The sections of a recipe that are right in themselves; None for one that is missing or wrong."""

    problem: ProblemSection | None
    data: GeneratedData | FileData | None
    models: Mapping[str, ModelSection]
    plan: PlanSection | None
    complete: bool = True


def mistakes(sections: Sections) -> Found:
    """Every place where two sections contradict each other."""
    for check in CHECKS:
        yield from check(sections)


def _problem_is_there(sections: Sections) -> Found:
    if not sections.complete or sections.problem is not None:
        return
    if isinstance(sections.data, GeneratedData):
        yield missing_key((), "problem")
    for name, model in sections.models.items():
        weight = model.train.objective.residual
        if weight > 0:
            where = ("models", name, "train", "objective", "residual")
            yield problem(where, "needs an equation: add the section `problem`", weight)


def _axes_are_in_order(sections: Sections) -> Found:
    names = tuple(sections.problem.domain) if sections.problem else ()
    if names != AXES[: len(names)]:
        expected = ", ".join(AXES[: len(names)])
        yield problem(("problem", "domain"), f"{len(names)} axes must be named {expected}", list(names))


def _dimension_suits_equation(sections: Sections) -> Found:
    if sections.problem is None:
        return
    info, count = _equation(sections.problem), len(sections.problem.domain)
    dims = dict(info.constants).get("dims")
    if isinstance(dims, tuple) and count not in dims:
        allowed = " or ".join(str(dim) for dim in dims)
        what = f"{info.name} is written for {allowed} axes"
        yield problem(("problem", "domain"), what, list(sections.problem.domain))


def _boundary_matches_faces(sections: Sections) -> Found:
    if sections.problem is None:
        return
    faces, given = sections.problem.faces, sections.problem.boundary
    missing = [face for face in faces if face not in given]
    if missing:
        where = ("problem", "boundary") if given else ("problem",)
        what = f"no boundary condition for {', '.join(missing)}: every face of a bounded axis needs one"
        yield problem(where, what, at_key=True)
    for face in given:
        periodic = face[:-1] in sections.problem.domain and face not in faces and face[-1:] in ("-", "+")
        if periodic:
            what = f"the axis {face[:-1]} is periodic and has no face {face}: delete this condition"
            yield problem(("problem", "boundary", face), what, at_key=True)
        elif face not in faces:
            yield unknown_key(("problem", "boundary"), face, faces)


def _unknowns_match_equation(sections: Sections) -> Found:
    if sections.problem is None:
        return
    info, initial = _equation(sections.problem), sections.problem.initial
    if info.fields is None:
        return
    declared = [field.name for field in info.fields]
    for key, table in {"initial": initial, "source": sections.problem.source}.items():
        for name in table:
            if name not in declared:
                yield unknown_key(("problem", key), name, declared)
    if isinstance(sections.data, GeneratedData) and _is(info, EVOLUTION):
        where = ("problem", "initial") if initial else ("problem",)
        for name in declared:
            if name not in initial:
                yield problem(where, f"no initial field for {name!r}", at_key=True)


def _time_matches_equation(sections: Sections) -> Found:
    if sections.problem is None:
        return
    info, horizon = _equation(sections.problem), sections.problem.horizon
    times = sections.data.times if isinstance(sections.data, GeneratedData) else None
    if _is(info, EVOLUTION):
        if horizon is None:
            yield missing_key(("problem",), "horizon")
        if isinstance(sections.data, GeneratedData) and times is None:
            yield missing_key(("data",), "times")
    if _is(info, STEADY):
        what = f"{info.name} is steady: delete this key"
        for where, value in ((("problem", "horizon"), horizon), (("data", "times"), times)):
            if value is not None:
                yield problem(where, what, value)
        if sections.problem.initial:
            yield problem(("problem", "initial"), what, at_key=True)
    if isinstance(times, tuple):
        yield from _times_in_order(times, horizon)


def _times_in_order(times: tuple[float, ...], horizon: float | None) -> Found:
    if times[0] <= 0 or any(later <= earlier for earlier, later in zip(times, times[1:], strict=False)):
        yield problem(("data", "times"), "must be > 0 and increasing", list(times))
    elif horizon is not None and times[-1] > horizon:
        yield problem(("data", "times"), f"must not pass problem.horizon, which is {horizon:g}", times[-1])


def _grid_matches_domain(sections: Sections) -> Found:
    if sections.problem is None or not isinstance(sections.data, GeneratedData) or sections.data.grid is None:
        return
    axes, grid = list(sections.problem.domain), list(sections.data.grid)
    if sorted(axes) != sorted(grid):
        yield problem(("data", "grid"), f"must have the axes of problem.domain: {', '.join(axes)}", grid)


def _quantities_once(sections: Sections) -> Found:
    quantities = sections.data.quantities if isinstance(sections.data, GeneratedData) else ()
    kinds = [quantity.kind for quantity in quantities]
    for index, kind in enumerate(kinds):
        if kind in kinds[:index]:
            yield problem(("data", "quantities", index), "is there twice", kind)


def _batches_fit(sections: Sections) -> Found:
    available = sections.data.samples.train if isinstance(sections.data, GeneratedData) else None
    factors = sections.plan.row_parts if sections.plan else {}
    parts = math.prod(factors.values())
    for name, model in sections.models.items():
        where, batch = ("models", name, "train", "batch"), model.train.batch
        if available is not None and batch > available and not model.of_one_instance:
            yield problem(where, f"must be <= data.samples.train, which is {available}", batch)
        if batch % parts and not model.of_one_instance:
            yield problem(where, f"must be a multiple of plan.{' x '.join(factors)}, which is {parts}", batch)


def _split_space_has_no_residual(sections: Sections) -> Found:
    """Derivatives on a grid are taken by transforms over whole axes."""
    if sections.plan is None or sections.plan.domain == 1:
        return
    for name, model in sections.models.items():
        weight = model.train.objective.residual
        if weight and not model.of_one_instance:
            where = ("models", name, "train", "objective", "residual")
            yield problem(where, f"needs whole fields: must be 0 while plan.domain is {sections.plan.domain}", weight)


def _instance_is_there(sections: Sections) -> Found:
    """A model of one instance names a sample of the test split, and coefficients of the equation to recover."""
    for name, model in sections.models.items():
        where, options = ("models", name), model.component.options
        sample = options.get("sample")
        if not model.of_one_instance or not isinstance(sample, int):
            continue
        if isinstance(sections.data, GeneratedData) and sample >= sections.data.samples.test:
            limit = sections.data.samples.test
            yield problem((*where, "sample"), f"must be < data.samples.test, which is {limit}", sample)
        if sections.problem is not None:
            unknown = options.get("unknown", ())
            yield from _unknown_coefficients((*where, "unknown"), unknown, sections.problem)
            if unknown and not model.train.objective.residual:
                residual = (*where, "train", "objective", "residual")
                yield problem(residual, "must be > 0: only the equation knows its coefficients", 0)


def _unknown_coefficients(where: tuple[str, ...], unknown: Sequence[str], section: ProblemSection) -> Found:
    known = [option.name for option in _equation(section).options]
    for index, coefficient in enumerate(unknown):
        if coefficient not in known:
            hint = suggestion(coefficient, known) or f", it has: {', '.join(known) or 'none'}"
            yield problem((*where, index), f"not a coefficient of the equation{hint}", coefficient)


def _modes_fit(sections: Sections) -> Found:
    """An option called `modes` counts Fourier modes per axis: the grid must carry them."""
    if not isinstance(sections.data, GeneratedData) or sections.data.grid is None:
        return
    grid = list(sections.data.grid.items())
    for where, component in _components(sections):
        modes = component.options.get("modes")
        if isinstance(modes, int):
            smallest = min(points for _, points in grid)
            yield from _mode_fits((*where, "modes"), modes, "data.grid", smallest)
        elif isinstance(modes, tuple) and len(modes) not in (1, len(grid)):
            what = f"must have one entry, or one per axis of data.grid ({len(grid)})"
            yield problem((*where, "modes"), what, list(modes))
        elif isinstance(modes, tuple):
            for index, (count, (axis, points)) in enumerate(zip(modes, grid, strict=False)):
                yield from _mode_fits((*where, "modes", index), count, f"data.grid.{axis}", points)


def _mode_fits(where: tuple[str | int, ...], modes: int, of: str, points: int) -> Found:
    if modes > points // 2:
        yield problem(where, f"must be <= {points // 2}, half of {of}", modes)


def _components(sections: Sections) -> Iterator[tuple[tuple[str, ...], Component]]:
    """Components that live on the grid: the models, and the random fields of the problem."""
    for name, model in sections.models.items():
        yield ("models", name), model.component
    if sections.problem is None:
        return
    equation = sections.problem.equation
    tables: dict[tuple[str, ...], Mapping[str, Any]] = {
        ("problem", "initial"): sections.problem.initial,
        ("problem", "source"): sections.problem.source,
        ("problem", "equation"): equation.options,
    }
    for where, table in tables.items():
        for name, value in table.items():
            if isinstance(value, Component):
                yield (*where, name), value


def _equation(section: ProblemSection) -> ComponentInfo:
    return find(section.equation.category, section.equation.kind)


def _is(info: ComponentInfo, bases: tuple[str, ...]) -> bool:
    return any(base in bases for base in info.bases)


CHECKS: tuple[Callable[[Sections], Found], ...] = (
    _problem_is_there,
    _axes_are_in_order,
    _dimension_suits_equation,
    _boundary_matches_faces,
    _unknowns_match_equation,
    _time_matches_equation,
    _grid_matches_domain,
    _quantities_once,
    _batches_fit,
    _split_space_has_no_residual,
    _instance_is_there,
    _modes_fit,
)
