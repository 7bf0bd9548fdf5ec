"""Sweeps on this machine: which points there are, and what becomes of them."""

from __future__ import annotations

import json
import signal
import subprocess
import time

import pytest
import yaml
from tiny_runs import SCIML, here, sciml

from sciml.errors import ConfigError
from sciml.recipe import points
from sciml.recipe.sweeping import split


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("8,16", ("8", "16")),
        ("0:4:5", ("0", "1", "2", "3", "4")),
        ("0:1:5", ("0", "0.25", "0.5", "0.75", "1")),
        ("1e-4:1e-2:3:log", ("0.0001", "0.001", "0.01")),
        ("adam,{kind: sgd, learning_rate: 0.1}", ("adam", "{kind: sgd, learning_rate: 0.1}")),
        ("[4],[4, 6]", ("[4]", "[4, 6]")),
        ('"a,b",c', ('"a,b"', "c")),
        ("my_problem.py:Mine", ("my_problem.py:Mine",)),
        ("", ("",)),
    ],
)
def test_values(text, values):
    assert split(text) == values


def names(recipe, *keys, grid=True):
    return [point.name for point in points(recipe, keys, grid=grid)]


def test_every_combination_or_side_by_side(recipe):
    keys = ("models.fno.width=4,8", "seed=0:1:2", "models.fno.layers=1")
    assert names(recipe, *keys) == ["width=4,seed=0", "width=4,seed=1", "width=8,seed=0", "width=8,seed=1"]
    assert names(recipe, *keys, grid=False) == ["width=4,seed=0", "width=8,seed=1"]
    assert {point.recipe.models["fno"].component.options["layers"] for point in points(recipe, keys)} == {1}


def test_a_name_is_short_and_needs_no_quotes(recipe):
    assert names(recipe, "models.fno.train.optimizer=adam,{kind: sgd, learning_rate: 0.1}") == [
        "optimizer=adam",
        "optimizer=kind-sgd-learning_rate-0.1",
    ]
    both = ("problem.domain.x.lower=0.0,0.5", "problem.domain.x.upper=2,3")
    assert names(recipe, *both)[0] == "lower=0.0,upper=2"
    twins = ("data.samples.train=16,32", "models.fno.train.steps=1,2")
    assert names(recipe, *twins)[0] == "train=16,steps=1"


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        (("models.fno.widht=4,8",), "models.fno.widht: unknown key 'widht', did you mean 'width'?"),
        (("models.fn.width=4,8",), "the recipe has no key models.fn.width, did you mean 'models.fno.width'?"),
        (("models.fno.width=0,-8",), "command line: models.fno.width=-8: models.fno.width: must be >= 1 (got -8)"),
        (("seed=1,1",), "seed: the value 1 is there twice"),
        (("models.fno.width=8,8.0",), "two points of the sweep are the same recipe"),
        (("seed=0,1", "seed=2,3"), "the key seed is given twice"),
        (("seed=0",), "nothing to sweep: no key has more than one value"),
        ((), "nothing to sweep"),
        (("name=a,b",), "name cannot be swept"),
        (("seed",), "a swept key must read key=v1,v2 or key=low:high:count"),
        (("seed=0:9:1",), "a range needs at least two values"),
        (("models.fno.train.steps=0:9:3:log",), "a logarithmic range needs positive ends"),
    ],
)
def test_mistakes(keys, text, recipe):
    with pytest.raises(ConfigError) as caught:
        points(recipe, keys)
    assert text in str(caught.value)


def test_lists_of_different_length(recipe):
    with pytest.raises(ConfigError, match="all need the same number of values") as caught:
        points(recipe, ("seed=0,1", "models.fno.width=4,6,8"), grid=False)
    assert "seed: 2, models.fno.width: 3" in str(caught.value)


def test_nothing_is_written_by_a_mistake_or_a_dry_run(recipe, tmp_path):
    assert here("sweep", recipe, "models.fno.width=4,x", folder=tmp_path).code == 78
    dry = here("sweep", recipe, "models.fno.width=4,8", "--dry-run", folder=tmp_path)
    assert dry.out.splitlines() == ["runs/heat-sweep/width=4", "runs/heat-sweep/width=8", "2 points"]
    assert here("sweep", tmp_path, "--table", folder=tmp_path).code == 78
    assert not (tmp_path / "runs").exists()


GOOD, BAD = "optimizer=kind-sgd-learning_rate-1e-3", "optimizer=kind-sgd-learning_rate-1e300"


def test_from_the_first_point_to_the_table(recipe, tmp_path):
    """One point diverges: it is named, stops nothing, sets the exit code, and is tried again by the next command."""
    rates = ",".join(f"{{kind: sgd, learning_rate: {rate}}}" for rate in ("1e300", "1e-3"))
    command = ("sweep", recipe, f"models.fno.train.optimizer={rates}")
    ended = sciml(*command, "models.fno.width=4", folder=tmp_path)
    assert ended.code == 79, ended.out + ended.err
    place = tmp_path / "runs/heat-sweep"
    lines = ended.out.splitlines()
    assert f"{BAD}: failed (79), see runs/heat-sweep/{BAD}/run.log" in lines
    assert [line for line in lines if line.startswith("model ") and "relative L2" in line]
    assert [line for line in lines if line.startswith(f"{GOOD} ") and "e+" in line]
    assert lines[-1] == "1 of 2 points are finished: runs/heat-sweep/sweep.json"
    assert (place / GOOD / "report.html").is_file() and (place / GOOD / "fno.sciml").is_dir()
    assert (place / GOOD / "data").resolve() == (place / BAD / "data").resolve()  # made once
    assert yaml.safe_load((place / GOOD / "recipe.yaml").read_text())["models"]["fno"]["width"] == 4

    stored = json.loads((place / "sweep.json").read_text())["points"]
    assert [(p["name"], p["state"], p["code"]) for p in stored] == [(BAD, "failed (79)", 79), (GOOD, "finished", 0)]
    assert stored[1]["models"][0]["error"] > 0 and stored[1]["values"].keys() == {"models.fno.train.optimizer"}

    again = sciml("sweep", place, folder=tmp_path)
    assert f"{GOOD}: finished already" in again.out and f"{BAD}: runs, see" in again.out and again.code == 79

    other = here(*command, "models.fno.width=6", folder=tmp_path)
    assert other.code == 78 and "made with another recipe; nothing was changed" in other.err
    assert json.loads((place / "sweep.json").read_text())["points"] == stored


def test_stopped_by_a_signal_and_gone_on(recipe, tmp_path):
    """The run under way saves; the same command goes on with it."""
    command = [*SCIML, "sweep", str(recipe), "seed=0,1", "models.fno.train.steps=1000000"]
    log = tmp_path / "runs/heat-sweep/seed=0/models/fno/metrics.jsonl"
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 240
    while not (log.is_file() and log.stat().st_size) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 75 and "stopped by SIGTERM" in err, out + err
    assert "which is saved" in (tmp_path / "runs/heat-sweep/seed=0/run.log").read_text()
    shown = here("sweep", tmp_path / "runs/heat-sweep", "--dry-run", folder=tmp_path)
    assert "seed=0: stopped and saved" in shown.out and "seed=1: not run" in shown.out
