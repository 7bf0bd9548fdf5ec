"""Damaged data sets: named and refused, and an undamaged control that reads."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import generated_data
import h5py
import numpy as np
import pytest

from sciml.data import Dataset, generate
from sciml.errors import CannotCreateError, DataError, IntegrityError, PermissionDeniedError, StorageError


@pytest.fixture
def folder(tmp_path):
    for samples in (8, 20):
        generate(
            tmp_path,
            generated_data.layout(),
            generated_data.simulate,
            chunk=4,
            samples=samples,
            provenance={"seed": 7},
        )
    return tmp_path


def shard(folder: Path) -> Path:
    return sorted(folder.glob("shard-*.h5"))[0]


def manifest(folder: Path) -> dict:
    return json.loads((folder / "manifest.json").read_text())


def accept_changes(folder: Path) -> None:
    """Give the manifest the hashes of the files as they are now, as a writer with a defect would."""
    value = manifest(folder)
    for entry in value["shards"]:
        content = (folder / entry["file"]).read_bytes()
        entry.update(sha256=hashlib.sha256(content).hexdigest(), bytes=len(content))
    (folder / "manifest.json").write_text(json.dumps(value))


def test_control(folder):
    accept_changes(folder)
    assert len(Dataset.open(folder).read()["u"]) == 20


def test_missing_shard(folder):
    name = shard(folder)
    name.unlink()
    with pytest.raises(DataError, match=rf"1 of 2 shards are missing(.|\n)*{name.name}"):
        Dataset.open(folder)


def test_truncated_shard(folder):
    size = shard(folder).stat().st_size
    os.truncate(shard(folder), size // 2)
    with pytest.raises(DataError, match=rf"{shard(folder).name} has another size(.|\n)*{size} bytes(.|\n)*{size // 2}"):
        Dataset.open(folder)
    with pytest.raises(DataError, match="has another size"):  # nor is such a set continued
        generated_data.make(folder)


@pytest.mark.parametrize("place", [0.02, 0.3, 0.7, 0.99])
def test_flipped_bit(folder, place):
    Dataset.open(folder)  # hashed once: the change must still be seen
    content = bytearray(shard(folder).read_bytes())
    content[int(place * len(content))] ^= 1
    shard(folder).write_bytes(content)
    with pytest.raises(IntegrityError, match=f"{shard(folder).name} was altered"):
        Dataset.open(folder)


def test_hashed_once_per_process(folder, monkeypatch):
    Dataset.open(folder)
    monkeypatch.setattr("sciml.data.disk.sha256", lambda path: pytest.fail(f"{path} was hashed again"))
    Dataset.open(folder)


def test_incomplete(tmp_path):
    generated_data.make(tmp_path, samples=8)
    with pytest.raises(DataError, match=r"is incomplete(.|\n)*20 samples(.|\n)*8; the first missing is sample 8"):
        Dataset.open(tmp_path)


def test_copied_shard(folder):
    value = manifest(folder)
    shutil.copy(shard(folder), folder / "shard-009-0000-0000.h5")
    value["shards"].append({**value["shards"][0], "file": "shard-009-0000-0000.h5"})
    (folder / "manifest.json").write_text(json.dumps(value))
    with pytest.raises(DataError, match=r"sample 0 is stored more than once(.|\n)*shard-009"):
        Dataset.open(folder)


def test_no_data_set(tmp_path):
    with pytest.raises(DataError, match="is no data set"):
        Dataset.open(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(DataError, match="cannot be read"):
        Dataset.open(tmp_path)


def test_altered_manifest(folder):
    value = manifest(folder)
    value["layout"]["outputs"][0]["unit"] = "degC"
    (folder / "manifest.json").write_text(json.dumps(value))
    with pytest.raises(IntegrityError, match="manifest.json was altered"):
        Dataset.open(folder)


def edit(folder: Path, change) -> None:
    with h5py.File(shard(folder), "a") as file:
        change(file)
    accept_changes(folder)


def set_nan(file: h5py.File) -> None:
    file["outputs/u"][3, 1, 2:5] = np.nan


def transpose(file: h5py.File) -> None:
    values = file["outputs/u"][...]
    del file["outputs/u"]
    file["outputs/u"] = values.swapaxes(1, 2)


def other_unit(file: h5py.File) -> None:
    file["outputs/u"].attrs["unit"] = "degC"


def unfinished(file: h5py.File) -> None:
    file.attrs["complete"] = False


def other_ids(file: h5py.File) -> None:
    file["sample_ids"][0] = 5


def lose_variable(file: h5py.File) -> None:
    del file["parameters/diffusivity"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (transpose, r"u in .*shard-001-0000-0000.h5 does not fit the layout(.|\n)*\(8, 3, 16\)"),
        (other_unit, "in degC"),
        (unfinished, "is no finished shard"),
        (other_ids, "holds other samples"),
        (lose_variable, "no data set 'parameters/diffusivity'"),
    ],
)
def test_a_shard_that_does_not_fit(folder, change, message):
    edit(folder, change)
    with pytest.raises(DataError, match=message):
        Dataset.open(folder)


@pytest.mark.parametrize("memory", [0, 2**30])
def test_not_a_number_in_a_shard(folder, memory):
    edit(folder, set_nan)
    dataset = Dataset.open(folder, memory=memory)
    message = r"u of sample 3 in .*shard-001-0000-0000.h5 is not finite(.|\n)*3 of 48 values"
    with pytest.raises(DataError, match=message):
        dataset.read(["u"])
    with pytest.raises(DataError, match=message):
        for _ in range(5):
            next(dataset.batches(["u"], batch_size=12))


def test_disk_known_to_be_too_small(tmp_path, monkeypatch):
    monkeypatch.setattr("sciml.data.disk.free_bytes", lambda folder: 1000)
    with pytest.raises(StorageError, match=r"too small(.|\n)*11616 bytes needed(.|\n)*1000 bytes free") as caught:
        generated_data.make(tmp_path)
    assert caught.value.exit_code == 74
    assert not list(tmp_path.glob("shard*"))


def test_disk_full_while_writing(tmp_path):
    """A limit on the size of a file stands for a full disk: finished shards stay, and nothing half-written."""
    generated_data.make(tmp_path, samples=8)
    before = {path.name: path.read_bytes() for path in tmp_path.glob("shard*")}
    program = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000));"
        "import generated_data, pathlib; from sciml.errors import SciMLError\n"
        "try:\n    generated_data.make(pathlib.Path(sys.argv[1]))\n"
        "except SciMLError as error:\n    print(error); sys.exit(error.exit_code)"
    )
    tests = str(Path(__file__).parent.parent)
    ended = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": tests},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 74, ended
    assert "disk is full" in ended.stdout
    assert "bytes needed" in ended.stdout
    assert "bytes free" in ended.stdout
    assert {path.name: path.read_bytes() for path in tmp_path.glob("shard*")} == before
    generated_data.make(tmp_path)
    assert len(Dataset.open(tmp_path)) == 20


def test_killed_between_shards(tmp_path):
    tests = Path(__file__).parent.parent
    program = [sys.executable, str(tests / "generated_data.py"), str(tmp_path), "--kill-after", "3"]
    ended = subprocess.run(program, capture_output=True, timeout=60)
    assert ended.returncode == 9
    made = generate(tmp_path, generated_data.layout(), generated_data.simulate, chunk=4, provenance={"seed": 7})
    assert made.computed == 20  # nothing was closed yet, nothing is half there
    assert len(Dataset.open(tmp_path)) == 20


@pytest.mark.parametrize(
    ("number", "kind", "code"),
    [
        (errno.EACCES, PermissionDeniedError, 77),
        (errno.EROFS, PermissionDeniedError, 77),
        (errno.ENAMETOOLONG, CannotCreateError, 73),
        (errno.EDQUOT, StorageError, 74),
        (errno.EIO, StorageError, 74),
    ],
)
def test_folder_that_cannot_be_made(tmp_path, monkeypatch, number, kind, code):
    """The system's answer is given by hand: root, who may run the tests, is refused nothing."""

    def refuse(*_, **__):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(kind, match=os.strerror(number)) as caught:
        generated_data.make(tmp_path / "data")
    assert caught.value.exit_code == code


def test_folder_whose_name_is_too_long(tmp_path):
    with pytest.raises(CannotCreateError, match="cannot create"):
        generated_data.make(tmp_path / ("d" * 300))


def test_folder_that_is_a_file(tmp_path):
    (tmp_path / "data").write_text("")
    with pytest.raises(CannotCreateError, match="cannot create"):
        generated_data.make(tmp_path / "data")
