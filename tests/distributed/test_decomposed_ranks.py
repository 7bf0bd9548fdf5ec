"""One sample over processes of MPI and of jax: what one process gives; and what happens when they do not agree."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import decomposed_samples
import numpy as np
import pytest
from decomposed_samples import CASES, SAME, difference
from tiny_jobs import start

MPIEXEC = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
PROGRAM = str(Path(decomposed_samples.__file__))
SECONDS = 300
needs_mpi = pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec: pip install 'sciml[mpi]'")
needs_mpi4jax = pytest.mark.skipif(importlib.util.find_spec("mpi4jax") is None, reason="mpi4jax is not installed")


def run(ranks: int, folder: Path, kind: str, *names: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """The program of `decomposed_samples` on some ranks, one device each."""
    command = [str(MPIEXEC), "-n", str(ranks), sys.executable, PROGRAM, str(folder), kind, *names]
    variables = {**os.environ, "XLA_FLAGS": "", **environ}
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=variables)


def check(ended: subprocess.CompletedProcess[str], folder: Path, names: tuple[str, ...]) -> None:
    """Every sample is that of one process."""
    assert ended.returncode == 0, ended.stdout + ended.stderr
    for name in names:
        assert difference(np.load(folder / f"{name}.npy"), name) <= SAME, name


@needs_mpi
def test_two_ranks_of_mpi4py(tmp_path):
    names = ("kolmogorov", "burgers")
    check(run(2, tmp_path, "mpi4py", *names), tmp_path, names)


@needs_mpi
@pytest.mark.slow
@pytest.mark.parametrize(("ranks", "names"), [(1, ("kolmogorov", "burgers")), (4, ("kolmogorov", "heat", "channel"))])
def test_any_number_of_ranks_of_mpi4py(ranks, names, tmp_path):
    check(run(ranks, tmp_path, "mpi4py", *names), tmp_path, names)


@needs_mpi
@pytest.mark.long
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_every_case_on_ranks_of_mpi4py(ranks, tmp_path):
    check(run(ranks, tmp_path, "mpi4py", *CASES), tmp_path, tuple(CASES))


@needs_mpi
@needs_mpi4jax
@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_ranks_of_mpi4jax(ranks, tmp_path):
    check(run(ranks, tmp_path, "mpi4jax", *CASES), tmp_path, tuple(CASES))


@pytest.mark.slow
def test_two_processes_of_jax(tmp_path):
    """Two devices each; the first process gathers."""
    names = ("kolmogorov", "channel")
    ended = start(2, tmp_path, PROGRAM, tmp_path, "jax", *names, program=[sys.executable], devices=2).wait()
    assert [process.code for process in ended] == [0, 0], ended
    for name in names:
        assert difference(np.load(tmp_path / f"{name}.npy"), name) <= SAME, name


@needs_mpi
def test_ranks_that_were_given_different_grids_all_say_so(tmp_path):
    ended = run(2, tmp_path, "mpi4py", "heat", FEWER_ROWS="heat")
    assert ended.returncode == 78, ended
    words = "the ranks were not given the same grid"
    assert ended.stdout.count(words) == 2 and "(8, 4, 7)" in ended.stdout and "on rank 1: Grid" in ended.stdout


@needs_mpi
def test_three_ranks_that_cannot_share_all_say_which_could(tmp_path):
    ended = run(3, tmp_path, "mpi4py", "kolmogorov")
    assert ended.returncode == 78, ended
    assert ended.stdout.count("3 ranks cannot share 16 points along x evenly") == 3
    assert "one of 1, 2, 4, 8, 16 ranks" in ended.stdout


@needs_mpi
def test_a_killed_rank_ends_the_others(tmp_path):
    """They would wait for its rows for ever; without the kill the same program ends well (the first test)."""
    ended = run(2, tmp_path, "mpi4py", "burgers", KILLED_RANK="1")
    assert ended.returncode != 0
    assert not (tmp_path / "burgers.npy").exists()
