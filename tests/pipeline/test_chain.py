"""From one recipe to data, models, a report and surrogates: heat, Burgers and Darcy, with every kind of model."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from flax import nnx
from tiny_runs import checkpoint, finished, here, metrics, recipe, tree, write

from sciml.data import Dataset
from sciml.pipeline.tasks import Context, predict
from sciml.pipeline.training import load_trained

NAMES = ("heat", "burgers", "darcy")
MODELS = {"heat": ("fno", "deeponet", "mlp", "pinn"), **dict.fromkeys(NAMES[1:], ("fno", "deeponet", "pinn"))}
every_recipe = pytest.mark.parametrize("name", NAMES)


@every_recipe
def test_everything_is_there(name):
    folder = finished(name)
    for file in ("recipe.yaml", "environment.json", "results.json", "report.html", "data/manifest.json"):
        assert (folder / file).stat().st_size > 0, file
    for model in MODELS[name]:
        place = folder / "models" / model
        steps = recipe(name).models[model].train.steps
        assert (place / "checkpoints" / str(steps) / "manifest.json").is_file()
        assert list((place / "tensorboard").glob("events.*"))
        assert json.loads((place / "training.json").read_text())["steps"] == steps
        records = metrics(folder, model)
        assert [r["step"] for r in records if "loss" in r] == list(range(1, steps + 1))
        assert {"loss", "grad_norm", "finite"} <= records[0].keys()
        assert (folder / f"{model}.sciml" / "manifest.json").is_file()


@every_recipe
def test_results(name):
    """A row per model with its error, cost and speed-up; the PINN reports the coefficients it found."""
    results = json.loads((finished(name) / "results.json").read_text())
    assert [row["name"] for row in results["rows"]] == list(MODELS[name])
    for row in results["rows"]:
        assert 0 < row["error"] < 3 and row["parameters"] > 50 and row["training_seconds"] > 0
        assert 0 <= row["reference_error"] < 0.05 and row["latency_seconds"] > 0
    assert ("true" in results["rows"][-1]["note"]) == bool(recipe(name).models["pinn"].component.options["unknown"])


def test_the_pinn_learns_the_coefficient_from_the_equation():
    """Twelve steps of a tiny network; without the residual the guess 0.0346 would stay, 9 % off."""
    error = [r for r in metrics(finished("heat"), "pinn") if "evaluation/error" in r][-1]
    assert error["evaluation/diffusivity_relative_error"] < 0.05
    assert "loss/residual" in metrics(finished("heat"), "pinn")[0]


@every_recipe
def test_the_report_needs_nothing_else(name):
    page = (finished(name) / "report.html").read_text()
    links = re.findall(r"""(?:src|href)\s*=\s*["']([^"']+)""", page)
    assert [link for link in links if not link.startswith(("data:", "#"))] == []
    assert "@import" not in page and "<script src" not in page
    for model in MODELS[name]:
        assert model in page


@every_recipe
def test_a_second_run_skips_everything(name, tmp_path):
    """Data, checkpoints and records stay untouched, and the results are the same."""
    shutil.copytree(finished(name), tmp_path / "run")
    before = tree(tmp_path / "run")
    ended = here("run", write(name, tmp_path), "--run-folder", "run", folder=tmp_path)
    assert ended.code == 0, ended.err
    assert "data: 0 samples computed, 24 found" in ended.out
    after = tree(tmp_path / "run")
    kept = [p for p in before if p.startswith(("data/", "models/", "recipe.yaml")) and not p.endswith("training.json")]
    assert len(kept) > 20 and {p for p in kept if after.get(p) != before[p]} == set()
    for model in MODELS[name]:
        assert f"{model}: trained already" in ended.out
        assert after[f"{model}.sciml/params.npz"] == before[f"{model}.sciml/params.npz"]
    first, second = (json.loads(files["results.json"])["rows"] for files in (before, after))
    for key in ("name", "error", "error_spread", "reference_error", "parameters", "training_seconds", "note"):
        assert [row[key] for row in first] == [row[key] for row in second]


ALONE = """
import sys
import numpy as np
import sciml
for place in sys.argv[1:]:
    surrogate = sciml.load(place + ".sciml")
    given = dict(np.load(place + ".inputs.npz"))
    many = surrogate(**given)
    one = surrogate(**{name: value[0] for name, value in given.items()})
    outputs = [v.name for v in surrogate.outputs]
    both = [answer if isinstance(answer, dict) else {outputs[0]: answer} for answer in (many, one)]
    assert surrogate.selftest() < 1e-4
    np.savez(place + ".answer.npz", **both[0], **{name + "/one": value for name, value in both[1].items()})
assert "sciml.pipeline" not in sys.modules
"""


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Folder with every artifact, its inputs, and its answers from a fresh process while the runs are away."""
    place = tmp_path_factory.mktemp("alone")
    for name in NAMES:
        context = Context(recipe(name), finished(name))
        for model in MODELS[name]:
            inputs = load_trained(context, model).prepared.selftest_inputs
            shutil.copytree(finished(name) / f"{model}.sciml", place / f"{name}-{model}.sciml")
            np.savez(place / f"{name}-{model}.inputs.npz", **inputs)
    hidden = [(finished(name), finished(name).with_name("hidden")) for name in NAMES]
    for folder, elsewhere in hidden:
        folder.rename(elsewhere)
    try:
        command = [sys.executable, "-c", ALONE, *(f"{n}-{m}" for n in NAMES for m in MODELS[n])]
        ended = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=300)
    finally:
        for folder, elsewhere in hidden:
            elsewhere.rename(folder)
    assert ended.returncode == 0, ended.stderr
    return place


@pytest.mark.parametrize(("name", "model"), [(n, m) for n in NAMES for m in MODELS[n]])
def test_an_artifact_answers_as_its_model_does(alone, name, model):
    """In physical units, one sample or many. Another compilation of the same sums: rounding of the model's type."""
    trained = load_trained(Context(recipe(name), finished(name)), model)
    inputs = trained.prepared.selftest_inputs
    expected = predict(*nnx.split(trained.model), inputs)
    precision = recipe(name).models[model].train.precision
    rtol = {"float32": 2e-5, "float64": 1e-12}[precision]
    with np.load(alone / f"{name}-{model}.answer.npz") as answer:
        for output, values in expected.items():
            scale = float(np.max(np.abs(values)))
            np.testing.assert_allclose(answer[output], values, rtol=rtol, atol=rtol * scale)
            np.testing.assert_allclose(answer[f"{output}/one"], values[0], rtol=rtol, atol=rtol * scale)


def test_units_and_ranges_travel_with_the_artifact():
    import sciml

    surrogate = sciml.load(finished("heat") / "fno.sciml")
    units = {v.name: v.unit for v in (*surrogate.inputs, *surrogate.outputs)}
    assert units == {"u0": "K", "diffusivity": "m^2/s", "u": "K"}
    seen = {v.name: (v.low, v.high) for v in surrogate.inputs}["diffusivity"]
    values = Dataset.open(finished("heat") / "data").read(["diffusivity"], split="train")["diffusivity"]
    assert seen == pytest.approx((values.min(), values.max()), rel=1e-6)


def test_another_seed_is_another_run(tmp_path):
    """And the same seed the same one: see the undisturbed and the battered run in tests/faults."""
    path = write("heat", tmp_path)
    text = path.read_text()
    path.write_text(text[: text.index("  fno:")] + text[text.index("  mlp:") : text.index("  pinn:")])
    for folder, seed in (("one", 0), ("two", 1)):
        ended = here("run", path, f"seed={seed}", "--run-folder", folder, folder=tmp_path)
        assert ended.code == 0, ended.err
    whole = finished("heat")
    assert metrics(tmp_path / "one", "mlp") == metrics(whole, "mlp")
    assert checkpoint(tmp_path / "one", "mlp") == checkpoint(whole, "mlp")
    losses = [[r["loss"] for r in metrics(tmp_path / f, "mlp") if "loss" in r] for f in ("one", "two")]
    assert not set(losses[0]) & set(losses[1])
    one, two = (Dataset.open(tmp_path / f / "data").read(["u0"])["u0"] for f in ("one", "two"))
    assert not np.isclose(one, two).all(axis=1).any()


def test_a_dry_run_writes_nothing(tmp_path):
    path = write("heat", tmp_path)
    ended = here("run", path, "models.fno.width=4", "--dry-run", folder=tmp_path)
    assert ended.code == 0, ended.err
    assert "width: 4\n" in ended.out and "checkpoint_every: 4" in ended.out
    assert re.search(r"# data: 24 samples, [\d.]+ MiB", ended.out)
    counts = {row["name"]: row["parameters"] for row in _rows("heat")}
    for model in MODELS["heat"][1:]:
        assert f"# model {model}: {counts[model]:,} parameters" in ended.out
        assert re.search(rf"# model {model}: .* at most about [\d.]+ MiB", ended.out)
    assert f"# model fno: {counts['fno']:,} parameters" not in ended.out
    assert [p.name for p in tmp_path.iterdir()] == ["heat.yaml"]


def _rows(name):
    return json.loads((finished(name) / "results.json").read_text())["rows"]
