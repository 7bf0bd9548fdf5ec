"""A small transformer operator and a batch for it, shared by the tests of its parallelism."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from comparison import assert_close
from flax import nnx

from sciml.operators.stack import StackPredictor
from sciml.operators.transformer import Transformer
from sciml.parallel.plan import Plan
from sciml.parallel.step import build_step
from sciml.spec import Spec, Statistics, Variable
from sciml.training.objective import Batch, Data
from sciml.training.optimizers.sgd import SGD
from sciml.training.state import TrainState, parameters

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
    """Float64, with random numbers in place of the zeros of a new model, so that no path is asleep."""
    options = {"width": 8, "heads": 4, "layers": 4, "patch": (2,), "hidden": 8, "waves": 2, "projection": 8, **options}
    spec = field_spec()
    statistics = {name: Statistics(0.1, 1.1, -3.0, 3.0) for name in ("u0", "u")} | {
        "nu": Statistics(0.05, 0.03, 0.01, 0.1)
    }
    config = Transformer(**{"dtype": "float64", **options})
    model = nnx.eval_shape(lambda: config.build(spec, statistics, seed=0))  # random numbers by jax take seconds
    graph, shapes, rest = nnx.split(model, nnx.Param, ...)
    rng = np.random.default_rng(1)
    params = jax.tree.map(lambda p: jnp.asarray(0.25 * rng.standard_normal(p.shape), p.dtype), shapes)
    return nnx.merge(graph, params, rest)


def rows(count: int = 8, grid: int = GRID) -> Batch:
    """Random fields and rolled ones."""
    rng = np.random.default_rng(0)
    u0 = rng.normal(size=(count, grid))
    u = np.stack([np.roll(u0, 1, 1), 0.5 * np.roll(u0, 3, 1)], 1)
    return {"u0": u0, "nu": rng.uniform(0.01, 0.1, count), "u": u}


@dataclass(frozen=True)
class Trained:
    """Metrics of each step, the parameters in the end, and the compiled step."""

    history: list[dict]
    params: dict
    compiled: jax.stages.Compiled

    @property
    def program(self) -> str:
        """The text of the compiled step."""
        return self.compiled.as_text()


@functools.cache
def trained(options: tuple = (), plan: tuple = (), steps: int = 2) -> Trained:
    """Steps of plain gradient descent on 8 rows; `options` and `plan` are pairs of name and value."""
    model, batch, rule = transformer(**dict(options)), rows(), SGD(momentum=0.0, schedule="constant").build(steps)
    step = build_step(model, Data(("u",)), rule, Plan(**dict(plan)))
    state = TrainState.start(model, rule, jax.random.key(1), dict(plan).get("precision", "float64"))
    state = step.place(state)
    compiled, history = step.function.lower(state, batch).compile(), []
    for _ in range(steps):
        state, metrics = compiled(state, batch)
        history.append(jax.device_get(metrics))
    return Trained(history, jax.device_get(nnx.to_pure_dict(state.params)), compiled)


def assert_same(options: dict, plan: dict) -> Trained:
    """Losses and parameters of the plan are those of one device, up to sums in another order."""
    alone, spread = trained(pairs(options)), trained(pairs(options), pairs(plan))
    assert_close(spread.history, alone.history, rtol=1e-12, atol=1e-12)
    assert_close(spread.params, alone.params, rtol=1e-12, atol=1e-12)
    return spread


def pairs(options: dict) -> tuple:
    """A dict as something that can be remembered."""
    return tuple(sorted(options.items()))


def parameter_bytes(options: dict, split: tuple[str, ...] = ()) -> int:
    """Of all parameters but those with one of these logical axes."""
    leaves = jax.tree.leaves(parameters(transformer(**options)), is_leaf=lambda leaf: isinstance(leaf, nnx.Variable))
    whole = [leaf for leaf in leaves if not set(split) & set(leaf.get_metadata().get("axes") or ())]
    return sum(leaf[...].nbytes for leaf in whole)
