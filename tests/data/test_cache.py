"""Copies of shards on a node: the same bytes, made once, made again when damaged, and not at all without room."""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
from pathlib import Path

import generated_data
import pytest
from comparison import assert_identical

from sciml.data import Dataset, cache, disk, manifest
from sciml.errors import DataError, IntegrityError


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    generated_data.make(folder)
    return folder


@pytest.fixture
def folder(source, tmp_path):
    """A data set that may be damaged."""
    return Path(shutil.copytree(source, tmp_path / "data"))


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The folder of copies."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "node"))
    return tmp_path / "node"


def _copies(here):
    return sorted(here.glob("*.h5"))


def test_copies_hold_the_same_bytes(folder, here):
    dataset = Dataset.open(folder, memory=0)
    shards = manifest.load(folder).shards
    assert len(_copies(here)) == len(shards) > 0
    assert {piece.path for piece in dataset.storage.pieces} == set(_copies(here))
    for shard in shards:
        assert (here / f"{shard.sha256}.h5").read_bytes() == (folder / shard.file).read_bytes()
    assert_identical(dataset.read(), generated_data.expected(range(20)))


def test_the_source_is_not_needed_again(folder, here):
    Dataset.open(folder)
    for shard in manifest.load(folder).shards:
        (folder / shard.file).unlink()
    assert_identical(Dataset.open(folder).read(), generated_data.expected(range(20)))


@pytest.mark.parametrize("damage", ["altered", "cut off"])
def test_a_damaged_copy_is_made_again(folder, here, caplog, damage):
    Dataset.open(folder)
    copy = _copies(here)[0]
    whole = copy.read_bytes()
    bad = bytes([whole[0], whole[1] ^ 1]) + whole[2:] if damage == "altered" else whole[:-10]
    copy.write_bytes(bad)
    assert copy.read_bytes() != whole
    dataset = Dataset.open(folder, memory=0)
    assert copy.read_bytes() == whole
    assert "is damaged and made again" in caplog.text
    assert_identical(dataset.read(), generated_data.expected(range(20)))


def test_a_damaged_source_is_refused_and_not_kept(folder, here):
    shard = folder / manifest.load(folder).shards[0].file
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(content)
    with pytest.raises(IntegrityError, match=f"shard {shard.name} was altered"):
        Dataset.open(folder)
    assert _copies(here) == []


def test_a_missing_source_is_named(folder, here):
    shard = folder / manifest.load(folder).shards[0].file
    shard.unlink()
    with pytest.raises(DataError, match=f"{shard.name} is missing"):
        Dataset.open(folder)


def test_without_room_the_shards_themselves_are_read(source, here, monkeypatch, caplog):
    """One warning for all of them."""
    monkeypatch.setattr(disk, "free_bytes", lambda path: 1000)
    with caplog.at_level(logging.WARNING):
        dataset = Dataset.open(source, memory=0)
    assert len([r for r in caplog.records if "no copy in" in r.getMessage()]) == 1
    assert "1000 free" in caplog.text
    assert _copies(here) == []
    assert_identical(dataset.read(), generated_data.expected(range(20)))


PROGRAM = "import sys; from sciml.data import Dataset; print(Dataset.open(sys.argv[1], memory=0).content_hash())"


def test_processes_of_a_node_share_one_copy(source, here):
    command = [sys.executable, "-c", PROGRAM, str(source)]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    ended = [process.communicate(timeout=120) for process in started]
    expected = Dataset.open(source).content_hash()
    assert [(out.strip(), errors) for out, errors in ended] == [(expected, "")] * 3
    assert len(_copies(here)) == len(manifest.load(source).shards)
    assert list(here.glob(".*.part")) == []


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, None),
        ({"TMPDIR": "/scratch"}, None),
        ({"SLURM_JOB_ID": "7"}, None),
        ({"SLURM_JOB_ID": "7", "TMPDIR": "/scratch"}, "/scratch"),
        ({"SLURM_JOB_ID": "7", "TMPDIR": "/scratch", "SLURM_TMPDIR": "/local/7"}, "/local/7"),
        ({"SLURM_JOB_ID": "7", "TMPDIR": "/scratch", "SCIML_CACHE": "off"}, None),
        ({"SCIML_CACHE": "/fast"}, "/fast"),
    ],
)
def test_where_copies_are_kept(environ, expected):
    found = cache.node_folder(environ)
    assert (found is None) == (expected is None)
    assert found is None or expected is None or found == Path(expected) or found.parent == Path(expected)
