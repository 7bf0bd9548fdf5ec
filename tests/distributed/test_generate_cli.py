"""`mpiexec -n 4 sciml generate`: the bits of a single process, also when that one was killed and continued."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from tiny_runs import here, sciml, write

from sciml.data import Dataset

MPIEXEC = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
SAMPLES = "data.samples={train: 52, validation: 4, test: 4}"  # four chunks, the last one shorter
needs_mpi = pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec: pip install 'sciml[mpi]'")


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Content of the data that one undisturbed process makes."""
    folder = tmp_path_factory.mktemp("alone")
    ended = here("generate", write("heat", folder), SAMPLES, folder=folder)
    assert ended.code == 0, ended.err
    return Dataset.open(folder / "runs/heat/data").content_hash()


@needs_mpi
def test_four_ranks_give_the_bits_of_one_process(alone, tmp_path):
    path = write("heat", tmp_path)
    ended = sciml("generate", path, SAMPLES, folder=tmp_path, before=(str(MPIEXEC), "-n", "4"))
    assert ended.code == 0, ended.err
    assert ended.out.count("data: 60 samples computed, 0 found") == 1
    data = tmp_path / "runs/heat/data"
    assert len(list(data.glob("shard-*.h5"))) == 4
    assert Dataset.open(data).content_hash() == alone
    again = here("generate", path, SAMPLES, folder=tmp_path)
    assert "data: 0 samples computed, 60 found" in again.out


def test_killed_and_continued(alone, tmp_path):
    path = write("heat", tmp_path)
    killed = sciml("generate", path, SAMPLES, folder=tmp_path, fault="generate:3:SIGKILL")
    assert killed.code == -9
    ended = here("generate", path, SAMPLES, folder=tmp_path)
    assert ended.code == 0 and "data: 28 samples computed, 32 found" in ended.out, ended
    assert Dataset.open(tmp_path / "runs/heat/data").content_hash() == alone
