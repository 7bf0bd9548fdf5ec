"""A small transformer operator and a batch for it, shared by the tests of its parallelism."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from sciml.operators.stack import StackPredictor
from sciml.operators.transformer import Transformer
from sciml.parallel.plan import Plan
from sciml.parallel.step import Step, build_step
from sciml.registry import load
from sciml.spec import Spec, Statistics, Variable
from sciml.training.objective import Batch, Data
from sciml.training.state import TrainState

GRID = 16


def field_spec(grid: int = GRID) -> Spec:
    """u0 and nu to two frames of u, periodic."""
    return Spec(
        inputs=(Variable("u0", shape=(grid,), axes=("x",)), Variable("nu", role="scalar", low=0.01, high=0.1)),
        outputs=(Variable("u", shape=(2, grid), axes=("time", "x")),),
        coordinates={"x": tuple(np.arange(grid) / grid), "time": (0.5, 1.0)},
        periodic=("x",),
    )


@functools.cache
def transformer(**options) -> StackPredictor:
    """Float64, with every parameter moved a little, so that no path is asleep."""
    options = {"width": 8, "heads": 4, "layers": 4, "patch": (2,), "hidden": 8, "waves": 2, "projection": 8, **options}
    spec = field_spec()
    statistics = {name: Statistics(0.1, 1.1, -3.0, 3.0) for name in ("u0", "u")} | {
        "nu": Statistics(0.05, 0.03, 0.01, 0.1)
    }
    model = Transformer(**options, dtype="float64").build(spec, statistics, seed=0)
    rng = np.random.default_rng(1)
    graph, params, rest = nnx.split(model, nnx.Param, ...)
    params = jax.tree.map(lambda p: jnp.asarray(p + 0.1 * rng.standard_normal(p.shape)), params)
    return nnx.merge(graph, params, rest)


def rows(count: int = 8, grid: int = GRID) -> Batch:
    """Random fields and rolled ones."""
    rng = np.random.default_rng(0)
    u0 = rng.normal(size=(count, grid))
    u = np.stack([np.roll(u0, 1, 1), 0.5 * np.roll(u0, 3, 1)], 1)
    return {"u0": u0, "nu": rng.uniform(0.01, 0.1, count), "u": u}


def train(model: StackPredictor, batch: Batch, plan: Plan, steps: int = 2, optimizer: str = "adam"):
    """Metrics of each step, and the parameters in the end."""
    step, state = stepper(model, plan, steps, optimizer)
    history = []
    for _ in range(steps):
        state, metrics = step(state, batch)
        history.append(jax.device_get(metrics))
    return history, jax.device_get(state.params)


def program(model: StackPredictor, batch: Batch, plan: Plan, optimizer: str = "sgd") -> jax.stages.Compiled:
    """The compiled step."""
    step, state = stepper(model, plan, 2, optimizer)
    return step.function.lower(step.place(state), batch).compile()


def stepper(model: StackPredictor, plan: Plan, steps: int, optimizer: str) -> tuple[Step, TrainState]:
    """Step and first state of a training on the field u."""
    rule = load("optimizer", optimizer)().build(steps)
    state = TrainState.start(model, rule, jax.random.key(1))
    return build_step(model, Data(("u",)), rule, plan), state
