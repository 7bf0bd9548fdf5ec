"""The published data sets of experiments/datasets: valid, and without the mistakes of the originals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sciml.data import Dataset
from sciml.recipe import read

ROOT = Path(__file__).parents[2] / "experiments" / "datasets"
PRESETS = sorted(path.stem for path in ROOT.glob("*.yaml"))
SMALL = ("data.samples={train: 2, validation: 0, test: 1}", "models.fno.train.batch=1")


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_valid_and_ends_with_its_last_frame(name):
    recipe = read(ROOT / f"{name}.yaml")
    assert recipe.name == name
    assert recipe.problem is not None
    times = recipe.data.times
    assert times is None or isinstance(times, int) or times[-1] == recipe.problem.horizon
    assert f"[{name}]({name}.yaml)" in (ROOT / "README.md").read_text()


def made(name: str, folder: Path, *changes: str) -> Dataset:
    """A tiny version of a preset."""
    from sciml.pipeline.generation import generate_data
    from sciml.pipeline.progress import Progress

    recipe = read(ROOT / f"{name}.yaml", [*SMALL, *changes])
    generate_data(recipe, folder, Progress())
    return Dataset.open(folder / "data")


@pytest.mark.slow
def test_burgers_keeps_its_mean_and_tells_its_viscosity(tmp_path):
    data = made("pdebench_burgers", tmp_path, "data.grid.x=256", "data.times=4", "problem.horizon=0.2")
    assert data.provenance["fixed_parameters"]["viscosity"] == pytest.approx(0.01 / np.pi, rel=1e-12)
    read_ = data.read(["u0", "u"])
    np.testing.assert_allclose(read_["u"].mean(axis=-1), read_["u0"].mean(axis=-1)[:, None] * np.ones(4), atol=1e-6)
    assert data.layout.coordinates["time"].values[-1] == 0.2


@pytest.mark.slow
def test_advection_moves_by_the_speed_times_the_time_in_the_box_of_the_file(tmp_path):
    data = made("pdebench_advection", tmp_path, "data.grid.x=64", "data.times=[0.625]", "problem.horizon=0.625")
    read_ = data.read(["u0", "u"])
    x = data.layout.coordinates["x"]
    shift = data.provenance["fixed_parameters"]["speed"] * 0.625 / (x.period / 64)
    assert shift == 16.0
    smooth = np.abs(np.fft.rfft(read_["u0"]))[:, 20:].max(axis=1) < 1e-4  # neither folded nor cut
    assert smooth.any()
    np.testing.assert_allclose(read_["u"][smooth, 0], np.roll(read_["u0"][smooth], 16, axis=-1), atol=1e-5)


@pytest.mark.slow
def test_the_reaction_is_not_lost(tmp_path):
    """Diffusion 0.5 evens u out at once (rate 20/s); then the mean follows the logistic law, towards 1."""
    data = made("pdebench_reaction_diffusion", tmp_path, "data.grid.x=32", "data.times=10")
    mean = data.read(["u"])["u"].mean(axis=-1)
    times = np.asarray(data.layout.coordinates["time"].values)
    start = mean[:, 3]
    expected = 1 / (1 + (1 / start - 1)[:, None] * np.exp(-(times[4:] - times[3])))
    np.testing.assert_allclose(mean[:, 4:], expected, rtol=2e-5)


@pytest.mark.slow
def test_burgers_of_li_is_made(tmp_path):
    data = made("li_burgers", tmp_path, "data.grid.x=128", "data.method.dt=0.01")
    u = data.read(["u"])["u"]
    assert u.shape == (3, 1, 128)
    assert np.abs(u.mean(axis=-1)).max() < 1e-9
