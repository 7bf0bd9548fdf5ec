"""Checking, merging and the master file: each fault is named for its file, and the undisturbed folder is whole."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tracemalloc

import generated_data
import h5py
import numpy as np
import pytest
from comparison import assert_identical

from sciml.data import Dataset, checking, disk, manifest, master, slabs
from sciml.data.merging import merge
from sciml.errors import BusyError, CannotCreateError, DataError, IntegrityError, StorageError

FIRST, SECOND = "shard-001-0000-0000.h5", "shard-002-0000-0000.h5"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """20 samples in two shards, the second one of which begins with a hole in the first."""
    folder = tmp_path_factory.mktemp("data")
    generated_data.make(folder, samples=8)
    generated_data.make(folder)
    return folder


@pytest.fixture
def folder(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "data")


def wrong(folder) -> dict[str, checking.Finding]:
    return {finding.file: finding for finding in checking.check(folder) if finding.error is not None}


def test_control(folder):
    assert not wrong(folder)
    assert [finding.file for finding in checking.check(folder)] == [FIRST, SECOND]
    checking.refuse_faults(folder, checking.check(folder))


def lose(folder):
    (folder / FIRST).unlink()


def cut_off(folder):
    os.truncate(folder / FIRST, 1000)


def flip(folder):
    status = (folder / FIRST).stat()
    content = bytearray((folder / FIRST).read_bytes())
    content[len(content) // 2] ^= 4
    (folder / FIRST).write_bytes(content)
    os.utime(folder / FIRST, ns=(status.st_atime_ns, status.st_mtime_ns))  # as a failing disk would


def replace(folder):
    other = folder.parent / "other"
    generated_data.make(other, samples=8, provenance={"seed": 8})
    shutil.copy(other / FIRST, folder / FIRST)


def foreign(folder):
    other = folder.parent / "other"
    generated_data.make(other, samples=8, provenance={"seed": 8})
    shutil.copy(other / FIRST, folder / "shard-009-0000-0000.h5")


def copied(folder):
    shutil.copy(folder / FIRST, folder / "shard-009-0000-0000.h5")


def unlisted(folder):
    value = json.loads((folder / manifest.FILE).read_text())
    value["shards"] = value["shards"][:1]
    (folder / manifest.FILE).write_text(json.dumps(value))


def no_manifest(folder):
    (folder / manifest.FILE).unlink()


def other_unit(folder):
    text = (folder / manifest.FILE).read_text()
    (folder / manifest.FILE).write_text(text.replace('"K"', '"C"'))


@pytest.mark.parametrize(
    ("fault", "file", "state", "fix", "error"),
    [
        (lose, FIRST, "missing", "sciml generate", DataError),
        (cut_off, FIRST, "cut off: 1000 bytes instead of", "restore it", DataError),
        (flip, FIRST, "same size, another sha256", "restore it", IntegrityError),
        (replace, FIRST, "replaced: it belongs to another data set|longer|cut off", "restore it", None),
        (foreign, "shard-009-0000-0000.h5", "belongs to another data set", "move it out", DataError),
        (copied, "shard-009-0000-0000.h5", "repeats 8 samples .* two generators", "delete it", DataError),
        (unlisted, SECOND, "12 finished samples", "it takes them", DataError),
        (no_manifest, manifest.FILE, "missing", "writes the manifest", DataError),
        (other_unit, manifest.FILE, "altered", "restore", IntegrityError),
    ],
)
def test_every_fault_is_named(folder, fault, file, state, fix, error):
    fault(folder)
    found = wrong(folder)[file]
    assert re.search(state, found.state), found
    assert fix in str(found.fix)
    assert error in (None, found.error)
    with pytest.raises(found.error or DataError, match=file):
        checking.refuse_faults(folder, checking.check(folder))


def test_several_faults_at_once(folder):
    flip(folder)
    os.truncate(folder / SECOND, 1000)
    assert set(wrong(folder)) == {FIRST, SECOND}
    with pytest.raises(IntegrityError, match=rf"{FIRST}(.|\n)*{SECOND}"):  # the graver of the two
        checking.refuse_faults(folder, checking.check(folder))


def test_incomplete_names_the_samples(tmp_path):
    generated_data.make(tmp_path, samples=8)
    assert "12 of 20 samples are missing (8-19)" in wrong(tmp_path)["."].state


def test_a_generation_that_is_under_way(folder):
    with open(folder / ".lock", "w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        assert wrong(folder)["."].error is BusyError
        shard = next(folder.glob("shard-*.h5"))
        shard.rename(folder / "later")
        assert list(wrong(folder)) == ["."]  # what is still missing is no fault yet
    (folder / "later").rename(shard)
    assert not wrong(folder)


def test_what_an_undone_run_left_is_no_fault(folder):
    (folder / "shard-003-0000-0000.h5.part").write_bytes(b"half")
    assert not wrong(folder)
    assert "unfinished" in checking.check(folder)[-1].state


def test_no_data_set(tmp_path):
    with pytest.raises(DataError, match="is no data set"):
        checking.check(tmp_path)


def test_merged_file_opens_like_the_folder(folder, tmp_path):
    merged = merge(folder, tmp_path / "all.h5")
    one, many = Dataset.open(merged.path), Dataset.open(folder)
    assert_identical(one.read(), many.read())
    assert one.content_hash() == many.content_hash()
    assert (one.layout, one.provenance) == (many.layout, many.provenance)
    assert merged.sha256 == disk.sha256(merged.path)
    assert [finding.error for finding in checking.check(merged.path)] == [None]
    assert not list(tmp_path.glob("*.part"))


def test_merged_bits_do_not_depend_on_the_shards(folder, tmp_path):
    generated_data.make(tmp_path / "single")
    first, second = merge(folder, tmp_path / "a.h5"), merge(tmp_path / "single", tmp_path / "b.h5")
    assert first.path.read_bytes() == second.path.read_bytes()


@pytest.mark.parametrize("place", [0.3, 0.6, 0.9])
def test_a_damaged_merged_file_is_refused(folder, tmp_path, place):
    path = merge(folder, tmp_path / "all.h5").path
    with h5py.File(path) as file:
        u = file["outputs/u"]
        chunk = u.id.get_chunk_info(int(place * 20))
    content = bytearray(path.read_bytes())
    content[chunk.byte_offset + 8] ^= 1
    path.write_bytes(content)
    (finding,) = checking.check(path)
    assert finding.error in (DataError, IntegrityError), finding
    with pytest.raises((DataError, IntegrityError), match=r"all.h5"):
        Dataset.open(path)


def test_a_changed_number_with_a_right_checksum_is_refused(folder, tmp_path):
    path = merge(folder, tmp_path / "all.h5").path
    with h5py.File(path, "a") as file:
        file["outputs/u"][3, 0, 0] += 1e-9
    with pytest.raises(IntegrityError, match="was altered"):
        Dataset.open(path)


def test_merge_refuses(folder, tmp_path):
    with pytest.raises(CannotCreateError, match="already there"):
        merge(folder, folder / FIRST)
    flip(folder)
    with pytest.raises(IntegrityError, match="was altered"):
        merge(folder, tmp_path / "all.h5")
    assert not list(tmp_path.glob("all*"))


FULL = """
import resource, sys
from sciml.data.exchange import export
from sciml.data.merging import merge
from sciml.errors import SciMLError

folder, limit = sys.argv[1:]
resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
actions = {"merge": merge, "well": lambda a, b: export(a, b, to="well", dtype="float64")}
actions["pdebench"] = lambda a, b: export(a, b, to="pdebench", dtype="float64")
for name, action in actions.items():
    try:
        action(folder, f"{folder}/../{name}.hdf5")
        print(name, "done")
    except SciMLError as error:
        print(name, error.exit_code, error.what.split(":")[0])
"""


@pytest.mark.parametrize("limit", [100, 3000, 11_000, 1_000_000])
def test_disk_full_while_writing_one_file(folder, tmp_path, limit):
    """A limit on the size of a file stands for a full disk; at each of these places HDF5 alone would crash or lie."""
    command = [sys.executable, "-c", FULL, str(folder), str(limit)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    names = ["merge", "well", "pdebench"]
    expected = [f"{n} done" if limit == 1_000_000 else f"{n} 74 the disk is full" for n in names]
    assert (ended.returncode, ended.stdout.splitlines()) == (0, expected), ended
    left = {path.name for path in tmp_path.glob("*.hdf5*")}
    assert left == ({f"{n}.hdf5" for n in names} if limit == 1_000_000 else set())


def test_disk_known_to_be_too_small_for_one_file(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("sciml.data.disk.free_bytes", lambda folder: 1000)
    with pytest.raises(StorageError, match=r"too small(.|\n)*11616 bytes needed(.|\n)*1000 bytes free"):
        merge(folder, tmp_path / "all.h5")


def test_merging_needs_no_more_memory_for_more_samples(tmp_path, monkeypatch):
    monkeypatch.setattr(slabs, "SLAB_BYTES", 1 << 14)
    peaks = []
    for samples in (200, 1600):
        source = tmp_path / str(samples)
        generated_data.make(source, layout=generated_data.layout(train=samples - 8), chunk=100)
        tracemalloc.start()
        merge(source, tmp_path / f"{samples}.h5")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    bytes_more = 1400 * generated_data.layout().sample_bytes
    assert peaks[1] - peaks[0] < bytes_more / 4  # the sample ids and what h5py keeps of them do grow


def test_master_shows_all_samples_in_order_and_moves_with_the_folder(folder, tmp_path):
    moved = folder.rename(tmp_path / "elsewhere")
    with h5py.File(moved / master.FILE) as file:
        assert file["outputs/u"].is_virtual
        assert bool(file.attrs["complete"])
        stored = {name: file[group][name][...] for group, name in generated_data.places()}
        assert list(file["sample_ids"]) == list(range(20))
        assert list(file["outputs/u"].attrs["axes"]) == ["sample", "time", "x"]
    assert_identical(stored, Dataset.open(moved).read())


def test_master_of_shards_whose_samples_alternate(tmp_path):
    """As several ranks leave them, and one whose ids do not increase."""
    generated_data.make(tmp_path)
    known = manifest.load(tmp_path)
    parts = {"a.h5": (0, 1, 2, 6, 7, 12), "b.h5": (8, 9, 3, 4, 5), "c.h5": (10, 11, 13)}
    shards = []
    for name, ids in parts.items():
        values = generated_data.expected(np.asarray(ids))
        with h5py.File(tmp_path / name, "w") as file:
            for group, variable in generated_data.places():
                file[f"{group}/{variable}"] = values[variable]
        shards.append(manifest.Shard(name, "", 0, ids))
    master.write(tmp_path, manifest.Manifest(known.identity, 4, tuple(shards)))
    with h5py.File(tmp_path / master.FILE) as file:
        u, energy = file["outputs/u"][...], file["quantities/energy"][...]
    wanted = generated_data.expected(range(14))
    assert_identical({"u": u[:14], "energy": energy[:14]}, {"u": wanted["u"], "energy": wanted["energy"]})
    assert np.isnan(u[14:]).all() and np.isnan(energy[14:]).all()


def test_master_gives_nan_for_a_lost_shard_and_the_check_says_so(folder):
    lose(folder)
    with h5py.File(folder / master.FILE) as file:
        assert np.isnan(file["outputs/u"][:8]).all()
        assert np.isfinite(file["outputs/u"][8:]).all()
    assert FIRST in wrong(folder)
