"""predict, info and verify."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import h5py
import numpy as np
import pytest

import sciml.solvers


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def _inputs(**arrays: np.ndarray) -> Path:
    np.savez("in.npz", allow_pickle=False, **arrays)
    return Path("in.npz")


U0 = np.arange(6.0).reshape(2, 3)


def test_predict_from_npz(run_sciml, doubling):
    result = run_sciml("predict", "a.sciml", _inputs(u0=U0, diffusivity=np.ones(2), other=U0), "-o", "out.npz")
    assert result.code == 0
    assert "u: shape (2, 3), float64" in result.output
    with np.load("out.npz") as written:
        np.testing.assert_array_equal(written["u"], 2 * U0)
    assert sorted(path.name for path in Path().iterdir()) == ["in.npz", "out.npz"]


def test_predict_from_hdf5(run_sciml, doubling):
    with h5py.File("in.h5", "w") as file:
        file["u0"], file["diffusivity"] = U0, 0.1
    assert run_sciml("predict", "a.sciml", "in.h5").code == 0
    assert Path("prediction.npz").is_file()


def test_predict_never_overwrites(run_sciml, doubling):
    Path("out.npz").write_text("mine", encoding="utf-8")
    result = run_sciml("predict", "a.sciml", _inputs(u0=U0, diffusivity=U0), "-o", "out.npz")
    assert result.code == 73 and Path("out.npz").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    ("inputs", "code", "message"),
    [
        ("in.npz", 65, "in.npz lacks diffusivity"),
        ("no.npz", 65, "no file no.npz"),
        ("bad.h5", 65, "bad.h5 cannot be read"),
        ("in.csv", 78, "in.csv is of an unknown kind"),
        ("objects.npz", 65, "objects.npz cannot be read"),
    ],
)
def test_inputs_that_do_not_fit(run_sciml, doubling, inputs, code, message):
    _inputs(u0=U0)
    Path("bad.h5").write_text("not HDF5", encoding="utf-8")
    np.savez("objects.npz", u0=np.array([{}], dtype=object), diffusivity=U0)
    result = run_sciml("predict", "a.sciml", inputs)
    assert result.code == code
    assert message in result.errors
    assert not Path("prediction.npz").exists()


def test_info_of_a_recipe_and_a_run(run_sciml, heat):
    assert "recipe 'heat'" in run_sciml("info", heat).output
    Path("run").mkdir()
    heat.rename("run/recipe.yaml")
    Path("run/report.html").touch()
    Path("run/fno.sciml").mkdir()
    printed = run_sciml("info", "run").output
    assert "run of the recipe 'heat'" in printed
    assert "models: fno" in printed
    assert "report.html  0.0 MiB" in printed
    assert "surrogate: run/fno.sciml" in printed


def _manifest(folder: str, **entries: object) -> Path:
    Path(folder).mkdir()
    Path(folder, "manifest.json").write_text(json.dumps(entries), encoding="utf-8")
    return Path(folder)


VARIABLE = {"name": "u0", "unit": "K", "shape": [64], "axes": ["x"], "low": -1.0, "high": 2.0, "role": "field"}


def test_info_of_data(run_sciml):
    folder = _manifest(
        "data",
        format="sciml-data",
        samples=8,
        complete=False,
        shards=[{}, {}],
        fingerprint="0123456789abcdef",
        layout={"inputs": [VARIABLE]},
    )
    printed = run_sciml("info", folder).output
    assert "data set of 8 samples in 2 shards, INCOMPLETE" in printed
    assert "inputs: u0 (x: 64) [K], seen -1 to 2" in printed


def test_info_of_a_surrogate(run_sciml):
    folder = _manifest("fno.sciml", format="sciml-surrogate", spec={"inputs": [VARIABLE], "outputs": [VARIABLE]})
    printed = run_sciml("info", folder).output
    assert "surrogate fno.sciml" in printed
    assert "outputs: u0 (x: 64) [K]" in printed


def test_info_of_something_else(run_sciml):
    Path("empty").mkdir()
    assert "empty is nothing that sciml wrote" in run_sciml("info", "empty").errors
    assert "missing is not there" in run_sciml("info", "missing").errors
    Path("broken").mkdir()
    Path("broken/manifest.json").write_text("{", encoding="utf-8")
    result = run_sciml("info", "broken")
    assert result.code == 65 and "manifest.json cannot be read" in result.errors


@pytest.mark.parametrize(("passed", "code"), [(True, 0), (False, 79)])
def test_verify(run_sciml, monkeypatch, passed, code):
    verification = ModuleType("sciml.solvers.verification")
    report = SimpleNamespace(passed=passed)

    def told(reference, *, tell, long):
        assert reference == "my_problem.py:Mine" and long
        tell("all readings agree")
        return report

    monkeypatch.setattr(verification, "verify", told, raising=False)
    monkeypatch.setitem(sys.modules, "sciml.solvers.verification", verification)
    monkeypatch.setattr(sciml.solvers, "verification", verification, raising=False)
    result = run_sciml("verify", "my_problem.py:Mine", "--long")
    assert result.code == code
    assert "all readings agree" in result.output
