"""Generation that is disturbed: a killed rank, uneven samples, a full disk; and how much memory it takes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import generated_data
import pytest
from comparison import assert_identical

from sciml.data import Dataset, checking, manifest, sharing
from sciml.data.merging import merge

MPIEXEC = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
PROGRAM = Path(generated_data.__file__)
needs_mpi = pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec: pip install 'sciml[mpi]'")


def run(ranks: int, folder: Path, *options: object) -> subprocess.CompletedProcess[str]:
    command = [str(MPIEXEC), "-n", str(ranks), sys.executable, str(PROGRAM), str(folder), *map(str, options)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Hash of the data that one process makes, and that of their merged file."""
    folder = tmp_path_factory.mktemp("undisturbed")
    generated_data.make(folder / "data")
    return Dataset.open(folder / "data").content_hash(), merge(folder / "data", folder / "all.h5").content_sha256


@needs_mpi
def test_one_killed_rank_and_a_run_that_fills_the_gaps(undisturbed, tmp_path):
    folder = tmp_path / "data"
    # rank 0 holds its first chunk until two of rank 1 are done, which dies in its second
    killed = run(2, folder, "--shard-each-chunk", "--kill-rank", 1, "--kill-after", 1, "--wait-for", 2)
    assert killed.returncode != 0
    finished = {path.name: path.read_bytes() for path in folder.glob("shard-*.h5")}
    assert finished  # what rank 1 had closed before, at least
    with pytest.raises(Exception, match=r"incomplete|manifest does not list"):
        checking.refuse_faults(folder, checking.check(folder))
    again = run(2, folder)
    assert again.returncode == 0, again.stderr
    assert all((folder / name).read_bytes() == content for name, content in finished.items())
    assert f"computed={20 - 4 * len(finished)}" in again.stdout
    assert not [f for f in checking.check(folder) if f.error is not None]
    assert Dataset.open(folder).content_hash() == undisturbed[0]
    assert merge(folder, tmp_path / "all.h5").content_sha256 == undisturbed[1]
    assert not (folder / sharing.FOLDER).exists()


@needs_mpi
@pytest.mark.parametrize("ranks", [2, 3])
def test_merged_content_is_the_same_for_any_number_of_ranks(undisturbed, tmp_path, ranks):
    assert run(ranks, tmp_path / "data").returncode == 0
    assert merge(tmp_path / "data", tmp_path / "all.h5").content_sha256 == undisturbed[1]


@needs_mpi
def test_an_expensive_sample_keeps_no_one_waiting(tmp_path):
    """Rank 0 is busy with its first share, 5 chunks, until the other has done all the rest; halves would be 10 each."""
    folder = tmp_path / "data"
    ended = run(2, folder, "--chunk", 1, "--samples", 20, "--wait-for", 15)
    assert ended.returncode == 0, ended.stderr
    by_rank = {shard.file.split("-")[2]: len(shard.ids) for shard in manifest.load(folder).shards}
    assert by_rank == {"0000": 5, "0001": 15}
    assert_identical(Dataset.open(folder).read(), generated_data.expected(range(20)))


@pytest.mark.parametrize(("count", "ranks"), [(0, 2), (1, 4), (7, 3), (1000, 8)])
def test_shares_cover_everything_once_and_shrink(tmp_path, count, ranks):
    parts = sharing.shares(count, ranks)
    assert [i for first, last in parts for i in range(first, last)] == list(range(count))
    lengths = [last - first for first, last in parts]
    assert lengths == sorted(lengths, reverse=True)
    assert not lengths or lengths[-1] == 1
    sharing.begin(tmp_path, ranks)
    orders = [sharing.taken(tmp_path, count, rank, ranks) for rank in range(ranks)]
    taken = [share for round_ in range(len(parts)) for order in orders for share in [next(order, None)] if share]
    assert sorted(taken) == parts


def test_what_a_killed_run_took_is_forgotten(tmp_path):
    sharing.begin(tmp_path, 2)
    assert list(sharing.taken(tmp_path, 3, 0, 2)) == [(0, 1), (2, 3)]
    assert list(sharing.taken(tmp_path, 3, 1, 2)) == [(1, 2)]
    sharing.begin(tmp_path, 2)
    assert list(sharing.taken(tmp_path, 3, 1, 2)) == [(1, 2), (2, 3)]


MEMORY = """
import sys, pathlib, numpy as np
from sciml.data import Layout, Simulated, generate, writer
from sciml.spec import Variable

def peak():  # MiB; getrusage would count the process that started this one
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024

def make(folder, samples, shard_bytes):
    writer.SHARD_BYTES = shard_bytes
    u = Variable("u", "1", (1 << 15,), ("x",))  # 256 KiB
    layout = Layout(outputs=(u,), splits={"train": samples})
    def simulate(ids):
        return Simulated({"u": np.random.default_rng(int(ids[0])).normal(size=(len(ids), 1 << 15))})
    generate(folder, layout, simulate, chunk=4)

place = pathlib.Path(sys.argv[1])
make(place / "a", 40, 4 << 20)
few = peak()
make(place / "b", 400, 4 << 20)
many = peak()
make(place / "c", 400, 1 << 30)
print(many - few, peak() - many)
"""


def test_memory_does_not_grow_with_the_number_of_samples(tmp_path):
    """90 MiB more data in shards of 4 MiB; the control puts all of them into one shard."""
    ended = subprocess.run([sys.executable, "-c", MEMORY, tmp_path], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    grown, control = map(float, ended.stdout.split())
    assert grown < 20, ended.stdout
    assert control > 90, ended.stdout
