"""A recipe's model as shapes, for predictions without its data; and the choice of `plan: auto`."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias, cast

import jax
import numpy as np
from flax import nnx

from sciml.errors import ConfigError
from sciml.operators.traffic import activation_traffic, has_formulas, space_limits
from sciml.parallel.choice import Choice, choose
from sciml.parallel.compression import compressible
from sciml.parallel.hardware import PRESETS, preset_of
from sciml.parallel.layout import Layout, refuse_undivided
from sciml.parallel.names import DOMAIN, EXPERT, PIPELINE, TENSOR
from sciml.parallel.plan import Plan
from sciml.parallel.step import refuse_unsuited
from sciml.parallel.subject import Subject, traced
from sciml.pinn.model import coordinate_names
from sciml.pinn.network import has_zero_dirichlet_faces
from sciml.pinn.objectives import BoundaryResidual, PointResidual
from sciml.pipeline.generation import Simulation
from sciml.recipe import ModelSection, Recipe
from sciml.spec import Variable
from sciml.training.objective import Batch, Data, Objective, Weighted

Outline: TypeAlias = tuple[nnx.Module, tuple[Variable, ...]]
"""The untrained model and its inputs."""


def automatic(
    recipe: Recipe, section: ModelSection, outline: Outline, simulation: Simulation | None
) -> tuple[Plan, str]:
    """The plan that is predicted to be the fastest on the devices that there are, and one line that says so.

    One process may leave devices idle where that is faster, or where nothing divides otherwise; several may not.
    """
    count, nodes = len(jax.devices()), jax.process_count()
    machine = preset_of(jax.devices()[0].device_kind) or PRESETS["cpu"]
    subject, base = subject_of(recipe, section, outline, simulation), base_plan(recipe, section)
    numbers = [count] if nodes > 1 else [n for n in range(count, 0, -1) if count % n == 0]
    found: list[Choice] = []
    refused: ConfigError | None = None
    for number in numbers:
        try:
            found.append(choose(subject, base, number, nodes, machine))
        except ConfigError as error:
            refused = refused or error
    if not found:
        assert refused is not None
        raise refused
    best = min(found, key=lambda choice: choice.best.seconds)
    return best.best.plan, f"plan: auto, {best.devices} of {count} device(s), {best.reason()}"


def refuse_impossible(
    recipe: Recipe, section: ModelSection, outline: Outline, simulation: Simulation | None, plan: Plan
) -> None:
    """Raise ConfigError where a plan cannot train a model; needs neither data nor the plan's devices.

    The step is traced where the plan splits what is computed: some layers tell only then what does not divide.
    """
    subject = subject_of(recipe, section, outline, simulation)
    if plan.compress != "none":
        compressible(subject.optimizer, plan.compress)
    refuse_undivided(subject.model, plan)
    refuse_unsuited(plan, subject.objective, subject.optimizer, has_grid=subject.has_grid)
    Layout.abstract(subject.model, plan, subject.state.params).batch(subject.batch)
    if plan.used(TENSOR, PIPELINE, EXPERT, DOMAIN):  # the same on each device, whoever stores the parameters
        alike = dataclasses.replace(plan, data=plan.data * plan.fsdp, fsdp=1, zero=0, compress="none")
        traced(subject, alike)


def base_plan(recipe: Recipe, section: ModelSection) -> Plan:
    """What the recipe says about everything that is not chosen."""
    section_of_plan = recipe.plan
    kept = ("accumulate", "schedule", "attention", "transform", "compress", "rank", "warmup", "whole")
    values = {name: getattr(section_of_plan, name) for name in kept}
    return Plan(**values, precision=section.train.precision)


def subject_of(recipe: Recipe, section: ModelSection, outline: Outline, simulation: Simulation | None) -> Subject:
    """One model of a recipe with its objective and the shapes of a batch."""
    model, base = outline[0], base_plan(recipe, section)
    optimizer = section.train.optimizer.build().build(section.train.steps)
    objective, batch = _GOALS[section.component.load().task](section, outline, simulation)
    known = has_formulas(model)
    traffic = partial(activation_traffic, model) if known else None
    limits = space_limits(model, base) if known else {}
    return Subject(model, objective, optimizer, batch, section.train.precision, traffic, limits)


def _samples(section: ModelSection, outline: Outline, simulation: Simulation | None) -> tuple[Objective, Batch]:
    del simulation
    inputs, outputs = outline[1], cast(Any, outline[0]).spec.outputs
    relative = bool(outputs[0].spatial)
    names, scales = tuple(v.name for v in outputs), None if relative else (1.0,) * len(outputs)
    goal = Data(names, relative=relative, inputs=tuple(v.name for v in inputs), scales=scales)
    rows = section.train.batch
    kind = np.dtype("float64" if section.train.precision == "float64" else "float32")
    batch = {v.name: jax.ShapeDtypeStruct((rows, *v.shape), kind) for v in (*inputs, *outputs)}
    return Weighted({"data": (goal, section.train.objective.data or 1.0)}), batch


def _points(section: ModelSection, outline: Outline, simulation: Simulation | None) -> tuple[Objective, Batch]:
    del outline
    assert simulation is not None
    config = section.component.build()
    problem = simulation.family.problem(0)
    coordinates = coordinate_names(problem.box, problem.is_evolution)
    weights, terms = section.train.objective, dict[str, tuple[Objective, float]]()
    times = len(simulation.times) if problem.is_evolution else 1
    ones = defaultdict[str, float](lambda: 1.0)
    if config.sensors and weights.data:
        scales = (1.0,) * len(problem.field_names)
        terms["data"] = (Data(problem.field_names, relative=False, inputs=coordinates, scales=scales), weights.data)
    if weights.residual:
        terms["residual"] = (PointResidual(problem, points=config.points, scales=ones), weights.residual)
    if problem.boundary and not has_zero_dirichlet_faces(problem):
        terms["boundary"] = (BoundaryResidual(problem, max(config.points // 16, 8), ones), 1.0)
    rows = config.sensors * times
    names = (*coordinates, *problem.field_names) if rows else ()
    return Weighted(terms), {name: jax.ShapeDtypeStruct((rows,), np.dtype("float64")) for name in names}


_GOALS: dict[str, Callable[..., tuple[Objective, Batch]]] = {
    "operator": _samples,
    "quantities": _samples,
    "instance": _points,
}
"""Task -> objective and shapes of a batch; the residual of an operator's physics is left out of the prediction."""
