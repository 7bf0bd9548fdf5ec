"""`mpiexec -n 2 sciml data import`: the bits of one process, told once, hashed once."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import generated_data
import h5py
import numpy as np
import pytest
from tiny_runs import here, sciml

from sciml.data import Dataset, disk
from sciml.data.exchange import export, import_file

MPIEXEC = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
needs_mpi = pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec: pip install 'sciml[mpi]'")
ONE_TOO_MANY = pytest.mark.filterwarnings("ignore:.*5 times for 4 steps")


class SecondRank:
    """What a communicator of two gives the second process; rank 0 has sent `content`."""

    def __init__(self, content: str) -> None:
        self.content = content

    def Get_rank(self) -> int:  # noqa: N802 (the name in mpi4py)
        return 1

    def Get_size(self) -> int:  # noqa: N802 (the name in mpi4py)
        return 2

    def bcast(self, value, root):
        raise EOFError(self.content)


@pytest.fixture
def file(tmp_path):
    """20 samples in the format of PDEBench, with one time too many, as published ones have."""
    generated_data.make(tmp_path / "line")
    made = export(tmp_path / "line", tmp_path / "p.hdf5", to="pdebench")
    with h5py.File(made.path, "a") as stored:
        del stored["t-coordinate"]
        stored["t-coordinate"] = [0.0, 0.5, 1.0, 2.0, 3.0]
    return made.path


@needs_mpi
@ONE_TOO_MANY
def test_two_ranks_tell_once_and_write_the_bits_of_one(file, tmp_path):
    alone = here("data", "import", file, "-o", tmp_path / "one", folder=tmp_path)
    assert alone.code == 0, alone.err
    ended = sciml("data", "import", file, "-o", tmp_path / "two", folder=tmp_path, before=(str(MPIEXEC), "-n", "2"))
    assert ended.code == 0, ended.err
    assert ended.out.count("20 samples written, 0 found") == 1
    assert ended.err.count("5 times for 4 steps") == 1
    assert Dataset.open(tmp_path / "two").content_hash() == Dataset.open(tmp_path / "one").content_hash()


def test_the_second_rank_neither_hashes_nor_warns(file, tmp_path, monkeypatch, recwarn):
    hashed = []
    monkeypatch.setattr(disk, "sha256", lambda path: hashed.append(path) or "")
    with pytest.raises(EOFError):  # it waits for what the first one has to say
        import_file(file, tmp_path / "two", comm=SecondRank(""))
    assert not hashed and not recwarn.list


@ONE_TOO_MANY
def test_a_number_that_is_none_ends_with_the_code_of_bad_data(file, tmp_path):
    with h5py.File(file, "a") as stored:
        stored["tensor"][7, 2, 3] = np.nan
    ended = here("data", "import", file, "-o", tmp_path / "one", folder=tmp_path)
    assert ended.code == 65
    assert "u of sample 7" in ended.err and "is not finite" in ended.err
