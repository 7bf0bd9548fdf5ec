"""Generation under mpiexec: the bits of a single process, continued after a kill, and no rank left waiting."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import generated_data
import pytest
from comparison import assert_identical

from sciml.data import Dataset
from sciml.data.ranks import Ranks, launched
from sciml.errors import ConfigError

MPIEXEC = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
PROGRAM = Path(generated_data.__file__)
needs_mpi = pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec: pip install 'sciml[mpi]'")


def run(ranks: int, folder: Path, *options: object) -> subprocess.CompletedProcess[str]:
    """The program of `generated_data` on some ranks; fails when it has not ended after a minute."""
    command = [str(MPIEXEC), "-n", str(ranks), sys.executable, str(PROGRAM), str(folder), *map(str, options)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@needs_mpi
def test_same_bits_on_any_number_of_ranks(tmp_path):
    generated_data.make(tmp_path / "one")
    single = Dataset.open(tmp_path / "one")
    for ranks in (2, 4):
        folder = tmp_path / str(ranks)
        ended = run(ranks, folder)
        assert ended.returncode == 0, ended.stderr
        assert "computed=20" in ended.stdout
        assert len(list(folder.glob("shard-*.h5"))) == ranks
        many = Dataset.open(folder)
        assert_identical(many.read(), single.read())
        assert many.content_hash() == single.content_hash()


@needs_mpi
def test_more_ranks_than_chunks(tmp_path):
    ended = run(4, tmp_path, "--chunk", 10)
    assert ended.returncode == 0, ended.stderr
    assert len(list(tmp_path.glob("shard-*.h5"))) == 2
    assert_identical(Dataset.open(tmp_path).read(), generated_data.expected(range(20)))


@needs_mpi
def test_exception_on_one_rank_ends_all_and_the_rest_continues(tmp_path):
    ended = run(3, tmp_path, "--fail-on-rank", 1)
    assert ended.returncode == 70, ended
    assert ended.stderr.count("on rank 1: ValueError: the solver met a wall") == 2
    finished = run(2, tmp_path)
    assert finished.returncode == 0, finished.stderr
    assert "found=16" in finished.stdout  # all but the chunk that failed: the other ranks took the rest
    assert_identical(Dataset.open(tmp_path).read(), generated_data.expected(range(20)))


@needs_mpi
def test_blown_up_sample_is_reported_by_every_rank(tmp_path):
    ended = run(2, tmp_path, "--blow-up", 6)
    assert ended.returncode == 79, ended
    assert ended.stderr.count("sample 6: u is not finite at time 1 s") == 2


@needs_mpi
def test_killed_rank_does_not_leave_the_others_waiting(tmp_path):
    assert run(2, tmp_path, "--kill-after", 1).returncode != 0
    assert run(2, tmp_path).returncode == 0
    assert_identical(Dataset.open(tmp_path).read(), generated_data.expected(range(20)))


@needs_mpi
def test_another_layout_is_refused_by_every_rank(tmp_path):
    generated_data.make(tmp_path)
    ended = run(2, tmp_path, "--samples", 24)
    assert ended.returncode == 78
    assert ended.stderr.count("holds data made in another way") == 2


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, 1),
        ({"PMI_SIZE": "4"}, 4),
        ({"OMPI_COMM_WORLD_SIZE": "3"}, 3),
        ({"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2"}, 2),
        ({"SLURM_NTASKS": "8"}, 1),  # inside a batch script, not started by srun
    ],
)
def test_launchers_are_recognized(environment, expected):
    assert launched(environment) == expected


def test_processes_that_do_not_see_each_other(monkeypatch):
    pytest.importorskip("mpi4py")
    monkeypatch.setenv("SLURM_STEP_ID", "0")
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "2")
    with pytest.raises(ConfigError, match="do not see each other"):
        Ranks()


def test_launcher_without_mpi4py(monkeypatch):
    monkeypatch.setenv("PMI_SIZE", "2")
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(ConfigError, match="mpi4py is not installed"):
        Ranks()
