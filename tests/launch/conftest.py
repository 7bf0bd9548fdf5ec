"""A Slurm for the tests of this folder, a small recipe, and a stand-in for the run that a job starts."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import tiny_runs
from launch import slurm_daemons

STAND_IN = Path(__file__).with_name("stand_in.py")
ONE_MODEL = tiny_runs.HEAT.partition("  deeponet:")[0]


@pytest.fixture(scope="session")
def cluster() -> Iterator[slurm_daemons.Slurm]:
    """Two virtual nodes, n1 and n2, of two processors each; one cluster per process of pytest."""
    yield from _started(nodes=2)


@pytest.fixture
def fragile_cluster() -> Iterator[slurm_daemons.Slurm]:
    """Two virtual nodes of which one may die; it is given up for dead after ten seconds."""
    yield from _started(nodes=2, dead_after=10)


def _started(**options: int) -> Iterator[slurm_daemons.Slurm]:
    reason = slurm_daemons.missing()
    if reason:
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))  # short: the path of a socket has at most 107 bytes
    slurm = slurm_daemons.Slurm(folder, **options)
    try:
        try:
            slurm.start()
        except slurm_daemons.CannotStart as error:
            pytest.skip(f"Slurm does not start here: {error}")
        yield slurm
    finally:
        slurm.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def stand_in(tmp_path: Path) -> Path:
    """A folder for the front of PATH: its `sciml run` is the stand-in, every other command the real one."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "sciml"
    program.write_text(f"#!{sys.executable}\n{STAND_IN.read_text(encoding='utf-8')}", encoding="utf-8")
    program.chmod(0o755)
    return folder


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    """A recipe file with one small model."""
    path = tmp_path / "heat.yaml"
    path.write_text(ONE_MODEL, encoding="utf-8")
    return path


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """The smallest site file for the test cluster: two tasks, one on each node."""
    path = tmp_path / "site.yaml"
    path.write_text("partition: low\nnodes: 2\ntime: 00:05:00\n", encoding="utf-8")
    return path
