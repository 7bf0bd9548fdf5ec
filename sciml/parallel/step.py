"""One training step for every model, objective, optimizer and plan.

Everything happens inside one `jax.shard_map` over the plan's mesh, with `jit` and donation outside: left to
itself, `jit` gathers whole batches onto every device as soon as there is an FFT in the model, and never
scatters a sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias, final

import jax
import jax.numpy as jnp
from flax import nnx

from sciml import axes
from sciml.errors import ConfigError
from sciml.parallel.compression import Compressed
from sciml.parallel.layout import Layout
from sciml.parallel.losses import loss_functions
from sciml.parallel.names import DATA
from sciml.parallel.pipeline import Stages
from sciml.parallel.plan import Plan
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
    leading axis of that length. `shardings` says which devices hold what of the state. `waits`: every call waits for
    its result, because devices that share a processor starve each other of threads when several steps are under way.
    """

    function: Any
    shardings: TrainState
    repeat: int = 1
    waits: bool = False

    def __call__(self, state: TrainState, batch: Batch) -> tuple[TrainState, Metrics]:
        result = self.function(self.place(state), batch)
        return jax.block_until_ready(result) if self.waits else result

    def place(self, state: TrainState) -> TrainState:
        """The state on the devices of the plan; a new state otherwise would compile the second call again."""
        if state.step.sharding != self.shardings.step or not self._holds(state.params, self.shardings.params):
            return jax.device_put(state, self.shardings)
        return state

    @staticmethod
    def _holds(tree: PyTree, shardings: PyTree) -> bool:
        """Whether every part of a tree is where a prefix of shardings wants it."""
        kinds, structure = jax.tree.flatten(shardings)
        parts = structure.flatten_up_to(tree)
        pairs = zip(kinds, parts, strict=True)
        return all(leaf.sharding == kind for kind, part in pairs for leaf in jax.tree.leaves(part))


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
    `repeat` > 1 is worth it where a step is shorter than its dispatch. Raises ConfigError where the plan does not
    suit the devices, the model, the objective or the optimizer.
    """
    plan = plan or Plan()
    layout = Layout.of(model, plan)
    _refuse_uncompressed(plan, optimizer)
    refuse_unsuited(plan, objective, optimizer, has_grid=layout.space is not None)
    assemble = layout.assembler(model)
    state = _abstract_state(model, optimizer, plan)
    stored, held = (layout.specs(state.params, sharded=plan.zero >= stage) for stage in (3, 1))
    moments = layout.specs(state.opt_state, sharded=plan.zero >= 1)

    def residuals(params: PyTree, batch: Batch) -> Residuals:
        return objective.residuals(assemble(params), batch)

    interleaved = plan.schedule == "1f1b" and plan.pipeline > 1
    stages = Stages.of(assemble, objective) if interleaved else None

    def on_device(params: PyTree, opt_state: PyTree, batch: Batch) -> tuple[PyTree, PyTree, Metrics]:
        own = layout.cut(params) if plan.zero in (1, 2) else params

        def whole(shards: PyTree) -> PyTree:
            return params if shards is own and plan.zero < 3 else layout.gather(shards)

        with axes.placed(layout.placement()):
            update = optimizer.update(loss_functions(residuals, batch, layout, whole, stages), own, opt_state)
        return update.params, update.state, _metrics(update.info, update.parts)

    def step(state: TrainState, batch: Batch) -> tuple[TrainState, Metrics]:
        batch = cast(objective.prepare(batch, jax.random.fold_in(state.key, state.step)), plan.precision)
        sharded = jax.shard_map(
            on_device,
            mesh=layout.mesh,
            in_specs=(stored, moments, layout.batch(batch)),
            out_specs=(held, moments, layout.whole),
        )
        params, opt_state, metrics = sharded(state.params, state.opt_state, batch)
        params = jax.lax.with_sharding_constraint(params, shardings.params)  # from ZeRO 1 on: gathers the shards
        return TrainState(state.step + 1, params, opt_state, state.key), metrics

    def steps(state: TrainState, batches: Batch) -> tuple[TrainState, Metrics]:
        return jax.lax.scan(step, state, batches, length=repeat)

    whole = layout.shardings(layout.whole)
    shardings = TrainState(whole, layout.shardings(stored), layout.shardings(moments), whole)
    function = step if repeat == 1 else steps
    jitted = jax.jit(function, donate_argnums=0, in_shardings=(shardings, None), out_shardings=(shardings, whole))
    shares_processor = layout.mesh.size > 1 and jax.devices()[0].platform == "cpu"
    return Step(jitted, shardings, repeat, waits=shares_processor)


def _abstract_state(model: nnx.Module, optimizer: Optimizer, plan: Plan) -> TrainState:
    """Shapes of the state: parameters and what the optimizer keeps for them."""
    return jax.eval_shape(lambda: TrainState.start(model, optimizer, jax.random.key(0), plan.precision))


def _refuse_uncompressed(plan: Plan, optimizer: Optimizer) -> None:
    if plan.compress != "none" and plan.sizes[DATA] > 1 and not isinstance(optimizer, Compressed):
        raise ConfigError(
            "the plan compresses gradients and the optimizer does not",
            got=optimizer.title,
            fix="optimizer = sciml.parallel.compression.compressed(optimizer, model, plan)",
        )


def refuse_unsuited(plan: Plan, objective: Objective, optimizer: Optimizer, *, has_grid: bool) -> None:
    """Raise ConfigError where a plan splits what an optimizer or a loss needs whole; needs no devices."""
    if not optimizer.is_elementwise and (plan.zero or plan.used("tensor", "pipeline", "expert")):
        raise ConfigError(
            "this optimizer needs whole parameters on every device",
            expected="one that treats every number on its own (adam, adamw, sgd)",
            got=f"{optimizer.title} with zero {plan.zero}, tensor {plan.tensor}, "
            f"pipeline {plan.pipeline}, expert {plan.expert}",
            reason="orthogonalized, quasi-Newton and least-squares steps mix the numbers of a matrix, or of all",
            fix="optimizer: adam   # or a plan of data and domain alone",
        )
    if plan.domain > 1 and has_grid and not objective.splits_space:
        raise ConfigError(
            "this loss needs whole fields on every device",
            expected="a loss of the misfit to data alone",
            got=f"{type(objective).__name__} with domain {plan.domain}",
            reason="derivatives on the grid are taken by transforms over whole axes",
            fix=f"plan: {{data: {plan.domain}, domain: 1}}, or objective: {{data: 1.0, residual: 0.0}}",
        )


def _metrics(info: Parts, parts: Parts) -> Metrics:
    finite = jnp.isfinite(info["loss"]) & jnp.isfinite(info["grad_norm"])
    return {**info, **{f"loss/{name}": value for name, value in parts.items()}, "finite": finite}
