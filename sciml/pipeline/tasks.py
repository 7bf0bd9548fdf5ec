"""What a model of a recipe is asked to learn: fields from fields, numbers from numbers, or one instance.

A model's config class names its task (`task: ClassVar[str]`); nothing else in the pipeline asks what it trains.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, final

import jax
import numpy as np
from flax import nnx

from sciml.data import Dataset, Layout, statistics
from sciml.errors import ConfigError
from sciml.metrics import relative_l2, sample_errors
from sciml.operators.physics import grid_residual
from sciml.parallel.plan import Plan
from sciml.pinn.model import point_spec
from sciml.pipeline.choosing import automatic
from sciml.pipeline.generation import Simulation, open_data
from sciml.pipeline.instance import Instance
from sciml.pipeline.progress import Progress
from sciml.recipe import GeneratedData, ModelSection, Recipe
from sciml.spec import Spec, Statistics, Variable
from sciml.training.loop import Batches, SameBatch
from sciml.training.objective import Data, Objective, Weighted

EVALUATED_SAMPLES, SELFTEST_SAMPLES = 64, 2


@dataclass(frozen=True)
class Context:
    """A recipe, the folder of its run, and (opened on first use) its data."""

    recipe: Recipe
    folder: Path

    @cached_property
    def dataset(self) -> Dataset:
        """The verified data."""
        return open_data(self.recipe, self.folder)

    @cached_property
    def simulation(self) -> Simulation | None:
        """The solver side; None when the data are a user's file."""
        return Simulation.of(self.recipe, self.folder) if isinstance(self.recipe.data, GeneratedData) else None

    @property
    def layout(self) -> Layout:
        """Names, units and shapes of the data, known before they are generated."""
        return self.dataset.layout if self.simulation is None else self.simulation.layout

    @cached_property
    def statistics(self) -> dict[str, Statistics]:
        """Statistics of every variable over the training split."""
        return statistics(self.dataset)

    def plan(self, section: ModelSection) -> Plan:
        """The layout over devices of one model's training; said in one line where the recipe leaves it open."""
        if self.recipe.plan.auto:
            return self._chosen(section)
        wanted = self.recipe.plan.model_dump(exclude={"auto"})
        return Plan(**wanted, precision=section.train.precision)

    def _chosen(self, section: ModelSection) -> Plan:
        known, key = self._plans, repr(section)
        if key not in known:
            outline = task_of(section).outline(self, section)
            known[key], line = automatic(self.recipe, section, outline, self.simulation)
            if jax.process_index() == 0:
                Progress().say(line)
        return known[key]

    @cached_property
    def _plans(self) -> dict[str, Plan]:
        return {}


@dataclass(frozen=True)
class Prepared:
    """A model ready to be trained.

    `measure` maps a model to {"error": relative L2 error on held-out data, ...}; `plan` lays it over devices;
    `selftest_inputs` are a few rows of inputs for the artifact's self-test. `selects`: the parameters with the
    smallest measured error are kept; not so where the error is measured on the very truth that is looked for.
    """

    model: nnx.Module
    spec: Spec
    objective: Objective
    batches: Batches
    measure: Callable[[nnx.Module], dict[str, float]]
    plan: Plan
    selftest_inputs: dict[str, np.ndarray]
    selects: bool


class Task(abc.ABC):
    """Builds what training, evaluation and export need for one model of a recipe."""

    @abc.abstractmethod
    def outline(self, context: Context, section: ModelSection) -> tuple[nnx.Module, tuple[Variable, ...]]:
        """The untrained model and its inputs, without any data: its constants are not those of the data."""

    @abc.abstractmethod
    def prepare(self, context: Context, section: ModelSection) -> Prepared:
        """Model, objective, batches. Raises ConfigError or DataError where the recipe asks for the impossible."""


@final
class OperatorTask(Task):
    """Input fields and scalars to output fields, from the samples of the data set."""

    def outline(self, context: Context, section: ModelSection) -> tuple[nnx.Module, tuple[Variable, ...]]:
        """See `Task`."""
        return _outline(context.recipe.seed, section, self._spec(context.layout, None))

    def prepare(self, context: Context, section: ModelSection) -> Prepared:
        """See `Task`."""
        return _from_samples(context, section, self._spec(context.layout, context.statistics), relative=True)

    def _spec(self, layout: Layout, seen: dict[str, Statistics] | None) -> Spec:
        inputs = tuple(v.name for v in layout.inputs if not _is_list_of_coefficients(v)) + _names(layout.parameters)
        return layout.spec(inputs, _names(layout.outputs), seen)


@final
class QuantityTask(Task):
    """Parameters and coefficients to quantities of interest."""

    def outline(self, context: Context, section: ModelSection) -> tuple[nnx.Module, tuple[Variable, ...]]:
        """See `Task`."""
        return _outline(context.recipe.seed, section, self._spec(context.layout, section, None))

    def prepare(self, context: Context, section: ModelSection) -> Prepared:
        """See `Task`."""
        return _from_samples(context, section, self._spec(context.layout, section, context.statistics), relative=False)

    def _spec(self, layout: Layout, section: ModelSection, seen: dict[str, Statistics] | None) -> Spec:
        numbers = [v for v in (*layout.inputs, *layout.parameters) if not v.spatial]
        outputs = layout.quantities or tuple(v for v in layout.outputs if not v.spatial)
        if not numbers or not outputs:
            raise ConfigError(
                f"model {section.component.kind!r} maps numbers to numbers, and the data have none",
                expected="parameters that differ from sample to sample, and quantities",
                got=f"inputs {[v.name for v in numbers]}, outputs {[v.name for v in outputs]}",
                fix="data: {quantities: [final_energy, ...]}",
            )
        return layout.spec(_names(numbers), _names(outputs), seen)


@final
class InstanceTask(Task):
    """One held-out instance of the problem: sensor readings and the residual of the equation."""

    def outline(self, context: Context, section: ModelSection) -> tuple[nnx.Module, tuple[Variable, ...]]:
        """See `Task`."""
        problem, config = _simulation(context, section).family.problem(0), section.component.build()
        units = dict.fromkeys(problem.field_names, (0.0, 1.0))
        model = config.build(problem, units, dict.fromkeys(config.unknown, 1.0), seed=context.recipe.seed)
        return model, point_spec(problem, {}).inputs

    def prepare(self, context: Context, section: ModelSection) -> Prepared:
        """See `Task`."""
        simulation = _simulation(context, section)
        instance = Instance(simulation, context.dataset, section.component.build(), context.recipe.seed)
        weights = section.train.objective
        return Prepared(
            instance.model(),
            instance.spec(context.statistics),
            instance.objective(weights.data, weights.residual),
            SameBatch(instance.readings()),
            instance.measure,
            context.plan(section),
            instance.some_points(SELFTEST_SAMPLES),
            selects=False,
        )


TASKS: dict[str, Task] = {"operator": OperatorTask(), "quantities": QuantityTask(), "instance": InstanceTask()}


def task_of(section: ModelSection) -> Task:
    """The task that the model's class names."""
    return TASKS[section.component.load().task]


def _simulation(context: Context, section: ModelSection) -> Simulation:
    if context.simulation is None:
        raise ConfigError(
            f"model {section.component.kind!r} needs the equation",
            expected="a recipe with `problem` and generated data",
            got="data from a file",
        )
    return context.simulation


def _outline(seed: int, section: ModelSection, spec: Spec) -> tuple[nnx.Module, tuple[Variable, ...]]:
    unit = {v.name: Statistics(0.0, 1.0, -1.0, 1.0) for v in (*spec.inputs, *spec.outputs)}
    return section.component.build(dtype=section.train.precision).build(spec, unit, seed=seed), spec.inputs


def _from_samples(context: Context, section: ModelSection, spec: Spec, *, relative: bool) -> Prepared:
    train, dataset = section.train, context.dataset
    inputs, outputs = _names(spec.inputs), _names(spec.outputs)
    model = section.component.build(dtype=train.precision).build(spec, context.statistics, seed=context.recipe.seed)
    scales = None if relative else tuple(float(np.max(context.statistics[n].std)) or 1.0 for n in outputs)
    terms: dict[str, tuple[Objective, float]] = {}
    if train.objective.data:
        terms["data"] = (Data(outputs, relative=relative, inputs=inputs, scales=scales), train.objective.data)
    if train.objective.residual:
        terms["residual"] = (_residual(context), train.objective.residual)
    names, seed = (*inputs, *outputs), context.recipe.seed
    batches = dataset.batches(names, batch_size=train.batch, seed=seed, dtype=train.precision)
    some = dataset.read(inputs, split="test", indices=np.arange(min(SELFTEST_SAMPLES, len(dataset.rows("test")))))
    measure, plan = _held_out(dataset, spec), context.plan(section)
    selects = "validation" in dataset.splits
    return Prepared(model, spec, Weighted(terms), batches, measure, plan, some, selects)


def _residual(context: Context) -> Objective:
    simulation = context.simulation
    if simulation is None:
        raise ConfigError(
            "the residual of an equation is asked for, and the recipe has no problem",
            fix="objective: {data: 1.0}",
        )
    return grid_residual(
        simulation.family.problem(0),
        simulation.grid,
        times=simulation.times if simulation.family.is_evolution else None,
        replace={v.name: v.place for v in simulation.family.varying},
        difference_order=getattr(simulation.method, "difference_order", 2),
    )


def _held_out(dataset: Dataset, spec: Spec) -> Callable[[nnx.Module], dict[str, float]]:
    """Relative L2 error on the validation samples (the test samples where there are none)."""
    split = "validation" if "validation" in dataset.splits else "test"
    rows = dataset.rows(split)[:EVALUATED_SAMPLES]
    inputs = dataset.read(_names(spec.inputs), split=split, indices=np.arange(len(rows)))
    truth = dataset.read(_names(spec.outputs), split=split, indices=np.arange(len(rows)))

    def measure(model: nnx.Module) -> dict[str, float]:
        predictions = predict(*nnx.split(model), inputs)
        return {"error": float(np.mean(held_out_errors(spec.outputs, predictions, truth)))}

    return measure


def held_out_errors(outputs: tuple[Variable, ...], guess: Mapping[str, Any], truth: Mapping[str, Any]) -> np.ndarray:
    """Relative L2 errors: of each sample for fields, over all samples for a number (a single one may be near 0)."""
    parts = []
    for v in outputs:
        p, t = np.asarray(guess[v.name], np.float64), np.asarray(truth[v.name], np.float64)
        parts.append(sample_errors(p, t) if v.spatial else np.full(len(t), relative_l2(p, t)))
    return np.mean(parts, axis=0)


@partial(jax.jit, static_argnums=0)
def predict(graphdef: Any, state: Any, batch: dict[str, Any]) -> dict[str, Any]:
    """Outputs of a split model for a batch of inputs."""
    return jax.vmap(nnx.merge(graphdef, state))(batch)


def _is_list_of_coefficients(variable: Variable) -> bool:
    return variable.role == "scalar" and variable.shape != ()


def _names(variables: Any) -> tuple[str, ...]:
    return tuple(v.name for v in variables)
