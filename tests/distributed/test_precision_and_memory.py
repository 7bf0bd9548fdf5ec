"""Half precision with float32 parameters; activations that are computed again; portions of a batch with ZeRO."""

from __future__ import annotations

import jax
import plan_cases
import pytest

from sciml.parallel.plan import Plan
from sciml.parallel.step import build_step
from sciml.registry import load
from sciml.training.state import TrainState


def _training(plan: Plan, steps: int = 20) -> tuple[TrainState, list[float], str]:
    known = plan_cases.case("fno")
    optimizer = load("optimizer", "adam")(learning_rate=3e-3).build(steps)
    state = TrainState.start(known.model, optimizer, jax.random.key(1), plan.precision)
    step = build_step(known.model, known.objective, optimizer, plan)
    text = step.function.lower(step.place(state), known.batch).as_text()
    losses = []
    for _ in range(steps):
        state, metrics = step(state, known.batch)
        losses.append(float(metrics["loss"]))
    return state, losses, text


def test_half_precision_computes_in_it_and_keeps_float32():
    state, losses, text = _training(Plan(precision="bfloat16"))
    _, expected, plain = _training(Plan(precision="float32"))
    assert {str(leaf.dtype) for leaf in jax.tree.leaves((state.params, state.opt_state))} == {"float32", "int32"}
    assert "bf16" in text and "bf16" not in plain
    assert losses[-1] == pytest.approx(expected[-1], rel=0.05)
    assert losses[-1] < 0.5 * losses[0]


def test_recomputing_layers_saves_memory():
    """Temporaries of a deep model, one device: with recomputation a layer keeps its input only."""
    known = plan_cases.case("transformer")
    optimizer = load("optimizer", "adam")().build(1)
    sizes = []
    for remat in (False, True):
        step = build_step(known.model, known.objective, optimizer, Plan(remat=remat))
        compiled = step.function.lower(step.place(known.state(optimizer)), known.batch).compile()
        sizes.append(compiled.memory_analysis().temp_size_in_bytes)
    assert sizes[1] < 0.6 * sizes[0], sizes


def test_portions_go_with_every_stage():
    for sizes in ({"fsdp": 4, "zero": 2}, {"fsdp": 2, "zero": 3, "domain": 2}):
        state, history, _ = plan_cases.training("fno", Plan(accumulate=2, **sizes))
        assert plan_cases.difference("fno", state, history) < 1e-12
