"""`sciml plan` and `plan: auto`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny_runs import here, recipe, write

from sciml.parallel import measured as timing
from sciml.pipeline.tasks import Context

ADAM = "models.fno.train.optimizer=adam"
MUON = "models.fno.train.optimizer=muon"
DOUBLE = "models.fno.train.precision=float64"
ONE = "models={fno: {kind: fno, width: 8, modes: [3], layers: 2, train: {steps: 12, batch: 8}}}"


def test_the_table_names_the_choice(tmp_path):
    ended = here("plan", write("heat", tmp_path), ADAM, "--devices", "8", "--nodes", "2", folder=tmp_path)
    assert ended.code == 0, ended.err
    assert "heat, model fno, batch 8: 8 devices on 2 nodes" in ended.out
    assert "choice: data 8" in ended.out and "plan: {data: 8}" in ended.out
    assert "layouts dropped" in ended.out and "(--all)" in ended.out
    assert not list(tmp_path.glob("runs"))


def test_all_plans_of_a_model_by_name(tmp_path):
    ended = here(
        "plan", write("heat", tmp_path), "-m", "pinn", "-n", "2", "--all", "--hardware", "a100", folder=tmp_path
    )
    assert ended.code == 0, ended.err
    assert "A100" in ended.out and "(--all)" not in ended.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--model", "fnoo"), "no model 'fnoo' in the recipe 'heat'"),
        (("--hardware", "h1000"), "unknown hardware 'h1000'"),
        (("--devices", "8", "--nodes", "3"), "the nodes do not divide the devices"),
        (("--devices", "7"), "no plan for 7 devices"),
    ],
)
def test_impossible_questions_end_in_words(tmp_path, arguments, words):
    ended = here("plan", write("heat", tmp_path), *arguments, folder=tmp_path)
    assert ended.code == 78
    assert words in ended.err


def test_auto_takes_a_plan_and_says_so_once(capsys):
    chosen = recipe("heat", "plan=auto")
    context, section = Context(chosen, Path()), chosen.models["fno"]
    plan = context.plan(section)
    assert context.plan(section) is plan
    assert 8 % plan.devices == 0
    assert capsys.readouterr().out.count("plan: auto") == 1


def test_measured_devices_are_kept(tmp_path, monkeypatch):
    """Positive figures, a file per kind of device, and no second timing."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(timing, "PRODUCTS", dict.fromkeys(timing.PRODUCTS, 32))
    monkeypatch.setattr(timing, "SIZES", (2**6, 2**8, 2**10))
    first = timing.measured()
    assert all(rate > 0 for rate in first.peak.values())
    assert first.inside.latency > 0 and first.inside.bandwidth > 0 and first.memory > 0
    assert json.loads(timing.cache_file().read_text())["name"] == first.name
    monkeypatch.setattr(timing, "_measure", lambda: pytest.fail("timed again"))
    assert timing.measured() == first


def test_a_damaged_cache_is_made_anew(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(timing, "_measure", lambda: timing.PRESETS["cpu"])
    path = timing.cache_file()
    path.parent.mkdir(parents=True)
    path.write_text("{")
    assert timing.measured() == timing.PRESETS["cpu"]
    assert timing.measured() == timing.PRESETS["cpu"]


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ("{data: 4, domain: 2}", "\n* data 4 x domain 2 "),
        ("{data: -1}", "* the plan of the recipe, number 1 of"),
        ("{data: 4}", "* the plan of the recipe, {data: 4}, is none of these: it uses 4 devices, not 8"),
        ("{data: 2, pipeline: 4, microbatches: 1}", "is none of these: it is among the layouts that were dropped"),
    ],
)
def test_the_plan_of_the_recipe_is_marked(tmp_path, plan, words):
    ended = here("plan", write("heat", tmp_path), ADAM, f"plan={plan}", "-n", "8", folder=tmp_path)
    assert ended.code == 0, ended.err
    assert words in ended.out


IMPOSSIBLE = {
    "{data: 4, compress: powersgd}": ((DOUBLE,), "compressed gradients are approximate, float64 is not"),
    "{data: -1, compress: powersgd}": ((MUON,), "got: muon"),
    "{fsdp: 2, zero: 2}": ((MUON,), "got: muon with zero 2"),
    "{tensor: 3}": ((ADAM,), "does not divide over the mesh axis tensor"),
    "{pipeline: 2}": ((ADAM,), "the plan's pipeline split nothing of FNONetwork"),
    "{domain: 3}": ((ADAM,), "the first space axis of 'u' does not divide"),
    "{data: 3}": ((ADAM,), "must be a multiple of plan.data, which is 3"),
}


@pytest.mark.parametrize("plan", IMPOSSIBLE)
def test_validate_tells_before_there_are_data(tmp_path, plan):
    """The devices of the plan are not asked for."""
    changes, words = IMPOSSIBLE[plan]
    ended = here("validate", write("heat", tmp_path), ONE, *changes, f"plan={plan}", folder=tmp_path)
    assert ended.code == 78 and words in ended.err, ended


def test_validate_lets_pass_what_can_be_trained(tmp_path):
    for plan in ("{data: 8, domain: 2, tensor: 4}", "{fsdp: 4, zero: 3, compress: powersgd}", "auto"):
        ended = here("validate", write("heat", tmp_path), ONE, ADAM, f"plan={plan}", folder=tmp_path)
        assert ended.code == 0, ended.err


def test_a_run_is_refused_before_data_are_made(tmp_path):
    ended = here("run", write("heat", tmp_path), ONE, MUON, "plan={data: 2, compress: powersgd}", folder=tmp_path)
    assert ended.code == 78 and "model 'fno': only optimizers that treat every number" in ended.err
    assert not (tmp_path / "runs/heat/data").exists()
