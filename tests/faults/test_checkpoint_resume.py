"""Real processes that are killed, stopped and started again: 20 steps are 10 + kill + 10, in every bit."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sciml.checkpoint import MANIFEST

PROGRAM = Path(__file__).with_name("resume_program.py")


def _start(folder: Path, *steps: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(PROGRAM), str(folder), *map(str, steps)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _finish(process: subprocess.Popen[str], expected: int = 0) -> tuple[str, str]:
    out, err = process.communicate(timeout=120)
    assert process.returncode == expected, err
    return out, err


def _until(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdout is not None
    for found in process.stdout:
        if found.strip() == line:
            return
    raise AssertionError(f"never said {line!r}: {process.communicate()[1]}")


def _wait_for(place: Path) -> None:
    """The checkpoint is written in the background."""
    deadline = time.monotonic() + 60
    while not place.exists():
        assert time.monotonic() < deadline, f"{place} never came"
        time.sleep(0.01)


def _content(folder: Path, step: int) -> dict:
    """Every array of a checkpoint, in bits, and the position in the data."""
    import orbax.checkpoint as ocp

    place = folder / str(step)
    with ocp.Checkpointer(ocp.StandardCheckpointHandler()) as checkpointer:
        arrays = checkpointer.restore(place)
    meta = json.loads((place / MANIFEST).read_text())["meta"]
    return {name: (a.dtype, a.shape, a.tobytes()) for name, a in arrays.items()} | {"data": meta["data"]}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The uninterrupted run."""
    folder = tmp_path_factory.mktemp("whole")
    _finish(_start(folder, 20))
    return _content(folder, 20)


def test_the_uninterrupted_run_repeats_itself(whole, tmp_path):
    _finish(_start(tmp_path, 20))
    assert _content(tmp_path, 20) == whole
    assert {"step", "key"} < whole.keys() and whole["data"] == {"index": 20}


def test_killed_and_resumed_is_the_same_in_every_bit(whole, tmp_path):
    process = _start(tmp_path, 20, 13)
    _until(process, "step 13")
    _wait_for(tmp_path / "10")
    process.kill()
    process.communicate()
    out, _ = _finish(_start(tmp_path, 20))
    assert out.startswith("start 10\n")
    assert _content(tmp_path, 20) == whole


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 75), (signal.SIGINT, 130)])
def test_a_signal_saves_and_says_so(whole, tmp_path, number, code):
    process = _start(tmp_path, 20, 5)
    _until(process, "step 5")
    process.send_signal(number)
    _, err = _finish(process, code)
    assert f"{number.name}: stopped at step 6 of 20" in err and "Traceback" not in err
    out, _ = _finish(_start(tmp_path, 20))
    assert out.startswith("start 6\n")
    assert _content(tmp_path, 20) == whole
