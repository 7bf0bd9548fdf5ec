"""The same training on other numbers of devices: which plan, which numbers of processes, what is kept."""

from __future__ import annotations

import shutil
from pathlib import Path

import jax
import numpy as np
import pytest
from comparison import assert_identical
from tiny_runs import here, recipe, write

from sciml.checkpoint import Checkpoints
from sciml.data.ranks import Ranks
from sciml.errors import ConfigError, PeerError
from sciml.parallel.plan import Plan
from sciml.pipeline.feeding import Together, refuse_idle
from sciml.pipeline.resizing import fitted, is_open, over_processes, rows_of, suits
from sciml.pipeline.tasks import Context
from sciml.pipeline.training import load_trained

DEEP = Plan(data=4, pipeline=2, microbatches=6)


@pytest.mark.parametrize(
    ("plan", "began", "devices", "batch", "expected"),
    [
        (Plan(data=8), 8, 8, 24, Plan(data=8)),
        (Plan(data=16), 16, 8, 32, Plan(data=8, accumulate=2)),
        (Plan(data=4), 16, 8, 32, Plan(data=4)),
        (Plan(data=32, accumulate=2), 32, 8, 64, Plan(data=8, accumulate=8)),
        (Plan(data=-1), 16, 8, 32, Plan(data=8, accumulate=2)),
        (Plan(data=-1), 8, 8, 32, Plan(data=-1)),
        (Plan(data=-1), 4, 8, 32, Plan(data=-1)),
        (Plan(data=-1, tensor=2), 16, 8, 32, Plan(data=4, tensor=2, accumulate=2)),
        (Plan(data=-1, tensor=2), 9, 8, 32, Plan(data=4, tensor=2)),
        (Plan(data=12), 12, 8, 24, Plan(data=8, accumulate=3)),  # in halves the portions would be larger than before
        (DEEP, 8, 6, 24, Plan(data=2, accumulate=2, pipeline=2, microbatches=6)),  # thirds: 36 parts of 24 rows
        (Plan(data=4, fsdp=2, zero=3), 8, 6, 24, Plan(data=3, fsdp=2, zero=3, accumulate=2)),
        (Plan(data=4, expert=2), 8, 6, 16, Plan(data=2, expert=2, accumulate=2)),
        (Plan(data=4), 4, 3, None, Plan(data=2, accumulate=2)),  # unknown rows: as many parts as before
        (Plan(data=4, accumulate=3), 4, 3, None, Plan(data=3, accumulate=4)),
    ],
)
def test_fewer_devices_keep_the_batch(plan, began, devices, batch, expected):
    """Rows per portion and device never grow."""
    found = fitted(plan, began, devices, batch)
    assert found == expected
    if batch is not None:
        assert batch % (found.devices // found.tensor // found.pipeline * found.accumulate * found.microbatches) == 0


@pytest.mark.parametrize(
    ("plan", "began", "batch", "words"),
    [
        (Plan(data=1, tensor=16), 16, 32, "too few devices"),
        (Plan(data=16, pipeline=2, microbatches=5), 32, 32, "divide over no number of devices"),
    ],
)
def test_what_no_number_of_devices_can_do(plan, began, batch, words):
    with pytest.raises(PeerError, match=words) as caught:
        fitted(plan, began, 8, batch)
    assert caught.value.exit_code == 80


@pytest.mark.parametrize(
    ("changes", "each", "expected"),
    [
        (("plan={data: -1}",), 1, [1, 2, 4]),  # of 4 processes; the batch is 8
        (("plan={data: 4}", "models.fno.train.batch=12"), 1, [1, 2, 3, 4]),
        (("plan={data: -1, tensor: 4}",), 1, [4]),
        (("plan={data: -1, tensor: 4}",), 2, [2, 4]),
        (("plan={data: -1, tensor: 4}",), 4, [1, 2, 4]),
        (("plan={data: 2, tensor: 2}",), 1, [2, 4]),
        (("plan=auto",), 1, [1, 2, 4]),
        ((), 1, [1, 2, 4]),  # no plan: as with data: -1
    ],
)
def test_numbers_of_processes_that_a_plan_can_use(tmp_path, changes, each, expected):
    chosen = recipe("heat", *changes)
    chosen = chosen.model_copy(update={"models": {"fno": chosen.models["fno"]}})
    assert [n for n in range(1, 5) if suits(chosen, tmp_path, n, 4, each)] == expected


def test_a_model_of_one_instance_keeps_its_parts(tmp_path):
    chosen = recipe("heat", "plan={data: 4}")
    assert rows_of(chosen.models["pinn"]) is None and rows_of(chosen.models["fno"]) == 8
    chosen = chosen.model_copy(update={"models": {"pinn": chosen.models["pinn"]}})
    assert [n for n in range(1, 5) if suits(chosen, tmp_path, n, 4, 1)] == [1, 2, 4]


def test_a_plan_that_leaves_a_process_without_devices_is_refused():
    refuse_idle(Plan(data=2).mesh(), 1)  # a single process may leave devices idle
    with pytest.raises(ConfigError, match="leaves 1 of 2 processes without a device") as caught:
        refuse_idle(Plan(data=2, tensor=2).mesh(), 2)
    assert len(jax.devices()) == 8 and caught.value.fix == "plan: {tensor: 2, data: 4}"


def test_no_plan_is_all_devices_of_several_processes():
    without, given, auto = (recipe("heat", *more).plan for more in ((), ("plan={data: 2}",), ("plan=auto",)))
    portions = recipe("heat", "plan={accumulate: 2}").plan
    assert over_processes(Plan(), without, 4) == Plan(data=-1)
    assert over_processes(Plan(accumulate=2), portions, 4) == Plan(data=-1, accumulate=2)
    assert over_processes(Plan(), without, 1) == Plan()
    assert not is_open(given, 4) and not is_open(auto, 4)


def test_another_plan_is_said_when_a_training_continues(tmp_path):
    """From and to; the same plan (the control) is not mentioned."""
    assert here("generate", write("heat", tmp_path), folder=tmp_path).code == 0

    def train(steps: int, *more: str) -> str:
        changes = (f"models.mlp.train.steps={steps}", *more)
        ended = here("train", write("heat", tmp_path), "--model", "mlp", *changes, folder=tmp_path)
        return ended.out if ended.code == 0 else ended.err

    assert "another plan" not in train(12, "plan={data: 2}")
    shutil.rmtree(tmp_path / "runs/heat/models/mlp/checkpoints/12")
    assert "another plan" not in train(12, "plan={data: 2}")
    shutil.rmtree(tmp_path / "runs/heat/models/mlp/checkpoints/12")
    said = train(12, "plan={data: 4, accumulate: 2}")
    assert "mlp: another plan than before: was {data: 2}, is {data: 4, accumulate: 2}" in said
    refused = train(13, "plan={data: 8}")
    assert "made with another recipe" in refused and "models.mlp.train.steps: was 12, is 13" in refused
    assert "plan.data" not in refused


class _Others:
    """Another process, which fails or not, as one that gathers with us sees it."""

    def __init__(self, failure: tuple[str, str] | None) -> None:
        self.failure, self.met = failure, 0

    def Get_rank(self) -> int:
        return 0

    def Get_size(self) -> int:
        return 2

    def allgather(self, value: object) -> list[object]:
        self.met += 1
        return [value, self.failure]


def test_the_first_call_waits_until_all_have_compiled():
    """Once; what one of them cannot compile ends all of them before anything is sent."""
    traced, others = [], _Others(None)
    together = Together(jax.jit(lambda x: traced.append(x) or x + 1), Ranks(others))
    assert [float(together(np.float64(n))) for n in (1, 2)] == [2.0, 3.0]
    assert (others.met, len(traced)) == (1, 1)
    with pytest.raises(ConfigError, match="too small"):
        Together(jax.jit(lambda x: x + 1), Ranks(_Others(("ConfigError", "too small"))))(1.0)


@pytest.mark.parametrize("method", ["powersgd", "one_bit"])
def test_compressed_gradients_on_other_numbers_of_devices(tmp_path, method):
    """What devices remember starts anew, everything else goes on; evaluation needs none of the devices."""
    folder = tmp_path / "runs/heat"
    assert here("generate", write("heat", tmp_path), folder=tmp_path).code == 0

    def train(data: int) -> str:
        plan = f"plan={{data: {data}, compress: {method}, rank: 1, warmup: 10}}"
        ended = here("train", write("heat", tmp_path), "--model", "mlp", plan, folder=tmp_path)
        assert ended.code == 0, ended.err
        return ended.out

    def back(step: int) -> None:
        for name in ("checkpoints", "best"):
            for place in (folder / "models/mlp" / name).glob("[0-9]*"):
                if int(place.name) > step:
                    shutil.rmtree(place)

    assert "starts anew" not in train(4)
    whole = _parameters(folder)
    for step, data in ((4, 2), (4, 1), (8, 4)):  # the last one from a checkpoint of one device, without compression
        back(step)
        said = train(data)
        assert f"continues from step {step}" in said and "starts anew" in said
        for name, values in _parameters(folder).items():
            np.testing.assert_allclose(values, whole[name], atol=0.05)
    back(4)
    assert "starts anew" not in train(4)
    assert_identical(_parameters(folder), whole)


def _parameters(folder: Path) -> dict[str, np.ndarray]:
    """As evaluation loads them, by a recipe whose plan no machine here can follow."""
    chosen = recipe("heat", "plan={data: 4, tensor: 16, compress: powersgd}")
    model = load_trained(Context(chosen, folder), "mlp").model
    leaves = jax.tree_util.tree_leaves_with_path(model)
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}


def test_a_part_of_a_checkpoint(tmp_path):
    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(1, {"a": np.ones(2), "b": np.zeros(3)})
        with pytest.raises(ConfigError, match="another state"):
            checkpoints.restore({"a": np.zeros(2)})
        part, _ = checkpoints.restore({"a": np.zeros(2), "c": np.ones(1)}, choose=lambda stored, wanted: {"a": "a"})
        assert_identical(part, {"a": np.ones(2), "c": np.ones(1)})
        with pytest.raises(ConfigError, match="c: saved nothing"):
            checkpoints.restore({"c": np.ones(1)}, choose=lambda stored, wanted: {"c": "c"})
