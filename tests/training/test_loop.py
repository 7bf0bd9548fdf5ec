"""The loop, its records and its hooks."""

from __future__ import annotations

import io
import json
import math

import jax
import numpy as np
import pytest
from comparison import assert_close, assert_identical
from flax import nnx
from rich.console import Console
from tiny_models import Counted, TinyMLP, scalar_batch

from sciml.checkpoint import MANIFEST, Checkpoints
from sciml.errors import ConfigError, DataError, NumericalError
from sciml.parallel.step import build_step
from sciml.registry import load
from sciml.training.hooks.base import Hook
from sciml.training.hooks.evaluation import Evaluate
from sciml.training.hooks.guard import StopAtNonFinite, StopBelow
from sciml.training.hooks.log import MetricsFile, TensorBoard, read_metrics
from sciml.training.hooks.progress import ShowProgress
from sciml.training.hooks.saving import SaveCheckpoints, resume
from sciml.training.loop import SameBatch, train
from sciml.training.objective import Data
from sciml.training.state import TrainState, parameter_count, with_parameters


@pytest.fixture(scope="module")
def model():
    return TinyMLP(nnx.Rngs(0))


@pytest.fixture(scope="module")
def optimizer():
    return load("optimizer", "adam")(learning_rate=1e-2).build(20)


@pytest.fixture(scope="module")
def step(model, optimizer):
    return build_step(model, Data(("y",), relative=False), optimizer)


@pytest.fixture
def state(model, optimizer):
    return TrainState.start(model, optimizer, jax.random.key(1))


class Listener(Hook):
    """Keeps what it hears."""

    def __init__(self):
        self.records, self.closed = [], False

    def on_records(self, run, records):
        self.records += records

    def close(self):
        self.closed = True


def test_every_step_has_a_record(state, step):
    listener = Listener()
    end = train(state, step, Counted(scalar_batch), [listener], steps=20, fetch_every=7)
    assert [r["step"] for r in listener.records] == list(range(1, 21))
    assert int(end.step) == 20 and listener.closed
    assert {"loss", "loss/y", "grad_norm", "learning_rate", "finite"} <= listener.records[0].keys()
    assert {"seconds", "steps_per_second", "samples_per_second"} <= listener.records[-1].keys()
    assert type(listener.records[0]["loss"]) is float


def test_several_steps_per_call_give_the_same_records(model, optimizer, state, step):
    one, five = Listener(), Listener()
    end = train(state, step, Counted(scalar_batch), [one], steps=20)
    fast = build_step(model, Data(("y",), relative=False), optimizer, repeat=5)
    again = TrainState.start(model, optimizer, jax.random.key(1))
    same = train(again, fast, Counted(scalar_batch), [five], steps=20, fetch_every=10)
    assert [r["step"] for r in five.records] == list(range(1, 21))
    assert_close([r["loss"] for r in five.records], [r["loss"] for r in one.records], rtol=1e-12)
    assert_close(same.params, end.params, rtol=1e-11)
    with pytest.raises(ConfigError, match="multiple of 5"):
        train(TrainState.start(model, optimizer, jax.random.key(1)), fast, Counted(scalar_batch), steps=7)


def test_the_given_model_is_left_alone(model, state, step):
    before = jax.device_get(nnx.state(model, nnx.Param))
    end = train(state, step, SameBatch(scalar_batch()), steps=3)
    assert_identical(jax.device_get(nnx.state(model, nnx.Param)), before)
    trained = with_parameters(model, end.params)
    assert_identical(jax.device_get(nnx.state(trained, nnx.Param)), jax.device_get(end.params))
    assert parameter_count(model) == 2 * 8 + 8 + 8 + 1


def test_metrics_are_one_json_object_per_line(state, step, tmp_path):
    path = tmp_path / "metrics.jsonl"
    train(state, step, Counted(scalar_batch), [MetricsFile(path, every=5)], steps=20)
    assert [json.loads(line)["step"] for line in path.read_text().splitlines()] == [1, 5, 10, 15, 20]


def test_a_resumed_file_continues_at_the_restored_step(model, optimizer, state, step, tmp_path):
    path = tmp_path / "metrics.jsonl"
    end = train(state, step, Counted(scalar_batch), [MetricsFile(path)], steps=5)
    with path.open("a") as file:
        file.write('{"step": 6, "loss": 1.0}\n{"step": 7, "lo')  # beyond the restored step; cut by a crash
    train(end, step, Counted(scalar_batch), [MetricsFile(path)], steps=10)
    assert [r["step"] for r in read_metrics(path)] == list(range(1, 11))
    fresh = TrainState.start(model, optimizer, jax.random.key(1))
    train(fresh, step, Counted(scalar_batch), [MetricsFile(path)], steps=2)
    assert [r["step"] for r in read_metrics(path)] == [1, 2]


def test_tensorboard_files_are_written(state, step, tmp_path):
    train(state, step, Counted(scalar_batch), [TensorBoard(tmp_path / "tb", every=1)], steps=3)
    files = list((tmp_path / "tb").glob("events.*"))
    assert files and files[0].stat().st_size > 500


def test_progress_is_plain_lines_off_a_terminal(state, step):
    text = io.StringIO()
    show = ShowProgress("net", seconds_between=0.0, console=Console(file=text, width=200))
    train(state, step, Counted(scalar_batch), [show], steps=20, fetch_every=10)
    lines = text.getvalue().splitlines()
    assert lines[0].startswith("net: step 10/20  loss ") and "steps/s" in lines[0]
    assert all("\x1b" not in line for line in lines)


def test_progress_is_a_bar_on_a_terminal(state, step):
    text = io.StringIO()
    show = ShowProgress("net", console=Console(file=text, width=120, force_terminal=True))
    train(state, step, Counted(scalar_batch), [show], steps=20, fetch_every=5)
    assert "20/20" in text.getvalue() and "loss" in text.getvalue()


def test_evaluation_keeps_the_best(model, state, step, tmp_path):
    values = iter([3.0, 1.0, 2.0, 4.0])
    listener = Listener()
    with Checkpoints(tmp_path, keep=1) as store:
        judge = Evaluate(lambda params: {"error": next(values)}, every=5, store=store)
        train(state, step, Counted(scalar_batch), [listener, judge], steps=20)
        found = {r["step"]: r["evaluation/error"] for r in listener.records if "evaluation/error" in r}
        assert found == {5: 3.0, 10: 1.0, 15: 2.0, 20: 4.0}
        assert (judge.best_step, judge.best_value) == (10, 1.0)
        assert store.steps() == [10]
        params, meta = store.restore(judge.best)
    assert_identical(params, judge.best)
    assert meta == {"step": 10, "value": 1.0}


def test_a_damaged_best_does_not_stop_a_resumed_run(state, step, tmp_path, caplog):
    with Checkpoints(tmp_path, keep=1) as store:
        judge = Evaluate(lambda params: {"error": 1.0}, every=5, store=store)
        half = train(state, step, Counted(scalar_batch), [judge], steps=10)
        (tmp_path / "5" / MANIFEST).write_text("{}")
        again = Evaluate(lambda params: {"error": 2.0}, every=5, store=store)
        train(half, step, Counted(scalar_batch), [again], steps=20)
        assert "best parameters are damaged" in caplog.text
        assert (again.best_step, again.best_value) == (15, 2.0)
        assert store.steps() == [15]


def _poisoned(seed: int):
    batch = scalar_batch(seed=seed)
    return {**batch, "y": np.where(seed == 12, math.nan, batch["y"])}


def test_a_loss_that_is_not_finite_is_named_with_term_step_and_checkpoint(state, step, tmp_path):
    with Checkpoints(tmp_path / "c") as checkpoints:
        hooks = [StopAtNonFinite(checkpoints), SaveCheckpoints(checkpoints, every=5)]
        with pytest.raises(NumericalError, match="term y is not finite at step 13") as caught:
            train(state, step, Counted(_poisoned), hooks, steps=20, fetch_every=20)
        checkpoints.wait()
        assert checkpoints.steps() == [5, 10]
    assert caught.value.exit_code == 79 and "checkpoint is 10" in str(caught.value)


def test_the_same_training_without_poison_ends(state, step, tmp_path):
    with Checkpoints(tmp_path / "c") as checkpoints:
        hooks = [StopAtNonFinite(checkpoints), SaveCheckpoints(checkpoints, every=5)]
        train(state, step, Counted(scalar_batch), hooks, steps=20)
        assert checkpoints.steps() == [10, 15, 20]


def test_a_goal_ends_the_training(state, step):
    listener = Listener()
    train(state, step, Counted(scalar_batch), [listener, StopBelow("loss", 1e9)], steps=20, fetch_every=5)
    assert listener.records[-1]["step"] == 5


def test_batches_that_end_too_early_are_an_error(state, step):
    with pytest.raises(DataError, match="ended at step 3"):
        train(state, step, iter([scalar_batch()] * 3), steps=5)


def test_nothing_to_resume_gives_the_state_back(state, tmp_path):
    batches = Counted(scalar_batch)
    with Checkpoints(tmp_path / "none") as checkpoints:
        same, meta = resume(checkpoints, state, batches)
    assert same is state and meta == {} and batches.index == 0


def test_resume_continues_bit_for_bit_in_one_process(model, optimizer, state, step, tmp_path):
    whole = train(state, step, Counted(scalar_batch), steps=20)
    with Checkpoints(tmp_path) as checkpoints:
        half = TrainState.start(model, optimizer, jax.random.key(1))
        train(half, step, Counted(scalar_batch), [SaveCheckpoints(checkpoints, every=10)], steps=10)
        batches = Counted(scalar_batch)
        blank = TrainState.start(model, optimizer, jax.random.key(2))
        restored, meta = resume(checkpoints, blank, batches)
        assert batches.index == 10 and meta["seconds"] > 0
        end = train(restored, step, batches, steps=20, seconds_before=meta["seconds"])
    assert_identical(end, whole)
