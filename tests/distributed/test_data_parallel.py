"""A training over eight devices is the training on one, and sends gradients only."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_close
from flax import nnx
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from tiny_models import Curve, TinyFourier, TinyMLP, field_batch, pins, scalar_batch

from sciml.errors import ConfigError
from sciml.parallel.plan import Plan
from sciml.parallel.step import build_step
from sciml.parallel.traffic import bytes_sent, collectives
from sciml.registry import load
from sciml.training.objective import Data
from sciml.training.state import TrainState

CASES = {
    "fourier-adam": (TinyFourier, Data(("u",)), field_batch(), "adam"),
    "mlp-adam": (TinyMLP, Data(("y",), relative=False), scalar_batch(), "adam"),
    "mlp-lm": (TinyMLP, Data(("y",), relative=False), scalar_batch(), "levenberg_marquardt"),
    "curve-lm": (TinyMLP, Curve(), pins(), "levenberg_marquardt"),
    "curve-lbfgs": (TinyMLP, Curve(), pins(), "lbfgs"),
    "curve-broyden": (TinyMLP, Curve(), pins(), "broyden"),
}

# Rounding grows with the condition of the (damped) Hessian and with every line search.
OPTIONS = {"broyden": {"iterations": 1, "damping": 1.0}, "levenberg_marquardt": {"damping": 0.1}}


def _train(case: str, plan: Plan, steps: int = 3, repeat: int = 1, options: dict | None = None):
    network, objective, batch, name = CASES[case]
    model = network(nnx.Rngs(0))
    optimizer = load("optimizer", name)(**(OPTIONS.get(name, {}) if options is None else options)).build(steps)
    state = TrainState.start(model, optimizer, jax.random.key(1))
    step = build_step(model, objective, optimizer, plan, repeat=repeat)
    history = []
    stacked = jax.tree.map(lambda a: np.stack([a] * repeat), batch) if repeat > 1 else batch
    for _ in range(steps // repeat):
        state, metrics = step(state, stacked)
        history.append(jax.device_get(metrics))
    return state, history


@pytest.mark.parametrize("case", CASES)
def test_eight_devices_give_the_losses_of_one(case):
    """Sums in another order: rounding, amplified a little by three updates."""
    one, alone = _train(case, Plan())
    eight, spread = _train(case, Plan(data=8))
    assert_close(spread, alone, rtol=1e-12, atol=1e-12)
    assert_close(jax.device_get(eight.params), jax.device_get(one.params), rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("case", ["mlp-lm", "curve-lm"])
def test_losses_agree_at_the_damping_that_users_get(case):
    """The loss itself, with the default options; its gradient norm there carries three times as much rounding."""
    _, alone = _train(case, Plan(), options={})
    _, spread = _train(case, Plan(data=8), options={})
    assert_close([m["loss"] for m in spread], [m["loss"] for m in alone], rtol=1e-12)


@pytest.mark.parametrize("case", ["fourier-adam", "curve-lm"])
def test_portions_give_the_gradient_of_the_whole(case):
    _, whole = _train(case, Plan(data=2))
    _, portions = _train(case, Plan(data=2, accumulate=4))
    assert_close(portions, whole, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("case", ["fourier-adam", "curve-lm"])
def test_several_steps_in_one_call_are_the_same_steps(case):
    one, history = _train(case, Plan(), steps=4)
    four, together = _train(case, Plan(), steps=4, repeat=4)
    assert_close(together[0]["loss"], np.stack([h["loss"] for h in history]), rtol=1e-12)
    assert_close(jax.device_get(four.params), jax.device_get(one.params), rtol=1e-10, atol=1e-12)


def _program(case: str, plan: Plan) -> str:
    network, objective, batch, name = CASES[case]
    model = network(nnx.Rngs(0))
    optimizer = load("optimizer", name)().build(3)
    state = TrainState.start(model, optimizer, jax.random.key(1))
    return build_step(model, objective, optimizer, plan).function.lower(state, batch).compile().as_text()


def test_only_gradients_travel():
    """All-reduce of gradient and loss parts, 2 (g-1)/g bytes per byte; no activation is gathered."""
    model = TinyFourier(nnx.Rngs(0))
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(nnx.state(model, nnx.Param)))
    program = _program("fourier-adam", Plan(data=8))
    assert {c.kind for c in collectives(program)} == {"all-reduce"}
    assert bytes_sent(program) == pytest.approx(2 * 7 / 8 * (size + 8), rel=0.01)


def test_portions_do_not_travel_one_by_one():
    whole, portions = (bytes_sent(_program("fourier-adam", Plan(data=4, accumulate=a))) for a in (1, 4))
    assert portions == pytest.approx(whole, rel=0.01)


def test_the_counter_sees_the_gather_that_plain_jit_makes_of_an_fft():
    """The control: without shard_map, XLA gathers the batch at every FFT."""
    mesh = Plan(data=8).mesh()
    rows = NamedSharding(mesh, P("data"))
    function = jax.jit(lambda u: jnp.fft.rfft(u), in_shardings=rows, out_shardings=rows)
    program = function.lower(jnp.zeros((16, 32))).compile().as_text()
    gathers = [c for c in collectives(program) if c.kind == "all-gather"]
    assert gathers and gathers[0].sent == 16 * 32 * 8 * 7 / 8


def test_loops_are_counted_with_their_trips():
    mesh = Plan(data=8).mesh()

    def body(x):
        return jax.lax.scan(lambda c, _: (jax.lax.psum(c, "data") / 8, None), x, length=5)[0]

    function = jax.shard_map(body, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)
    program = jax.jit(function).lower(jnp.zeros(100)).compile().as_text()
    assert bytes_sent(program) == 5 * 2 * 7 / 8 * 800


@pytest.mark.parametrize(
    ("plan", "rows", "message"),
    [
        (Plan(data=3), 16, "do not divide"),
        (Plan(data=2, accumulate=3), 16, "multiple of 6"),
        (Plan(data=64), 64, "more devices than there are"),
    ],
)
def test_rows_that_do_not_divide_are_refused(plan, rows, message):
    model = TinyMLP(nnx.Rngs(0))
    optimizer = load("optimizer", "adam")().build(1)
    state = TrainState.start(model, optimizer, jax.random.key(1))
    with pytest.raises(ConfigError, match=message):
        build_step(model, Data(("y",)), optimizer, plan)(state, scalar_batch(rows))


@pytest.mark.parametrize("sizes", [{"data": 0}, {"data": -2}, {"accumulate": 0}])
def test_a_plan_without_devices_is_refused(sizes):
    with pytest.raises(ConfigError, match="from 1"):
        Plan(**sizes)
