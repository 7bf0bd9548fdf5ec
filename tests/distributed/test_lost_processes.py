"""Without a supervisor: a process that is lost, or lives and does nothing, ends the others soon and in words."""

from __future__ import annotations

import signal
import sys
import time

import pytest
from tiny_jobs import DOUBLE, SMALL, start, until
from tiny_runs import here, write

pytestmark = pytest.mark.long

LONG = DOUBLE.replace("steps: 12", "steps: 100000")
ASLEEP = """
import os, sys, time
from sciml.cli import main
from sciml.training.hooks.beat import Beat
step = Beat.on_step

def on_step(hook, run):
    step(hook, run)
    if run.step == 30 and os.environ["SCIML_PROCESS"] == "1":
        fell_asleep()

def fell_asleep():
    time.sleep(1000)

Beat.on_step = on_step
sys.exit(main())
"""


@pytest.fixture
def recipe(tmp_path):
    """A recipe whose data are there."""
    path = write("heat", tmp_path)
    assert here("generate", path, SMALL, folder=tmp_path).code == 0
    return path


def _options(*more: str) -> tuple[str, ...]:
    return (SMALL, LONG, "plan={data: 2}", "--model", "fno", *more)


def test_a_process_that_stands_still(recipe, tmp_path):
    """All end with 80 and show where they were; jax alone waits for ever."""
    program = (sys.executable, "-c", ASLEEP)
    ended = start(2, tmp_path, "train", recipe, *_options("--watchdog", "5"), program=program).wait()
    assert [e.code for e in ended] == [80, 80], ended
    assert "in fell_asleep" in ended[1].err and "in fell_asleep" not in ended[0].err
    said = "".join(e.err for e in ended)
    assert said.count("more than the watchdog allows, and all leave") >= 1
    assert "the same command again; it continues from the last checkpoint" in said


@pytest.mark.parametrize("victim", [0, 1])
def test_a_process_that_is_killed(recipe, tmp_path, victim):
    processes = start(2, tmp_path, "train", recipe, *_options())
    saved = tmp_path / "runs/heat/models/fno/checkpoints"
    until(lambda: bool(list(saved.glob("[0-9]*"))), processes)
    processes.started[victim].send_signal(signal.SIGKILL)
    began = time.monotonic()
    ended = processes.wait()
    assert time.monotonic() - began < 60
    assert ended[victim].code == -signal.SIGKILL
    left = ended[1 - victim]
    assert left.code in (80, -signal.SIGABRT), left  # jax aborts where process 0, which held the job together, is gone
