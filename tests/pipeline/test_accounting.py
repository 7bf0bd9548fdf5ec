"""What a step costs: bytes by mesh axis, arithmetic, and where it is written."""

from __future__ import annotations

import json

import jax
import numpy as np
import pytest
import tiny_runs
from comparison import assert_close
from flax import nnx
from tiny_models import Counted, TinyMLP, scalar_batch

from sciml.parallel.groups import axes_of, groups
from sciml.parallel.hardware import PRESETS, preset_of
from sciml.parallel.plan import Plan
from sciml.parallel.step import build_step
from sciml.parallel.traffic import bytes_sent
from sciml.pipeline.accounting import COSTS, UTILIZATION, Account, peak
from sciml.registry import load
from sciml.training.hooks.base import Hook
from sciml.training.loop import train
from sciml.training.objective import Data
from sciml.training.state import TrainState


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("all-reduce(%x), replica_groups={{0,1},{2,3}}, use", ((0, 1), (2, 3))),
        ("all-reduce(%x), replica_groups=[2,2]<=[4], use", ((0, 1), (2, 3))),
        ("all-reduce(%x), replica_groups=[2,2]<=[2,2]T(1,0), use", ((0, 2), (1, 3))),
        ("all-gather(%x), replica_groups=mesh['a'=2,'b'=2] {'b'}, dimensions", ((0, 1), (2, 3))),
        ("all-gather(%x), replica_groups=mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)) {'b'}", ((0, 2), (1, 3))),
        ("all-gather(%x), replica_groups=mesh['a'=2,'b'=1,'c'=2] {'a','c'}", ((0, 1, 2, 3),)),
        ("collective-permute(%x), source_target_pairs={{0,1},{1,0}}, meta", ((0, 1), (1, 0))),
        ("add(%x, %y)", ()),
    ],
)
def test_groups_of_devices_are_read(text, expected):
    assert groups(text) == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [(((0, 1), (2, 3)), "fsdp"), (((0, 2), (1, 3)), "data"), (((0, 1, 2, 3),), "data+fsdp"), ((), "")],
)
def test_groups_lie_along_axes(found, expected):
    assert axes_of(found, Plan(data=2, fsdp=2, zero=1).mesh()) == expected


class Rates(Hook):
    """Keeps records."""

    def __init__(self):
        self.records = []

    def on_records(self, run, records):
        self.records += records


def _accounted(plan, path=None, repeat=1):
    model, optimizer = TinyMLP(nnx.Rngs(0)), load("optimizer", "adam")(learning_rate=1e-2).build(20)
    step = build_step(model, Data(("y",), relative=False), optimizer, plan, repeat=repeat)
    state, account, rates = (
        TrainState.start(model, optimizer, jax.random.key(1)),
        Account(step, "float64", path),
        Rates(),
    )
    account.peak = 1e9
    end = train(state, step, Counted(scalar_batch), [account, rates], steps=4)
    return step, end, account, rates


def test_bytes_of_all_axes_are_the_bytes_sent(tmp_path):
    step, end, _, rates = _accounted(Plan(data=2, fsdp=2, zero=2), tmp_path / COSTS)
    costs = json.loads((tmp_path / COSTS).read_text())
    sent = costs["bytes_sent_per_device"]
    assert set(sent) == {"data", "fsdp", "data+fsdp"} and costs["devices"] == 4
    batch = next(Counted(scalar_batch))
    text = step.function.lower(end, batch).compile().as_text()
    assert_close(np.float64(sum(sent.values())), bytes_sent(text), rtol=1e-12)
    assert costs["joules_of_this_node"] and costs["seconds_per_step"] > 0
    last = rates.records[-1]
    assert_close(last[UTILIZATION], costs["flops_per_device"] * last["steps_per_second"] / 1e9, rtol=1e-12)


def test_one_device_sends_nothing_and_several_steps_per_call_count_once():
    one, two = (_accounted(Plan(), repeat=repeat)[2].costs for repeat in (1, 2))
    assert one == two and one["bytes_sent_per_device"] == {}
    assert one["flops_per_device"] > 6 * 16 * 33  # each of 33 parameters, 16 rows, forward and backward


def test_peaks_of_known_devices_only():
    assert peak("NVIDIA H100 80GB HBM3", "bfloat16") == PRESETS["h100"].peak["bfloat16"]
    assert peak("NVIDIA A100-SXM4-40GB", "float32") == PRESETS["a100"].peak["float32"]
    assert peak("NVIDIA A100-PCIE-40GB", "float32") == PRESETS["a100-pcie"].peak["float32"]
    assert peak("NVIDIA H100 PCIe", "bfloat16") == PRESETS["h100-pcie"].peak["bfloat16"]
    assert peak("NVIDIA GH200 480GB", "float64") == PRESETS["h100"].peak["float64"]
    assert preset_of("NVIDIA H200") is PRESETS["h200"]
    assert peak("cpu", "float32") is None


def test_training_json_has_the_costs():
    found = json.loads((tiny_runs.finished("heat") / "models" / "fno" / "training.json").read_text())["step"]
    assert found["flops_per_device"] > 0 and found["devices"] == 1
    assert found[UTILIZATION] == "not measured"  # nobody knows the peak of this processor
    assert 0 <= found["wait_fraction"] < 1
