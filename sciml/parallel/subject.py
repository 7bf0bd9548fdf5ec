"""What is going to be trained, as shapes; and its layout over devices that need not exist."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import jax
from flax import nnx
from jax.sharding import PartitionSpec as P

from sciml import axes
from sciml.parallel.layout import Layout
from sciml.parallel.losses import loss_functions
from sciml.parallel.plan import Plan
from sciml.parallel.work import Work, work_of
from sciml.training.objective import Batch, Objective, Residuals
from sciml.training.optimizer import Optimizer
from sciml.training.state import Precision, TrainState, cast, parameters, with_parameters
from sciml.types import PyTree

Traffic = Callable[[Plan, int], Mapping[str, float]]


@final
@dataclass(frozen=True, eq=False)
class Subject:
    """A model with its objective, optimizer and one batch, of which only shapes matter.

    traffic: (plan, rows per device) -> bytes of activations by mesh axis; None where no formula is known.
    limits: logical axis of activations (space) -> a number that its parts must divide.
    """

    model: nnx.Module
    objective: Objective
    optimizer: Optimizer
    rows: Batch
    precision: Precision
    traffic: Traffic | None = None
    limits: Mapping[str, int] = dataclasses.field(default_factory=dict)

    @cached_property
    def state(self) -> TrainState:
        """Shapes of parameters and optimizer state."""

        def start(params: PyTree) -> TrainState:
            model = with_parameters(self.model, params)
            return TrainState.start(model, self.optimizer, jax.random.key(0), self.precision)

        return jax.eval_shape(start, parameters(self.model))

    @cached_property
    def batch(self) -> Batch:
        """Shapes of a batch with all that the objective adds."""
        arrays = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), self.rows)
        prepared = jax.eval_shape(lambda rows: self.objective.prepare(rows, jax.random.key(0)), arrays)
        return jax.eval_shape(lambda rows: cast(rows, self.precision), prepared)

    @cached_property
    def splits(self) -> dict[str, int]:
        """Logical axis -> greatest common divisor of the lengths of all axes that bear its name."""
        found = dict(self.limits)
        for variable in jax.tree.leaves(parameters(self.model), is_leaf=_is_variable):
            names = variable.get_metadata().get("axes") or ()
            for name, size in zip(names, jax.tree.leaves(variable)[0].shape, strict=False):
                if name:
                    found[name] = math.gcd(found.get(name, 0), size)
        return found

    @property
    def has_grid(self) -> bool:
        """Whether `domain` splits space, and not rows."""
        return getattr(self.model, "space_axes", None) is not None


def traced(subject: Subject, plan: Plan, parts: int = 1) -> Work:
    """The work of one device in one step, with the rows of a batch divided by `parts` (and by the plan)."""
    layout = Layout.abstract(subject.model, plan, subject.state.params)
    assemble = layout.assembler(subject.model)

    def residuals(params: PyTree, batch: Batch) -> Residuals:
        return subject.objective.residuals(assemble(params), batch)

    def on_device(params: PyTree, opt_state: PyTree, batch: Batch) -> tuple[PyTree, ...]:
        with axes.placed(layout.placement()):
            update = subject.optimizer.update(loss_functions(residuals, batch, layout), params, opt_state)
        return update.params, update.state, update.parts

    step = plan.accumulate * plan.microbatches * (1 if subject.has_grid else plan.domain)
    batch = {name: fewer(leaf, parts, step) for name, leaf in subject.batch.items()}
    held, moments = (layout.specs(tree, sharded=False) for tree in (subject.state.params, subject.state.opt_state))
    specs = (held, moments, layout.batch(batch))
    sharded = jax.shard_map(on_device, mesh=layout.mesh, in_specs=specs, out_specs=(held, moments, P()))
    program = jax.make_jaxpr(sharded)(subject.state.params, subject.state.opt_state, batch)
    return work_of(program)


def fewer(leaf: Any, parts: int, step: int) -> jax.ShapeDtypeStruct:
    """A part of the rows, rounded up to a multiple of `step`."""
    rows = math.ceil(leaf.shape[0] / parts / step) * step
    return jax.ShapeDtypeStruct((rows, *leaf.shape[1:]), leaf.dtype)


def _is_variable(leaf: Any) -> bool:
    return isinstance(leaf, nnx.Variable)
