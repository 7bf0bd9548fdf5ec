"""Generation under mpiexec on numbers of ranks that do not divide the work: the merged file is the same, bit by bit."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import generated_data
import pytest

from sciml.data import Dataset
from sciml.data.merging import merge

MPIEXEC = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
pytestmark = pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec: pip install 'sciml[mpi]'")


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """sha256 of the merged file of one process without a launcher."""
    folder = tmp_path_factory.mktemp("alone")
    generated_data.make(folder / "data")
    return merge(folder / "data", folder / "all.h5").sha256


def run(ranks: int, folder: Path, *options: object) -> subprocess.CompletedProcess[str]:
    """The program of `generated_data` on some ranks."""
    command = [str(MPIEXEC), "-n", str(ranks), sys.executable, generated_data.__file__, str(folder), *map(str, options)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_the_same_file_on_any_number_of_ranks(alone, tmp_path, ranks):
    """Five chunks of four samples: neither 2, 3 nor 4 ranks have equal shares."""
    ended = run(ranks, tmp_path / "data")
    assert ended.returncode == 0, ended.stderr
    assert merge(tmp_path / "data", tmp_path / "all.h5").sha256 == alone


def test_killed_on_two_ranks_and_resumed_on_three(alone, tmp_path):
    killed = run(2, tmp_path / "data", "--kill-after", 1, "--shard-each-chunk")
    assert killed.returncode != 0
    assert 0 < len(list((tmp_path / "data").glob("shard-*.h5"))) < 5
    resumed = run(3, tmp_path / "data")
    assert resumed.returncode == 0, resumed.stderr
    assert merge(tmp_path / "data", tmp_path / "all.h5").sha256 == alone


def test_a_disk_that_fills_up_ends_both_ranks_and_loses_nothing(alone, tmp_path):
    generated_data.make(tmp_path / "data", samples=8)
    ended = run(2, tmp_path / "data", "--file-bytes", 20_000)
    assert ended.returncode == 74, ended
    assert "disk is full" in ended.stderr
    assert not list((tmp_path / "data").glob("*.part"))
    assert len(list((tmp_path / "data").glob("shard-*.h5"))) == 1
    assert run(2, tmp_path / "data").returncode == 0
    assert len(Dataset.open(tmp_path / "data")) == 20
    assert merge(tmp_path / "data", tmp_path / "all.h5").sha256 == alone
