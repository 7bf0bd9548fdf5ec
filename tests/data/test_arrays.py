"""A user's own file: what is understood, and what is refused with the reason."""

from __future__ import annotations

import re

import h5py
import numpy as np
import pytest
from comparison import assert_identical

from sciml.data import open_arrays
from sciml.errors import BusyError, ConfigError, DataError

N, T, X, Y = 20, 3, 8, 6
RANDOM = np.random.default_rng(0)
FIELD, TRAJECTORY, SCALAR = RANDOM.normal(size=(N, X)), RANDOM.normal(size=(N, T, X)), RANDOM.uniform(size=N)


def write_npz(path, arrays):
    np.savez(path, **arrays)


def write_hdf5(path, arrays):
    with h5py.File(path, "w") as file:
        for name, values in arrays.items():
            file.create_dataset(name, data=values)


@pytest.fixture(params=[("data.npz", write_npz), ("data.h5", write_hdf5)], ids=["npz", "hdf5"])
def stored(request, tmp_path):
    """Function: arrays by keyword -> file with them."""
    name, write = request.param

    def store(**arrays):
        write(tmp_path / name, arrays)
        return tmp_path / name

    return store


def test_the_whole_interface(stored):
    file = stored(a=FIELD, u=TRAJECTORY, nu=SCALAR, t=[0.1, 0.2, 0.4], x=np.arange(X) / X)
    dataset = open_arrays(
        file,
        input="a",
        output="u",
        parameters="nu",
        coordinates={"time": "t", "x": "x"},
        periodic=["x"],
        units={"a": "K", "u": "K", "nu": "m^2/s", "x": "m", "time": "s"},
    )
    layout = dataset.layout
    assert [v.describe() for _, v in layout] == ["a (x: 8) [K]", "u (time: 3, x: 8) [K]", "nu (scalar) [m^2/s]"]
    assert layout.coordinates["time"].values == (0.1, 0.2, 0.4)
    assert (layout.coordinates["x"].unit, layout.coordinates["x"].period) == ("m", 1.0)
    assert layout.splits == {"train": 16, "validation": 2, "test": 2}
    assert_identical(dataset.read(), {"a": FIELD, "u": TRAJECTORY, "nu": SCALAR})
    assert next(dataset.batches(batch_size=4))["u"].shape == (4, T, X)
    assert dataset.provenance["fingerprint"]


def test_splits_are_disjoint_random_and_reproducible(stored):
    file = stored(input=FIELD, output=TRAJECTORY)
    first, again, other = (open_arrays(file, seed=seed).splits for seed in (0, 0, 1))
    assert sorted(np.concatenate(list(first.values()))) == list(range(N))
    assert_identical(first, again)
    assert not np.array_equal(first["train"], other["train"])
    counts = open_arrays(file, splits={"train": 7, "test": 3})
    assert {name: len(rows) for name, rows in counts.splits.items()} == {"train": 7, "test": 3, "unused": 10}
    assert_identical(counts.read("input", split="test")["input"], FIELD[counts.rows("test")])


@pytest.mark.parametrize(
    "splits", [{"train": 0.9, "test": 0.2}, {"train": 15, "test": 6}, {"train": 0.99, "test": 0.01}, {"train": 0}]
)
def test_splits_that_do_not_fit(stored, splits):
    with pytest.raises(ConfigError, match="the splits do not fit 20 samples"):
        open_arrays(stored(input=FIELD, output=TRAJECTORY), splits=splits)


@pytest.mark.parametrize(
    ("input_shape", "output_shape", "coordinates", "axes"),
    [
        ((X,), (X,), {}, ("x",)),
        ((X, Y), (X, Y), {}, ("x", "y")),
        ((X, Y), (T, X, Y), {}, ("time", "x", "y")),
        ((), (T, X), {"time": range(T)}, ("time", "x")),
        ((), (T, X), {"time": range(T), "x": range(X)}, ("time", "x")),
        ((), (T,), {"time": range(T)}, ("time",)),
        ((), (), {}, ()),
        ((X, Y), (X, Y), {"z": range(X), "r": range(Y)}, ("z", "r")),
    ],
)  # fmt: skip
def test_axis_order(stored, input_shape, output_shape, coordinates, axes):
    file = stored(input=RANDOM.normal(size=(N, *input_shape)), output=RANDOM.normal(size=(N, *output_shape)))
    assert open_arrays(file, coordinates=coordinates).layout.variable("output").axes == axes


def test_channels_become_fields(stored):
    values = RANDOM.normal(size=(N, T, X, 2))
    dataset = open_arrays(
        stored(input=FIELD, output=values, pair=RANDOM.normal(size=(N, X, 2))), input=["input", "pair"]
    )
    assert [v.name for v in dataset.layout.inputs] == ["input", "pair_0", "pair_1"]
    assert [v.axes for v in dataset.layout.outputs] == [("time", "x"), ("time", "x")]
    assert_identical(
        dataset.read(["output_1"], indices=[4, 2])["output_1"], np.ascontiguousarray(values[[4, 2], ..., 1])
    )


def test_two_readings_ask_for_axes(stored):
    file = stored(input=FIELD, output=RANDOM.normal(size=(N, X, X)))
    with pytest.raises(DataError, match=re.escape("axes={\"output\": ('time', 'x')}")):
        open_arrays(file)
    assert open_arrays(file, axes={"output": ("time", "x")}).layout.variable("output").axes == ("time", "x")
    assert len(open_arrays(file, axes={"output": ["x", "channel"]}).layout.outputs) == X
    with pytest.raises(DataError, match="axes stated for output do not fit"):
        open_arrays(file, axes={"output": ("x", "time")})


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"output": TRAJECTORY[:, :, :5]}, r"expected: \(sample, time: 3, x: 8\[, channel\]\)"),
        ({"output": TRAJECTORY[:10]}, r"different numbers of samples(.|\n)*output \(10, 3, 8\)"),
        ({"output": np.float64(3)}, "different numbers of samples"),
        ({"input": RANDOM.normal(size=(N, 2, 2, 2, 2))}, "at most three space axes"),
        ({"output": TRAJECTORY + 1j}, "store real and imaginary parts"),
        ({"output": TRAJECTORY > 0}, "does not hold real numbers"),
        ({"output": np.where(np.arange(N)[:, None, None] == 7, np.nan, TRAJECTORY)}, "output of sample 7"),
        ({"input": np.where(np.arange(N)[:, None] == 4, np.inf, FIELD)}, "8 of 8 values are NaN or infinite"),
        ({"input": np.full((N, X), 2**60)}, r"beyond 2\^53"),
        ({"input": np.repeat(FIELD[:10], 2, axis=0), "parameters": np.ones(N)}, "the same sample is in two splits"),
        ({"parameters": np.ones((N, 2))}, "more than one number per sample"),
        ({"time": [0.0, 2.0, 1.0]}, "do not increase(.|\n)*1.0 at index 2"),
        ({"time": [[0.0, 2.0, 1.0]]}, "coordinates of time are no list of points"),
        ({"time": [0.0, 1.0]}, r"the shape of output does not fit(.|\n)*time: 2"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:.*is stored as")
def test_refuses(stored, arrays, message):
    contents = {"input": FIELD, "output": TRAJECTORY, "parameters": SCALAR, "time": [0.0, 1.0, 2.0], **arrays}
    if np.iscomplexobj(contents["output"]) or contents["output"].dtype == bool:
        contents["time"] = np.arange(3.0)
    with pytest.raises(DataError, match=message):
        open_arrays(stored(**contents), parameters="parameters", coordinates={"time": "time"})


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"input": "inptu"}, DataError, r"no array 'inptu'(.|\n)*did you mean 'input'\?(.|\n)*one of: input, output"),
        ({"coordinates": {"x": "grid"}}, DataError, "no array 'grid'(.|\n)*coordinates of x"),
        ({"input": (), "parameters": ()}, ConfigError, "nothing to learn"),
        ({"units": {"outptu": "K"}}, ConfigError, "did you mean 'output'"),
        ({"periodic": ["y"]}, ConfigError, "periodic axis that is not in the data"),
        ({"output": "input"}, ConfigError, "an array is used twice"),
    ],
)
def test_refuses_options(stored, options, kind, message):
    with pytest.raises(kind, match=message):
        open_arrays(stored(input=FIELD, output=TRAJECTORY), **options)


@pytest.mark.parametrize(
    ("stored_as", "used_as"), [(">f4", "float32"), (">f8", "float64"), ("f2", "float32"), ("i2", "float64")]
)
@pytest.mark.filterwarnings("ignore:.*output is stored as")
def test_no_conversion_is_silent(stored, stored_as, used_as):
    values = (FIELD * 100).astype(stored_as)
    file = stored(input=values, output=(TRAJECTORY * 100).astype(stored_as))
    with pytest.warns(UserWarning, match=f"input is stored as .*{stored_as[-2:]} and used as {used_as}"):
        dataset = open_arrays(file)
    read = dataset.read("input")["input"]
    assert_identical(read, values.astype(used_as))
    assert read.dtype == np.dtype(used_as)  # native byte order


@pytest.mark.filterwarnings("error")
def test_float32_stays(stored):
    dataset = open_arrays(stored(input=FIELD.astype("f4"), output=TRAJECTORY.astype("f4")))
    assert dataset.layout.dtype == "float32"
    assert dataset.read("output")["output"].dtype == np.float32


def test_objects_are_not_loaded(tmp_path):
    np.savez(tmp_path / "a.npz", input=FIELD, output=np.array([{"a": 1}] * N, dtype=object))
    with pytest.raises(DataError, match="loading them can run code"):
        open_arrays(tmp_path / "a.npz")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["input"], file["output"] = FIELD, ["text"] * N
    with pytest.raises(DataError, match="loading them can run code"):
        open_arrays(tmp_path / "a.h5")


def test_units_in_the_file(tmp_path):
    write_hdf5(tmp_path / "a.h5", {"input": FIELD, "output": TRAJECTORY})
    with h5py.File(tmp_path / "a.h5", "a") as file:
        file["output"].attrs["units"] = "degC"
    assert open_arrays(tmp_path / "a.h5").layout.variable("output").unit == "degC"
    with pytest.raises(DataError, match=r"unit of output(.|\n)*expected: K(.|\n)*got: degC"):
        open_arrays(tmp_path / "a.h5", units={"output": "K"})


def test_groups_and_a_missing_virtual_source(tmp_path):
    write_hdf5(tmp_path / "part.h5", {"values": TRAJECTORY})
    layout = h5py.VirtualLayout(shape=TRAJECTORY.shape, dtype=float)
    layout[:] = h5py.VirtualSource("part.h5", "values", shape=TRAJECTORY.shape)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["fields/a"] = FIELD
        file.create_virtual_dataset("fields/u", layout)
    dataset = open_arrays(tmp_path / "a.h5", input="fields/a", output="fields/u")
    assert_identical(dataset.read("u")["u"], TRAJECTORY)
    (tmp_path / "part.h5").unlink()
    with pytest.raises(DataError, match="put together from files that are missing"):
        open_arrays(tmp_path / "a.h5", input="fields/a", output="fields/u")


def test_files_that_are_no_arrays(tmp_path):
    with pytest.raises(DataError, match="there is no file"):
        open_arrays(tmp_path / "none.h5")
    (tmp_path / "a.npz").write_text("not a zip")
    with pytest.raises(DataError, match="neither an npz nor an HDF5 file"):
        open_arrays(tmp_path / "a.npz")
    for write, name in ((write_npz, "b.npz"), (write_hdf5, "b.h5")):
        write(tmp_path / name, {"input": FIELD, "output": TRAJECTORY})
        whole = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(whole[: len(whole) // 2])
        with pytest.raises(DataError, match=r"cannot be read|not a whole HDF5 file"):
            open_arrays(tmp_path / name)


def test_a_file_that_is_being_written(tmp_path, monkeypatch):
    monkeypatch.setattr("sciml.data.disk.open_hdf5.__defaults__", (0.2,))
    monkeypatch.delenv("HDF5_USE_FILE_LOCKING", raising=False)
    import subprocess
    import sys

    program = (
        f"import h5py, sys; f = h5py.File({str(tmp_path / 'a.h5')!r}, 'w'); print('open', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout and writer.stdin
        writer.stdout.readline()
        while not (tmp_path / "a.h5").stat().st_size:
            (tmp_path / "a.h5").write_bytes(b"\x89HDF\r\n\x1a\n")  # h5py has not flushed a header yet
        with pytest.raises(BusyError, match="is locked by another process"):
            open_arrays(tmp_path / "a.h5")
        writer.stdin.close()
