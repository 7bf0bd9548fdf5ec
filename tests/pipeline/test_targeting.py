"""`data: {error: ...}`: grid and step are chosen, told, kept, and true."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tiny_runs import here

from sciml.data import Dataset
from sciml.pipeline.generation import Simulation
from sciml.pipeline.targeting import FILE, settled
from sciml.recipe import RecipeError, read
from sciml.solvers import error_estimate

TEXT = """\
name: target
problem:
  equation: {kind: heat, diffusivity: 0.02}
  domain: {x: {}}
  boundary: {x-: neumann, x+: neumann}
  initial: {u: {kind: cosine_series, modes: 4}}
  horizon: 0.2
data:
  error: 1.0e-3
  times: 1
  method: {kind: etdrk4}
  samples: {train: 2, test: 1}
models:
  fno: {kind: fno, modes: [4], train: {batch: 1}}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder of a generation, and what it printed."""
    folder = tmp_path_factory.mktemp("target")
    (folder / "target.yaml").write_text(TEXT)
    return folder, here("generate", "target.yaml", folder=folder)


def test_what_was_chosen_is_told_and_stored(made):
    folder, ended = made
    assert ended.code == 0, ended.err
    assert "data.error 0.001: chose" in ended.out and "choosing for sample 1" in ended.out
    kept = json.loads((folder / "runs/target" / FILE).read_text())
    dataset = Dataset.open(folder / "runs/target/data")
    points = kept["grid"]["x"]
    assert dataset.layout.variable("u").shape == (1, points)
    assert dataset.provenance["method"]["dt"] == kept["dt"]
    assert dataset.provenance["target_relative_error"] == 1e-3
    assert 0 < dataset.provenance["estimated_relative_error"] <= 1e-3
    assert 0 < dataset.provenance["measured_relative_error"] <= 1e-3


def test_the_error_is_reached_and_not_by_far_too_much(made):
    folder, _ = made
    recipe = read(folder / "target.yaml")
    simulation = Simulation.of(recipe, folder / "runs/target")
    assert _largest_error(simulation) < 1e-3
    coarse = simulation.data.model_copy(update={"grid": {"x": simulation.grid.shape[0] // 4 + 1}})
    assert _largest_error(Simulation(simulation.family, coarse)) > 1e-3  # the control


def _largest_error(made: Simulation) -> float:
    problems = [made.family.problem(sample) for sample in range(2)]
    return max(error_estimate(problem, made.grid, made.method, times=made.times) for problem in problems)


def test_a_second_run_does_not_choose_again(made):
    folder, _ = made
    again = here("generate", "target.yaml", folder=folder)
    assert again.code == 0 and "choosing" not in again.out and "0 samples computed, 3 found" in again.out
    continued = here("generate", folder / "runs/target", folder=folder)  # the recipe that the run holds
    assert continued.code == 0 and "0 samples computed, 3 found" in continued.out


def test_settings_of_another_recipe_are_not_taken(made, tmp_path):
    folder, _ = made
    (tmp_path / FILE).write_text((folder / "runs/target" / FILE).read_text().replace('"recipe": "', '"recipe": "0'))
    recipe = read(folder / "target.yaml", ["data.error=0.2"])
    chosen = settled(recipe, tmp_path)
    assert chosen.grid == {"x": 17} and chosen.error is None
    assert np.isclose(chosen.method.options["dt"], 0.2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("data.grid={x: 64}", r"data\.grid: data\.error chooses the points"),
        ("data.method.dt=0.1", r"data\.method\.dt: data\.error chooses the time step"),
        ("data.error=0", r"data\.error: must be >= 1e-12"),
        ("data.error=1.5", r"data\.error: must be < 1"),
        ("data.error=null", r"data\.grid: this key is required, or `error`"),
    ],
)
def test_contradictions_are_refused(made, change, message):
    folder, _ = made
    with pytest.raises(RecipeError, match=message):
        read(folder / "target.yaml", [change])


def test_validate_knows_it(made):
    folder, _ = made
    assert here("validate", "target.yaml", folder=folder).code == 0
    refused = here("validate", "target.yaml", "data.grid={x: 64}", folder=folder)
    assert refused.code != 0 and "data.error chooses the points" in refused.err + refused.out


def test_the_resolved_recipe_reads_back_the_same(made):
    folder, _ = made
    recipe = read(folder / "target.yaml")
    (folder / "again.yaml").write_text(recipe.to_yaml())
    assert read(folder / "again.yaml") == recipe and "dt:" not in recipe.to_yaml()
