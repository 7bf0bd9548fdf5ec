"""Held-out errors against the reference, latency of one call, and speed-up against the solver at equal accuracy."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import jax
import numpy as np
from flax import nnx

from sciml.metrics import sample_errors
from sciml.pipeline.generation import TIME
from sciml.pipeline.instance import Instance
from sciml.pipeline.reference import References, seconds_per_call
from sciml.pipeline.tasks import Context, held_out_errors, predict
from sciml.pipeline.training import Trained
from sciml.recipe import ModelSection
from sciml.report import FieldComparison, ModelRow, QuantityComparison
from sciml.spec import Variable

SHOWN = 2


@dataclass(frozen=True)
class Outcome:
    """The table row of a model, and what the report shows of it."""

    row: ModelRow
    fields: tuple[FieldComparison, ...] = ()
    quantities: tuple[QuantityComparison, ...] = ()


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Everything the evaluations of all models share."""

    context: Context

    @cached_property
    def references(self) -> References | None:
        """Reference solutions; None when the data are a user's file and nothing but them is known."""
        simulation = self.context.simulation
        return None if simulation is None else References(simulation, self.context.dataset)

    def row(self, name: str, trained: Trained, errors: np.ndarray, latency: float, note: str = "") -> ModelRow:
        """The table row of a model with these errors of single samples."""
        references, error = self.references, float(np.mean(errors))
        solver = None if references is None else references.seconds_at(error)
        return ModelRow(
            name,
            parameters=trained.summary["parameters"],
            training_seconds=trained.summary["seconds"],
            error=error,
            error_spread=float(np.std(errors)) if np.ptp(errors) else None,
            reference_error=None if references is None else references.solver_error,
            latency_seconds=latency,
            speedup=None if solver is None else solver / latency,
            note=note,
        )

    def compare(self, model: str, variable: Variable, truth: np.ndarray, guess: np.ndarray) -> FieldComparison:
        """A field of one sample for the report."""
        layout = self.context.dataset.layout
        points = {axis: np.asarray(layout.coordinates[axis].values) for axis in variable.axes}
        times = points.pop(TIME, None)
        periodic = set(layout.periodic) >= set(points)
        return FieldComparison(model, variable.name, variable.unit, points, times, truth, guess, periodic=periodic)


class Judge(abc.ABC):
    """How the models of one task are evaluated."""

    @abc.abstractmethod
    def evaluate(self, evaluation: Evaluation, name: str, section: ModelSection, trained: Trained) -> Outcome:
        """Error, latency, speed-up, and what to show."""


@final
class SampleJudge(Judge):
    """Models of samples: fields to fields, or numbers to quantities."""

    def evaluate(self, evaluation: Evaluation, name: str, section: ModelSection, trained: Trained) -> Outcome:
        """Against the references of the first test samples, or the whole test split where there are none."""
        del section
        dataset, spec = evaluation.context.dataset, trained.prepared.spec
        references = evaluation.references
        rows = np.arange(len(dataset.rows("test")) if references is None else len(references.numbers))
        inputs = dataset.read([v.name for v in spec.inputs], split="test", indices=rows)
        graphdef, state = nnx.split(trained.model)
        guesses = {k: np.asarray(v, np.float64) for k, v in predict(graphdef, state, inputs).items()}
        truths = {v.name: _truth(evaluation, v, rows) for v in spec.outputs}
        errors = held_out_errors(spec.outputs, guesses, truths)
        first = {k: v[:1] for k, v in inputs.items()}
        latency = seconds_per_call(lambda: predict(graphdef, state, first))
        spatial = [v for v in spec.outputs if v.spatial]
        shown = [
            evaluation.compare(name, v, truths[v.name][i], guesses[v.name][i])
            for v in spatial
            for i in range(min(SHOWN, len(rows)))
        ]
        numbers = [v for v in spec.outputs if not v.spatial]
        quantities = [QuantityComparison(name, v.name, v.unit, truths[v.name], guesses[v.name]) for v in numbers]
        return Outcome(evaluation.row(name, trained, errors, latency), tuple(shown), tuple(quantities))


@final
class InstanceJudge(Judge):
    """A model of one instance, on all grid points and saved times."""

    def evaluate(self, evaluation: Evaluation, name: str, section: ModelSection, trained: Trained) -> Outcome:
        """Against the reference of its own sample; the note tells the coefficients found."""
        context, config = evaluation.context, section.component.build()
        assert context.simulation is not None and evaluation.references is not None
        instance = Instance(context.simulation, context.dataset, config, context.recipe.seed)
        reference = evaluation.references.of(instance.number)
        guess = instance.predict(trained.model)
        truth = {k: np.asarray(reference.fields[k]) for k in guess}
        errors = [sample_errors(guess[k][None], truth[k][None])[0] for k in guess]
        latency = seconds_per_call(lambda: jax.tree.map(np.asarray, instance.predict(trained.model)))
        variables = {v.name: v for v in context.dataset.layout.outputs}
        shown = tuple(evaluation.compare(name, variables[k], truth[k], guess[k]) for k in guess)
        note = _coefficients(instance, trained.model)
        return Outcome(evaluation.row(name, trained, np.asarray([np.mean(errors)]), latency, note), shown)


JUDGES: Mapping[str, Judge] = {"operator": SampleJudge(), "quantities": SampleJudge(), "instance": InstanceJudge()}


def _truth(evaluation: Evaluation, variable: Variable, rows: np.ndarray) -> np.ndarray:
    references = evaluation.references
    if references is None:
        return evaluation.context.dataset.read([variable.name], split="test", indices=rows)[variable.name]
    return references.fields(variable.name) if variable.spatial else references.quantity(variable.name)


def _coefficients(instance: Instance, model: Any) -> str:
    parts = []
    for name, value in model.coefficients().items():
        true = float(getattr(instance.problem.equation, name))
        parts.append(f"{name} {float(value):.6g} (true {true:.6g}, {float(value) / true - 1:+.2%})")
    return ", ".join(parts)
