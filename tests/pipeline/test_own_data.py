"""A user's own arrays, npz or HDF5, without any solver: train, evaluate, export, predict."""

from __future__ import annotations

import json

import h5py
import numpy as np
import pytest
from tiny_runs import here

RECIPE = """
name: own
data: {file: DATA, input: a, output: u, axes: {u: [time, x]}, units: {a: K, u: K}, periodic: [x]}
models:
  fno: {kind: fno, width: 8, modes: [3], layers: 2, train: {steps: 6, batch: 8}}
"""


def arrays(samples=24, points=16):
    """u(t, x) = a(x - t) for two times: what an FNO can learn."""
    a = np.random.default_rng(0).normal(size=(samples, points)).cumsum(axis=1)
    return {"a": a, "u": np.stack([np.roll(a, 1, 1), np.roll(a, 2, 1)], axis=1)}


def save(folder, suffix, **values):
    path = folder / f"mine{suffix}"
    if suffix == ".npz":
        np.savez(path, **values)
    else:
        with h5py.File(path, "w") as file:
            for name, value in values.items():
                file[name] = value
    (folder / "own.yaml").write_text(RECIPE.replace("DATA", path.name))
    return path


@pytest.mark.parametrize("suffix", [".npz", ".h5"])
def test_the_whole_chain_by_stages(tmp_path, suffix):
    save(tmp_path, suffix, **arrays())
    for stage in ("generate", "train", "evaluate", "export"):
        ended = here(stage, "own.yaml", folder=tmp_path)
        assert ended.code == 0, ended.err
    (row,) = json.loads((tmp_path / "runs/own/results.json").read_text())["rows"]
    assert 0 < row["error"] < 3 and row["reference_error"] is None
    np.savez(tmp_path / "in.npz", a=arrays()["a"][:3])
    ended = here("predict", "runs/own/fno.sciml", "in.npz", folder=tmp_path)
    assert ended.code == 0 and "u: shape (3, 2, 16), float32" in ended.out, ended.err


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        ({"u": None}, 65, ["no array 'u'"]),
        ({"u": arrays(samples=23)["u"]}, 65, ["different numbers of samples", "(23, 2, 16)"]),
        ({"u": np.moveaxis(arrays()["u"], 1, 2)}, 65, ["u", "(16, 2)"]),
        ({"u": np.where(np.arange(24)[:, None, None] == 7, np.nan, arrays()["u"])}, 65, ["not finite", "7"]),
    ],
)
def test_arrays_that_do_not_fit(tmp_path, change, code, words):
    values = {name: value for name, value in {**arrays(), **change}.items() if value is not None}
    save(tmp_path, ".npz", **values)
    ended = here("train", "own.yaml", folder=tmp_path)
    assert ended.code == code, ended
    for word in words:
        assert word in ended.err


def test_a_file_that_is_not_there(tmp_path):
    save(tmp_path, ".npz", **arrays()).rename(tmp_path / "mine_too.npz")
    ended = here("run", "own.yaml", folder=tmp_path)
    assert ended.code == 78 and "own.yaml:3:" in ended.err and "mine.npz" in ended.err
    assert not (tmp_path / "runs").exists()
