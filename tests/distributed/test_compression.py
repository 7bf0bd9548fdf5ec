"""Compressed gradients: what is lost is kept, bytes are few, and training goes on as without."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import plan_cases
import pytest
from comparison import assert_close
from compiled_steps import subject
from jax.sharding import PartitionSpec as P

from sciml.errors import ConfigError
from sciml.parallel.compression import BLOCK, _sum_of_signs, compressed, matrix_shape
from sciml.parallel.cost import gradient_traffic
from sciml.parallel.hardware import hardware
from sciml.parallel.layout import Layout
from sciml.parallel.plan import Plan
from sciml.parallel.prediction import predict, sent_bytes
from sciml.parallel.profile import profile
from sciml.parallel.step import build_step
from sciml.parallel.traffic import bytes_sent
from sciml.registry import load
from sciml.training.state import TrainState

STEPS = 30


def _training(plan: Plan, steps: int = STEPS) -> tuple[list[float], float]:
    """Losses, and bytes that a device sends per step."""
    known = plan_cases.case("fno")
    optimizer = compressed(load("optimizer", "adam")(learning_rate=3e-3).build(steps), known.model, plan)
    step = build_step(known.model, known.objective, optimizer, plan)
    state = TrainState.start(known.model, optimizer, jax.random.key(1), plan.precision)
    sent = bytes_sent(step.function.lower(step.place(state), known.batch).compile().as_text())
    losses = []
    for _ in range(steps):
        state, metrics = step(state, known.batch)
        losses.append(float(metrics["loss"]))
    return losses, sent


@pytest.fixture(scope="module")
def plainly():
    return _training(Plan(data=8, precision="float32"))


@pytest.mark.parametrize(
    ("method", "least"), [({"compress": "powersgd"}, 8), ({"compress": "one_bit", "warmup": 10}, 15)]
)
def test_few_bytes_and_nearly_the_same_loss(plainly, method, least):
    """Bytes of 1-bit Adam without those of its warm-up."""
    losses, sent = _training(Plan(data=8, precision="float32", **method))
    expected, whole = plainly
    if "warmup" in method:  # the program holds both ways, of which one is taken
        sent -= whole
    assert whole / sent > least
    assert losses[-1] < 1.1 * expected[-1] < 0.3 * losses[0]


@pytest.mark.slow
@pytest.mark.parametrize("method", [{"compress": "powersgd"}, {"compress": "one_bit", "warmup": 5}])
def test_compression_goes_with_shards_and_split_layers(method):
    """Training works, and a step stores and sends what the cost model says; of `one_bit` both ways of a step."""
    plan = Plan(data=2, fsdp=2, tensor=2, zero=3, precision="float32", **method)
    losses, sent = _training(plan, steps=10)
    assert losses[-1] < 0.7 * losses[0]
    about = dataclasses.replace(subject("fno"), precision="float32")
    layout = Layout.of(about.model, plan)
    expected = sent_bytes(about, layout)
    if plan.compress == "one_bit":
        whole = gradient_traffic(layout, about.state.params)
        expected["data"] += whole["data"]
    assert abs(sum(expected.values()) / sent - 1) < 0.01


def test_the_cost_model_knows_what_is_remembered():
    """Errors of both ways, filled up to whole blocks for each device."""
    about = dataclasses.replace(subject("fno"), precision="float32")
    plan = Plan(data=8, precision="float32", compress="one_bit")
    machine, known = hardware("h100"), profile(about, plan, False)
    plain, stored = (predict(about, known, p, machine, 8).held for p in (Plan(data=8, precision="float32"), plan))
    count = sum(leaf.size for leaf in jax.tree.leaves(about.state.params))
    line = -(-count // (8 * BLOCK)) * 8 * BLOCK
    assert stored.optimizer - plain.optimizer == 4 * (line + line // 8)
    assert stored.params == plain.params


def test_signs_lose_nothing_for_good():
    """What all devices wanted to send is what arrived plus what they remember."""
    count, length = 4, 4 * BLOCK
    lines = np.random.default_rng(0).normal(size=(count, length))

    def on_device(line):
        errors = [jnp.zeros((length,)), jnp.zeros((length // count,))]
        total, lost = _sum_of_signs(line[0], [jax.lax.pcast(e, "data", to="varying") for e in errors], count)
        return total, lost[0][None], lost[1][None]

    mesh = Plan(data=count).mesh()
    specs = (P(), P("data"), P("data"))
    total, first, second = jax.jit(jax.shard_map(on_device, mesh=mesh, in_specs=P("data"), out_specs=specs))(lines)
    assert_close(total + first.sum(0) + second.reshape(-1), lines.sum(0), rtol=1e-12, atol=1e-12)


def test_the_variance_of_signs_is_renewed_now_and_then(monkeypatch):
    """In every step of the warm-up, then in every third one; between them it stays."""
    monkeypatch.setattr("sciml.parallel.compression.RENEWAL", 3)
    known, plan = plan_cases.case("fno"), Plan(data=2, precision="float32", compress="one_bit", warmup=2)
    optimizer = compressed(load("optimizer", "adam")().build(8), known.model, plan)
    step = build_step(known.model, known.objective, optimizer, plan)
    state = TrainState.start(known.model, optimizer, jax.random.key(1), plan.precision)
    variances = [0.0]
    for _ in range(8):
        state, _ = step(state, known.batch)
        moments = state.opt_state["inner"]["transformation"].nu
        variances.append(sum(float(np.sum(np.asarray(leaf))) for leaf in jax.tree.leaves(jax.device_get(moments))))
    assert [i for i in range(1, 9) if variances[i] != variances[i - 1]] == [1, 2, 5, 8]


def test_arrays_are_grouped_nearly_square():
    assert matrix_shape((9, 24, 2, 24)) == (216, 48)
    assert matrix_shape((5,)) == (1, 5)


def test_a_high_rank_changes_nothing():
    """Where two thin matrices would not be smaller, arrays travel whole, whatever else is split."""
    sizes = {"data": 2, "fsdp": 2, "tensor": 2, "zero": 3, "precision": "float32"}
    compressed_losses, _ = _training(Plan(compress="powersgd", rank=1000, **sizes), steps=5)
    assert_close(compressed_losses, _training(Plan(**sizes), steps=5)[0], rtol=1e-5)


def test_clipping_does_not_go_with_signs():
    model = plan_cases.case("fno").model
    with pytest.raises(ConfigError, match="clip"):
        plan = Plan(data=8, precision="float32", compress="one_bit")
        compressed(load("optimizer", "adam")(clip=0.1).build(1), model, plan)


@pytest.mark.parametrize(
    ("optimizer", "plan", "words"),
    [
        ("muon", {"compress": "powersgd"}, "every number on its own"),
        ("sgd", {"compress": "one_bit"}, "momentum of Adam"),
    ],
)
def test_other_optimizers_are_refused(optimizer, plan, words):
    model = plan_cases.case("fno").model
    with pytest.raises(ConfigError, match=words):
        compressed(load("optimizer", optimizer)().build(1), model, Plan(data=8, precision="float32", **plan))


def test_a_step_without_the_compressing_optimizer_is_refused():
    known, plan = plan_cases.case("fno"), Plan(data=8, precision="float32", compress="powersgd")
    with pytest.raises(ConfigError, match="compresses gradients"):
        build_step(known.model, known.objective, load("optimizer", "adam")().build(1), plan)
