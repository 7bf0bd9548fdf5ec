"""What a supervisor notices, and what it does then. Its processes are simple programs; one test has the real ones."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from comparison import assert_close
from tiny_jobs import DOUBLE, SMALL, copied, environment
from tiny_runs import SCIML, checkpoint, here, write

from sciml.errors import ConfigError
from sciml.launch import workers
from sciml.launch.supervisor import EVENTS, Policy, Supervisor
from sciml.launch.workers import CACHE, kept_programs

PROGRAM = Path(__file__).with_name("worker_program.py")


def supervised(folder: Path, *arguments: object, suits=lambda n: True, **policy) -> int:
    """Exit code of a supervisor over two simple processes (unless told otherwise)."""
    command = [sys.executable, str(PROGRAM), str(folder), *map(str, arguments)]
    options = {"processes": 2, "watchdog": 1.0, "grace": 10.0, **policy}
    return Supervisor(command, folder, Policy(**options), suits).run()


def events(folder: Path, *kinds: str) -> list[dict]:
    """What the supervisor wrote down."""
    lines = map(json.loads, (folder / EVENTS).read_text().splitlines())
    return [event for event in lines if event["event"] in kinds]


def sizes(folder: Path) -> list[int]:
    """Numbers of processes of the attempts."""
    return [event["processes"] for event in events(folder, "started")]


def test_without_a_fault_nothing_is_started_again(tmp_path, capfd):
    assert supervised(tmp_path, 30) == 0
    assert sizes(tmp_path) == [2] and capfd.readouterr().err == ""


@pytest.mark.parametrize("rank", [0, 1])
def test_a_killed_process(tmp_path, capfd, rank):
    began = time.monotonic()
    assert supervised(tmp_path, 40, "kill", f"{rank}:13") == 0
    assert sizes(tmp_path) == [2, 2] and time.monotonic() - began < 60
    (failed,) = events(tmp_path, "failed")
    assert f"process {rank}" in failed["text"] and "was killed by SIGKILL at step" in failed["text"]
    assert failed["safe"] == {"m": 10} and failed["step"] in (13, 14)
    said = capfd.readouterr().err
    assert "supervisor: process" in said and "safe: m at step 10; starting again" in said
    steps = [int(line.split()[2]) for line in (tmp_path / "tries").read_text().splitlines()]
    assert steps.count(11) == 4 and steps.count(9) == 2  # what came after the checkpoint is done again, no more


def test_a_process_that_lives_but_does_nothing(tmp_path, capfd):
    assert supervised(tmp_path, 40, "stall", "1:13") == 0
    (stalled,) = events(tmp_path, "stalled")
    assert "no step for 1 s; process 1 stands still" in stalled["text"]
    assert "stand_still" in stalled["text"] and "in wait" in stalled["text"]  # the stacks of both
    assert "stand_still" in (tmp_path / "stacks/0/process-1.txt").read_text()
    assert "stacks of all threads" in capfd.readouterr().err


def test_a_process_that_is_stopped(tmp_path):
    assert supervised(tmp_path, 40, "freeze", "1:13") == 0
    (stalled,) = events(tmp_path, "stalled")
    assert "process 1 stands still" in stalled["text"] and "process 1: stopped by a signal" in stalled["text"]


def test_a_process_that_is_asked_to_leave(tmp_path):
    """All save and leave with 75; nobody asked the supervisor, so it goes on, and nothing is lost."""
    assert supervised(tmp_path, 40, "leave", "1:13") == 0
    (left,) = events(tmp_path, "left")
    assert left["safe"]["m"] in (13, 14) and sizes(tmp_path) == [2, 2]


def test_a_failure_that_would_come_again_is_not_tried_again(tmp_path, capfd):
    assert supervised(tmp_path, 40, "config!", "0:13") == 78
    assert sizes(tmp_path) == [2]
    assert "exit code 78; not started again" in capfd.readouterr().err


def test_it_gives_up_without_progress(tmp_path, capfd):
    assert supervised(tmp_path, 40, "internal!", "1:13", attempts=2) == 70
    assert sizes(tmp_path) == [2, 2, 2]  # the first one made progress
    said = capfd.readouterr().err
    assert "gave up after 2 restarts, the last 2 of them without progress" in said
    assert "exit code 70" in said and "safe: m at step 10" in said and "the same command again" in said


def test_the_others_go_on_until_the_place_is_free_again(tmp_path):
    """Four processes, one lost: two go on, as three do not divide the work; four again after the rest."""
    suits = {1, 2, 4}.__contains__
    assert supervised(tmp_path, 1200, "kill", "1:13", processes=4, suits=suits, rest=5.0) == 0
    assert sizes(tmp_path) == [4, 2, 4]
    assert len(events(tmp_path, "growing")) == 1
    grown = events(tmp_path, "started")[-1]
    assert grown["safe"]["m"] % 5 or grown["safe"]["m"] > 10  # all saved before


def test_as_many_as_suit_the_work(tmp_path):
    assert supervised(tmp_path, 60, "kill", "1:13", processes=3, rest=60) == 0
    assert sizes(tmp_path) == [3, 2]


def test_places_are_waited_for_where_fewer_processes_do_not_suit(tmp_path):
    """Two would divide four; but the work needs all, so that nobody is started in vain."""
    suits = {4}.__contains__
    assert supervised(tmp_path, 40, "kill", "1:13", processes=4, suits=suits, rest=1.0, attempts=1) == 0
    assert sizes(tmp_path) == [4, 4]


def test_a_signal_while_places_are_waited_for(tmp_path, capfd):
    def tell():
        while not (tmp_path / EVENTS).exists() or not events(tmp_path, "failed"):
            time.sleep(0.05)
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=tell).start()
    assert supervised(tmp_path, 40, "kill", "1:13", suits=lambda n: False, rest=600.0) == 75
    assert sizes(tmp_path) == [2]
    assert "SIGTERM: stopped while no process ran; safe: m at step 10" in capfd.readouterr().err


def test_processes_without_the_others_are_ended(tmp_path, monkeypatch):
    """The second of two cannot be started."""
    started, popen = [], subprocess.Popen

    def start(*arguments, **options):
        if started:
            raise OSError(errno.EAGAIN, "no more processes")
        started.append(popen(*arguments, **options))
        return started[0]

    monkeypatch.setattr(workers.subprocess, "Popen", start)
    with pytest.raises(OSError, match="no more processes"):
        workers.Workers([sys.executable, "-c", "import time; time.sleep(600)"], (0, 1), 2, tmp_path, os.environ)
    assert started[0].returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("environ", "count"),
    [
        ({"JAX_PLATFORMS": "cpu"}, 1),
        ({"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}, 4),
        ({"CUDA_VISIBLE_DEVICES": "0,1,2,3,4,5,6,7"}, 2),
    ],
)
def test_devices_of_each_process(environ, count):
    """Of four."""
    assert workers.devices_each(4, environ) == count


def test_a_signal_to_the_supervisor_is_passed_on(tmp_path, capfd):
    def tell():
        while not (tmp_path / "models/m/checkpoints/10").exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGUSR1)

    threading.Thread(target=tell).start()
    assert supervised(tmp_path, 100000) == 75
    assert "SIGUSR1: all processes saved and left; safe: m at step" in capfd.readouterr().err


@pytest.mark.parametrize("options", [{"processes": 0}, {"processes": 2, "least": 3}, {"processes": 2, "watchdog": 0.0}])
def test_impossible_policies(options):
    with pytest.raises(ConfigError, match="supervisor"):
        Policy(**options)


def test_compiled_programs_are_kept_where_nobody_else_can_write(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    place = Path(kept_programs()[CACHE])
    assert place.parent == tmp_path and place.stat().st_mode & 0o077 == 0
    place.chmod(0o777)
    assert kept_programs() == {}
    place.rmdir()
    place.symlink_to(tmp_path)
    assert kept_programs() == {}


@pytest.mark.long
@pytest.mark.parametrize(("rest", "processes"), [(0.0, [2, 2]), (600.0, [2, 1])])
def test_a_training_whose_process_is_killed(tmp_path, rest, processes):
    """The real command: two processes, one of them killed once; both go on, with the same bits, or one goes on alone.

    Alone it takes the same batch in two portions, whose sums are rounded in another order; Adam amplifies that.
    """
    recipe, folder, peace = write("heat", tmp_path), tmp_path / "runs/heat", tmp_path / "peace"
    assert here("generate", recipe, SMALL, folder=tmp_path).code == 0
    options = (SMALL, DOUBLE.replace("12", "60"), "--model", "fno")
    copied(folder / "data", peace)
    assert here("train", peace / "heat.yaml", *options, "plan={data: 2}", folder=peace).code == 0
    command = [*SCIML, "train", str(recipe), "-o", str(folder), *options, "plan={data: -1}"]

    def kill():
        while not list(folder.glob("models/fno/checkpoints/[0-9]*")):
            time.sleep(0.01)
        os.kill(events(folder, "started")[-1]["pids"][1], signal.SIGKILL)

    threading.Thread(target=kill).start()
    assert Supervisor(command, folder, Policy(2, watchdog=60.0, rest=rest), environ=environment()).run() == 0
    assert sizes(folder) == processes
    found, expected = (checkpoint(place, "fno") for place in (folder, peace / "runs/heat"))
    if rest == 0.0:
        assert found == expected
    assert found["data"] == expected["data"]
    numbers = [_numbers(arrays) for arrays in (found, expected)]
    assert_close(*numbers, rtol=1e-9, atol=1e-12)


def _numbers(arrays: dict) -> dict[str, np.ndarray]:
    parts = {name: value for name, value in arrays.items() if name.startswith("params")}
    return {name: np.frombuffer(data, dtype) for name, (dtype, _, data) in parts.items()}
