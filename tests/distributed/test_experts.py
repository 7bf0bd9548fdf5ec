"""Experts on several devices: tokens travel to them and back, and what is dropped does not change."""

from __future__ import annotations

import pytest
from tiny_transformers import assert_same, pairs, parameter_bytes, trained
from volumes import expert_bytes

from sciml.operators.experts import room_of
from sciml.parallel.traffic import bytes_sent, collectives

BATCH, TOKENS, WIDTH, LAYERS = 8, 8, 8, 4
OPTIONS = {"experts": 4, "chosen": 2, "groups": 2, "capacity": 0.5, "hidden": 4}


@pytest.mark.parametrize("remat", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_four_devices_of_experts(remat):
    """A capacity below an even spread: tokens are dropped, the same ones as on one device."""
    spread = assert_same(OPTIONS, {"expert": 4, "remat": remat})
    room = room_of(TOKENS // 2, 4, 2, 0.5)
    assert room * 4 < TOKENS // 2 * 2, "nothing would be dropped"
    buffer = BATCH / 4 * 2 * 4 * room * WIDTH * 8
    gradients = 2 * 3 / 4 * (parameter_bytes(OPTIONS, ("experts",)) + 24)
    expected = expert_bytes(buffer, LAYERS, 4, remat) + gradients
    assert bytes_sent(spread.program) == pytest.approx(expected, rel=0.01)
    assert {c.kind for c in collectives(spread.program)} == {"all-to-all", "all-reduce"}


def test_experts_with_space_and_hidden_widths():
    assert_same(OPTIONS, {"expert": 2, "domain": 2, "tensor": 2})


@pytest.mark.slow
def test_half_precision_follows_single_precision():
    """Sums, softmax and routing in float32, products in bfloat16: 8 bits, and a few tokens that go elsewhere."""
    plans = [{"domain": 2, "expert": 2, "precision": precision} for precision in ("bfloat16", "float32")]
    half, single = (trained(pairs({**OPTIONS, "dtype": "float32"}), pairs(plan)).history for plan in plans)
    assert half[0]["loss"] == pytest.approx(single[0]["loss"], rel=0.05)
    assert half[1]["loss"] < half[0]["loss"]
