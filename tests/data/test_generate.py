"""Generation in one process: what is in the files, continuing, and what is refused without touching anything."""

from __future__ import annotations

import errno
import json
import sys

import generated_data
import h5py
import numpy as np
import pytest
from comparison import assert_identical

from sciml.data import Dataset, Simulated, generate
from sciml.errors import BusyError, ConfigError, DataError, NumericalError


def shards(folder):
    return sorted(folder.glob("shard-*.h5"))


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_reads_back_what_was_simulated(tmp_path):
    generated_data.make(tmp_path)
    dataset = Dataset.open(tmp_path)
    assert_identical(dataset.read(), generated_data.expected(range(20)))
    assert_identical(dataset.read(["u"], split="test"), {"u": generated_data.expected(range(15, 20))["u"]})


def test_schema_in_the_file(tmp_path):
    provenance = {"seed": 7, "recipe": "name: heat\n" + "# long\n" * 10_000, "method": {"kind": "etdrk4"}}
    generated_data.make(tmp_path, provenance=provenance, notes={"method_error": 1e-9})
    (path,) = shards(tmp_path)
    with h5py.File(path) as file:
        assert set(file) == {
            *("coordinates", "inputs", "outputs", "parameters", "quantities"),
            *("sample_ids", "layout", "provenance"),
        }
        u = file["outputs/u"]
        assert (u.shape, u.chunks, u.fletcher32, u.dtype) == ((20, 3, 16), (1, 3, 16), True, np.float64)
        assert np.isnan(u.fillvalue)
        assert (u.attrs["unit"], list(u.attrs["axes"])) == ("K", ["sample", "time", "x"])
        assert file["coordinates/x"].attrs["unit"] == "m"
        assert bool(file["coordinates/x"].attrs["periodic"])
        assert list(file["sample_ids"]) == list(range(20))
        assert (file.attrs["seed"], file.attrs["method_error"]) == (7, 1e-9)
        assert json.loads(file.attrs["method"]) == {"kind": "etdrk4"}
        assert file["provenance/recipe"][()].decode() == provenance["recipe"]
        assert "code_version" in file.attrs


def test_manifest_says_where_every_sample_is(tmp_path):
    generated_data.make(tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    (entry,) = manifest["shards"]
    assert manifest["complete"] is True
    assert entry["ids"] == [[0, 19]]
    assert entry["bytes"] == (tmp_path / entry["file"]).stat().st_size


def test_single_precision_on_disk(tmp_path):
    generated_data.make(tmp_path, layout=generated_data.layout(dtype="float32"))
    assert Dataset.open(tmp_path).read(["u"])["u"].dtype == np.float32


@pytest.mark.parametrize("first", [1, 6, 8])
def test_continues_with_the_missing_samples_only(tmp_path, first):
    calls = []

    def counted(ids):
        calls.append(ids.tolist())
        return generated_data.simulate(ids)

    options = {"chunk": 4, "provenance": {"seed": 7}}
    generate(tmp_path, generated_data.layout(), counted, samples=first, **options)
    before = content(tmp_path)
    made = generate(tmp_path, generated_data.layout(), counted, **options)
    assert (made.computed, made.found) == (20 - first, first)
    assert all(len(ids) == 4 and ids[0] % 4 == 0 for ids in calls)  # the same samples are always computed together
    assert all(content(tmp_path)[name] == before[name] for name in before if name.startswith("shard"))
    assert_identical(Dataset.open(tmp_path).read(), generated_data.expected(range(20)))
    calls.clear()
    assert generate(tmp_path, generated_data.layout(), counted, **options).computed == 0
    assert not calls


def test_the_recorded_chunk_wins_when_continuing(tmp_path):
    lengths = []

    def counted(ids):
        lengths.append(len(ids))
        return generated_data.simulate(ids)

    generated_data.make(tmp_path, samples=4)
    generate(tmp_path, generated_data.layout(), counted, chunk=10, provenance={"seed": 7})
    assert lengths == [4, 4, 4, 4]


def test_shards_are_closed_as_the_work_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr("sciml.data.writer.SHARD_BYTES", 1)
    generated_data.make(tmp_path)
    assert len(shards(tmp_path)) == 5
    assert_identical(Dataset.open(tmp_path).read(), generated_data.expected(range(20)))


def test_finished_shards_of_a_killed_run_are_adopted_and_parts_removed(tmp_path):
    generated_data.make(tmp_path, samples=8)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    (tmp_path / "manifest.json").write_text(json.dumps({**manifest, "shards": [], "complete": False}))
    (tmp_path / "shard-001-0000-0001.h5.part").write_bytes(b"half a shard")
    made = generate(tmp_path, generated_data.layout(), generated_data.simulate, chunk=4, provenance={"seed": 7})
    assert (made.adopted, made.computed, made.found) == (8, 12, 0)
    assert not list(tmp_path.glob("*.part"))
    assert_identical(Dataset.open(tmp_path).read(), generated_data.expected(range(20)))


def test_a_deleted_shard_is_made_again(tmp_path):
    generated_data.make(tmp_path, samples=8)
    generated_data.make(tmp_path)
    shards(tmp_path)[0].unlink()
    generated_data.make(tmp_path)
    assert_identical(Dataset.open(tmp_path).read(), generated_data.expected(range(20)))


@pytest.mark.parametrize(
    ("layout", "provenance", "changed"),
    [
        (generated_data.layout(train=13), {"seed": 7}, "splits"),
        (generated_data.layout(dtype="float32"), {"seed": 7}, "dtype"),
        (generated_data.layout(), {"seed": 8}, "seed = 7"),
        (generated_data.layout(), {"seed": 7, "recipe": "other"}, "recipe"),
    ],
)
def test_another_recipe_in_the_folder_is_refused(tmp_path, layout, provenance, changed):
    generated_data.make(tmp_path)
    before = content(tmp_path)
    with pytest.raises(ConfigError, match=changed):
        generate(tmp_path, layout, generated_data.simulate, provenance=provenance)
    assert content(tmp_path) == before


def test_a_foreign_shard_is_not_adopted(tmp_path):
    generated_data.make(tmp_path / "a", samples=4)
    generated_data.make(tmp_path / "b", provenance={"seed": 8})
    (other,) = shards(tmp_path / "b")
    (tmp_path / "a" / "shard-009-0000-0000.h5").write_bytes(other.read_bytes())
    with pytest.raises(DataError, match="belongs to another data set"):
        generated_data.make(tmp_path / "a")


@pytest.mark.parametrize("name", ["shard-copy-0000-0000.h5", "shard-1x-2.h5", "shard-001-0000-0000 (1).h5"])
def test_a_name_that_is_none_of_a_shard(tmp_path, name):
    generated_data.make(tmp_path)
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(DataError, match="not named as shards") as caught:
        generated_data.make(tmp_path)
    assert name in str(caught.value)
    (tmp_path / name).unlink()
    generated_data.make(tmp_path)


def test_samples_that_blow_up_are_named_and_never_written(tmp_path):
    def diverging(ids):
        arrays = generated_data.expected(ids)
        arrays["u"][ids == 5, 1:] = np.nan
        return Simulated(arrays, {i: "unstable at time 0.3 s" for i in [11] if i in ids})

    with pytest.raises(
        NumericalError, match="sample 5: u is not finite at time 1 s; sample 11: unstable at time 0.3 s"
    ):
        generate(tmp_path, generated_data.layout(), diverging, chunk=4, provenance={"seed": 7})
    with pytest.raises(DataError, match="the first missing is sample 5"):
        Dataset.open(tmp_path)
    made = generate(tmp_path, generated_data.layout(), generated_data.simulate, chunk=4, provenance={"seed": 7})
    assert made.computed == 2


@pytest.mark.parametrize("kind", [RuntimeError, KeyboardInterrupt])
def test_an_exception_keeps_what_is_finished(tmp_path, kind):
    def stopping(ids):
        if ids[0] >= 8:
            raise kind("stop")
        return generated_data.simulate(ids)

    with pytest.raises(kind, match="stop"):
        generate(tmp_path, generated_data.layout(), stopping, chunk=4, provenance={"seed": 7})
    made = generate(tmp_path, generated_data.layout(), generated_data.simulate, chunk=4, provenance={"seed": 7})
    assert (made.found + made.adopted, made.computed) == (8, 12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda arrays: arrays.pop("u0"), "other variables"),
        (lambda arrays: arrays.update(u=arrays["u"].swapaxes(1, 2)), "u in another shape"),
        (lambda arrays: arrays.update(u=arrays["u"] + 1j), "u in another shape"),
    ],
)
def test_simulate_must_return_what_the_layout_says(tmp_path, change, message):
    def wrong(ids):
        arrays = generated_data.expected(ids)
        change(arrays)
        return Simulated(arrays)

    with pytest.raises(DataError, match=message):
        generate(tmp_path, generated_data.layout(), wrong, chunk=4)


@pytest.mark.parametrize("options", [{"chunk": 0}, {"samples": 21}, {"samples": 0}])
def test_impossible_requests(tmp_path, options):
    with pytest.raises(ConfigError, match="nothing to generate"):
        generated_data.make(tmp_path, **options)


def test_two_generations_in_one_folder(tmp_path):
    def nested(ids):
        generated_data.make(tmp_path)
        return generated_data.simulate(ids)

    with pytest.raises(BusyError, match="is in use"):
        generate(tmp_path, generated_data.layout(), nested, chunk=4, provenance={"seed": 7})
    generated_data.make(tmp_path)  # the lock is gone with the error
    assert len(Dataset.open(tmp_path)) == 20


def test_a_file_system_without_locks_is_warned_of(tmp_path, monkeypatch, caplog):
    def refuse(stream, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("sciml.data.plan.fcntl.flock", refuse)
    generated_data.make(tmp_path)
    assert len(Dataset.open(tmp_path)) == 20
    assert f"{tmp_path} cannot be locked (No locks available)" in caplog.text


def test_notes_are_made_only_for_what_is_computed(tmp_path):
    made = []

    def notes():
        made.append("again")
        return {"method_error": 1e-9 * len(made)}

    for samples in (8, 8, 20, 20):
        generated_data.make(tmp_path, samples=samples, notes=notes)
    assert len(made) == 2
    assert Dataset.open(tmp_path).provenance["method_error"] == 2e-9


def test_progress_counts_samples(tmp_path):
    seen = []
    generated_data.make(tmp_path, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(4, 20), (8, 20), (12, 20), (16, 20), (20, 20)]


def test_mpi4py_is_not_imported_without_a_launcher(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    generated_data.make(tmp_path)
    assert len(Dataset.open(tmp_path)) == 20
