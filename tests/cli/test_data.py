"""`sciml data ...`: what is printed, and the exit codes of the table in docs/exit-codes.md."""

from __future__ import annotations

import os
from pathlib import Path

import generated_data
import pytest

from sciml.data import Dataset

SHARD = "shard-001-0000-0000.h5"


@pytest.fixture
def run_folder(tmp_path, monkeypatch) -> Path:
    """The folder of a run with 20 samples in `data`."""
    monkeypatch.chdir(tmp_path)
    generated_data.make(Path("run/data"))
    return Path("run")


@pytest.mark.parametrize("place", ["run", "run/data"])
def test_check_of_a_whole_data_set(run_sciml, run_folder, place):
    result = run_sciml("data", "check", place)
    assert result.code == 0
    assert f"ok    {SHARD}: 20 samples" in result.output
    assert "run/data is whole" in result.output


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("fault", "code", "line"),
    [
        (Path.unlink, 65, f"WRONG {SHARD}: missing"),
        (lambda path: os.truncate(path, 99), 65, f"WRONG {SHARD}: cut off: 99 bytes"),
        (flip, 76, f"WRONG {SHARD}: altered"),
    ],
)
def test_check_of_a_damaged_one(run_sciml, run_folder, fault, code, line):
    fault(run_folder / "data" / SHARD)
    result = run_sciml("data", "check", run_folder)
    assert result.code == code, result
    assert line in result.output
    assert "sciml generate" in result.output
    assert "is not a whole data set" in result.errors


def test_check_of_nothing(run_sciml, run_folder):
    result = run_sciml("data", "check", "elsewhere")
    assert result.code == 65 and "is no data set" in result.errors


def test_merge_and_info(run_sciml, run_folder):
    result = run_sciml("data", "merge", run_folder, "-o", "all.h5")
    assert result.code == 0 and "wrote all.h5: 20 samples" in result.output
    assert len(Dataset.open("all.h5")) == 20
    assert run_sciml("data", "merge", run_folder, "-o", "all.h5").code == 73
    assert "all.h5 is whole" in run_sciml("data", "check", "all.h5").output
    for place in ("all.h5", run_folder):
        printed = run_sciml("data", "info", place).output
        assert "outputs: u (time: 3, x: 16) [K]" in printed
        assert "axis: x (16 points from 0 to 0.9375, periodic) [m]" in printed
        assert "splits: train 12, validation 3, test 5" in printed
        assert "seed: 7" in printed
    assert run_sciml("info", "all.h5").output == run_sciml("data", "info", "all.h5").output


def test_without_a_command(run_sciml):
    assert "merge" in run_sciml("data").output + run_sciml("data").errors


@pytest.mark.parametrize("to", ["well", "pdebench"])
def test_export_and_import(run_sciml, run_folder, to):
    result = run_sciml("data", "export", run_folder, "--to", to, "--dtype", "float64", "-o", "theirs.hdf5")
    assert result.code == 0 and "wrote theirs.hdf5: 20 samples" in result.output, result
    assert "without energy" in result.output
    result = run_sciml("data", "import", "theirs.hdf5", "-o", "back", "--splits", "12,3,5")
    assert result.code == 0 and "back: 20 samples written, 0 found" in result.output, result
    assert run_sciml("data", "check", "back").code == 0
    names = ["u0", "u", "diffusivity"]
    assert Dataset.open("back").content_hash(names) == Dataset.open("run/data").content_hash(names)


def test_export_of_what_is_not_there(run_sciml, run_folder):
    assert run_sciml("data", "export", run_folder, "--to", "welt", "-o", "x.h5").code == 78
    assert run_sciml("data", "export", "nowhere", "--to", "well", "-o", "x.h5").code == 65
    assert run_sciml("data", "import", "nowhere.h5", "-o", "back").code == 65
    assert run_sciml("data", "import", "nowhere.h5", "-o", "back", "--splits", "1").code == 2
