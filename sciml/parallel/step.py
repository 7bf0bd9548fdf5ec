"""One training step for every model, objective, optimizer and plan.

Everything happens inside one `jax.shard_map` over the rows of the batch, with `jit` and donation outside:
left to itself, `jit` gathers whole batches onto every device as soon as there is an FFT in the model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import jax
import jax.numpy as jnp
from flax import nnx
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from sciml.parallel.losses import loss_functions
from sciml.parallel.plan import DATA, Plan
from sciml.training.objective import Batch, Objective, Residuals
from sciml.training.optimizer import Optimizer, Parts
from sciml.training.state import TrainState, cast
from sciml.types import Array, PyTree

Metrics: TypeAlias = dict[str, Array]


@final
@dataclass(frozen=True)
class Step:
    """A compiled step: (state, batch) -> (next state, metrics). The given state is consumed (donated).

    Metrics: loss, loss/<term> for each term, grad_norm, learning_rate or damping, and `finite`.
    With `repeat` > 1 one call makes that many steps: the arrays of the batch, and of the metrics, have a
    leading axis of that length.
    """

    function: Any
    whole: NamedSharding
    repeat: int = 1

    def __call__(self, state: TrainState, batch: Batch) -> tuple[TrainState, Metrics]:
        if state.step.sharding != self.whole:  # a new state; otherwise the second call would compile again
            state = jax.device_put(state, self.whole)
        return self.function(state, batch)


def build_step(
    model: nnx.Module,
    objective: Objective,
    optimizer: Optimizer,
    plan: Plan | None = None,
    *,
    repeat: int = 1,
) -> Step:
    """The step for one kind of training; compiled at its first call.

    `model` gives structure and constants (normalization statistics); the parameters are those of the state.
    `repeat` > 1 is worth it where a step is shorter than its dispatch.
    """
    plan = plan or Plan()
    mesh = plan.mesh()
    assemble = _assembler(model, plan)

    def residuals(params: PyTree, batch: Batch) -> Residuals:
        return objective.residuals(assemble(params), batch)

    def on_device(params: PyTree, opt_state: PyTree, batch: Batch) -> tuple[PyTree, PyTree, Metrics]:
        update = optimizer.update(loss_functions(residuals, batch, plan), params, opt_state)
        return update.params, update.state, _metrics(update.info, update.parts)

    sharded = jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P(), P(DATA)), out_specs=P())

    def step(state: TrainState, batch: Batch) -> tuple[TrainState, Metrics]:
        batch = objective.prepare(batch, jax.random.fold_in(state.key, state.step))
        plan.check_rows(batch)
        params, opt_state, metrics = sharded(state.params, state.opt_state, cast(batch, plan.precision))
        return TrainState(state.step + 1, params, opt_state, state.key), metrics

    def steps(state: TrainState, batches: Batch) -> tuple[TrainState, Metrics]:
        return jax.lax.scan(step, state, batches, length=repeat)

    whole = plan.replicated()
    function = step if repeat == 1 else steps
    jitted = jax.jit(function, donate_argnums=0, in_shardings=(whole, None), out_shardings=whole)
    return Step(jitted, whole, repeat)


def _assembler(model: nnx.Module, plan: Plan) -> Callable[[PyTree], nnx.Module]:
    """params -> model. Constants are kept on the host, so that they belong to no device."""
    graphdef, _, constants = nnx.split(model, nnx.Param, ...)
    constants = cast(jax.device_get(constants), plan.precision)
    return lambda params: nnx.merge(graphdef, params, jax.tree.map(jnp.asarray, constants))


def _metrics(info: Parts, parts: Parts) -> Metrics:
    finite = jnp.isfinite(info["loss"]) & jnp.isfinite(info["grad_norm"])
    return {**info, **{f"loss/{name}": value for name, value in parts.items()}, "finite": finite}
