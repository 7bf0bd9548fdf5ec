"""What the loop says about its own time."""

from __future__ import annotations

import jax
import pytest
from comparison import assert_close
from flax import nnx
from tiny_models import Counted, TinyMLP, scalar_batch

from sciml.parallel.step import build_step
from sciml.registry import load
from sciml.training.hooks import watching
from sciml.training.hooks.base import Hook
from sciml.training.hooks.evaluation import Evaluate
from sciml.training.hooks.watching import COMPILING, EVALUATING, LOGGING, OTHER, STEPPING, WAITING, Clock
from sciml.training.loop import SameBatch, train
from sciml.training.objective import Data
from sciml.training.state import TrainState


class Ticks:
    """A clock that goes on by itself, so that nothing here depends on the speed of the machine."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now


@pytest.fixture
def ticks(monkeypatch):
    clock = Ticks()
    monkeypatch.setattr(watching, "time", clock)
    return clock


def test_every_second_is_spent_once(ticks):
    clock = Clock()
    ticks.now = 1.0
    with clock.on(EVALUATING):
        ticks.now = 3.0
        with clock.on(STEPPING):
            ticks.now = 7.0
        ticks.now = 7.5
    ticks.now = 8.0
    spent = {purpose: seconds for purpose, seconds in clock.spent.items() if seconds}
    assert spent == {OTHER: 1.5, EVALUATING: 2.5, STEPPING: 4.0}
    assert sum(spent.values()) == ticks.now


def test_a_failure_ends_its_purpose(ticks):
    clock = Clock()
    with pytest.raises(ValueError), clock.on(WAITING):
        ticks.now = 2.0
        raise ValueError
    ticks.now = 3.0
    assert (clock.spent[WAITING], clock.spent[OTHER]) == (2.0, 1.0)


class Slow:
    """Batches that take three seconds each."""

    def __init__(self, ticks):
        self.batches, self.ticks = Counted(scalar_batch), ticks

    def __next__(self):
        self.ticks.now += 3.0
        return next(self.batches)

    def get_state(self):
        return {}

    def set_state(self, state):
        del state


class Lasts(Hook):
    """A second for every step."""

    def __init__(self, ticks):
        self.ticks = ticks

    def on_step(self, run):
        self.ticks.now += 1.0


class Watcher(Hook):
    """Keeps records, and the clock at the end."""

    def __init__(self):
        self.records, self.spent = [], {}

    def on_records(self, run, records):
        self.records += records

    def on_end(self, run):
        self.spent = run.clock.spent


def _trained(batches, *hooks):
    model, optimizer = TinyMLP(nnx.Rngs(0)), load("optimizer", "adam")(learning_rate=1e-2).build(20)
    state = TrainState.start(model, optimizer, jax.random.key(1))
    watcher = Watcher()
    train(state, build_step(model, Data(("y",), relative=False), optimizer), batches, [*hooks, watcher], steps=40)
    return watcher


def test_waiting_for_data_is_seen(ticks):
    """A share of the time since the last records; with a control whose batch is always there."""
    slow = _trained(Slow(ticks), Lasts(ticks))
    waits = [record["wait_fraction"] for record in slow.records if "wait_fraction" in record]
    assert_close(waits, [60 / 79, 60 / 80], rtol=1e-12)  # the last step's second comes after its records
    assert slow.spent[WAITING] == 120.0
    quick = _trained(SameBatch(scalar_batch()), Lasts(ticks))
    assert [record["wait_fraction"] for record in quick.records if "wait_fraction" in record] == [0.0, 0.0]


def test_each_purpose_has_its_time():
    evaluate = Evaluate(lambda params: {"error": 1.0}, every=10)
    spent = _trained(Counted(scalar_batch), evaluate).spent
    assert all(spent[purpose] > 0 for purpose in (COMPILING, WAITING, STEPPING, EVALUATING, LOGGING, OTHER))
