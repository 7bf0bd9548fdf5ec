"""The published data sets of experiments/datasets: valid, and without the mistakes of the originals."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from sciml.data import Dataset
from sciml.data.exchange import export, import_file
from sciml.pipeline.family import Family, saved_times
from sciml.pipeline.generation import Simulation, generate_data
from sciml.pipeline.progress import Progress
from sciml.recipe import read

ROOT = Path(__file__).parents[2] / "experiments" / "datasets"
PRESETS = sorted(path.stem for path in ROOT.glob("*.yaml"))
SMALL = ("data.samples={train: 2, validation: 0, test: 1}", "models.fno.train.batch=1", "models.fno.modes=[2]")
FRAMES = {  # after the first, and their last time, as published; the antiderivative waits until all has left the box
    "deeponet_advection": (40, 1.0),
    "deeponet_antiderivative": (1, 1.25),
    "deeponet_diffusion_reaction": (100, 1.0),
    "li_burgers": (1, 1.0),
    "li_darcy": (0, None),
    "li_navier_stokes": (50, 50.0),
    "pdebench_advection": (200, 2.0),
    "pdebench_burgers": (200, 2.0),
    "pdebench_diffusion_reaction": (100, 5.0),
    "pdebench_radial_dam_break": (100, 1.0),
    "pdebench_reaction_diffusion": (100, 1.0),
}


def commands(name: str) -> list[list[str]]:
    """The changes of each command that the comment of a preset gives."""
    lines = (ROOT / f"{name}.yaml").read_text().split("\nname:")[0].replace("\\\n#", " ").splitlines()
    found = [re.findall(r"(?:data|problem)\.[\w.]+=(?:'[^']*'|\S+)", line) for line in lines if line.startswith("#   ")]
    return [[change.replace("'", "") for change in changes] for changes in found if changes]


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_valid_and_has_the_frames_of_the_original(name):
    recipe = read(ROOT / f"{name}.yaml")
    family = Family.of(recipe)
    times = saved_times(family, recipe.data)
    assert (len(times), recipe.problem.horizon) == FRAMES[name]
    if len(times):
        np.testing.assert_allclose(
            times, recipe.problem.horizon * np.arange(1, len(times) + 1) / len(times), rtol=1e-12
        )
    assert recipe.name == name
    assert f"[{name}]({name}.yaml)" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("name", PRESETS)
def test_the_published_size_is_valid(name):
    """Whatever command stands in the comment."""
    given = commands(name)
    assert given
    sizes = [read(ROOT / f"{name}.yaml", changes).data.samples.total for changes in given]
    assert max(sizes) >= 1000


def made(name: str, folder: Path, *changes: str, measured: bool = False) -> Dataset:
    """A tiny version of a preset; its error is measured only where a test asks for it, which takes most of the time."""
    recipe = read(ROOT / f"{name}.yaml", [*SMALL, *changes])
    with pytest.MonkeyPatch.context() as patch:
        if not measured:
            patch.setattr(Simulation, "measured_error", lambda self: None)
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


def simulation(name: str, *changes: str) -> Simulation:
    """The solver side of a tiny version of a preset."""
    return Simulation.of(read(ROOT / f"{name}.yaml", [*SMALL, *changes]))


@pytest.mark.slow
def test_darcy_has_harmonic_means_at_its_faces(tmp_path):
    data = made("li_darcy", tmp_path, "data.grid={x: 33, y: 33}").read(["permeability", "u"])
    a, u = data["permeability"], data["u"]
    assert set(np.unique(a)) == {3.0, 12.0}

    def right_hand_side(mean):
        flux_x = mean(a[:, 1:], a[:, :-1]) * np.diff(u, axis=1) * 32
        flux_y = mean(a[:, :, 1:], a[:, :, :-1]) * np.diff(u, axis=2) * 32
        return -32 * (np.diff(flux_x, axis=1)[:, :, 1:-1] + np.diff(flux_y, axis=2)[:, 1:-1])

    np.testing.assert_allclose(right_hand_side(lambda p, q: 2 * p * q / (p + q)), 1.0, atol=1e-6)
    assert np.abs(right_hand_side(lambda p, q: (p + q) / 2) - 1).max() > 0.1


@pytest.mark.slow
def test_navier_stokes_of_li_states_an_error_that_is_small(tmp_path):
    changes = ("data.grid={x: 32, y: 32}", "data.times=2", "problem.horizon=2.0")
    data = made("li_navier_stokes", tmp_path, *changes, measured=True)
    assert data.provenance["fixed_parameters"] == {"viscosity": 1e-3, "drag": 0.0}
    assert data.provenance["measured_relative_error"] < 1e-4
    omega = data.read(["omega"])["omega"]
    assert np.abs(omega.mean(axis=(-2, -1))).max() < 1e-7
    x = np.arange(32) / 32
    wave = np.sin(2 * np.pi * (x[:, None] + x)) + np.cos(2 * np.pi * (x[:, None] + x))
    source = simulation("li_navier_stokes", *changes)
    forcing = np.array([[source.family.problem(0).source["omega"](np.array([p, q])) for q in x[:4]] for p in x[:4]])
    np.testing.assert_allclose(forcing, 0.1 * wave[:4, :4], atol=1e-12)


@pytest.mark.slow
def test_the_noise_of_the_reaction_does_not_depend_on_the_grid(tmp_path):
    name = "pdebench_diffusion_reaction"
    coarse, fine = (simulation(name, f"data.grid={{x: {n}, y: {n}}}").record(1)[0] for n in (33, 65))
    for field in ("u0", "v0"):
        np.testing.assert_allclose(fine[field][::2, ::2], coarse[field], atol=1e-10)
        assert np.std(coarse[field]) > 0.5
    changes = ("data.grid={x: 33, y: 33}", "data.times=2", "problem.horizon=0.1")
    told = made(name, tmp_path, *changes, measured=True).provenance
    expected = {"activator_diffusivity": 1e-3, "inhibitor_diffusivity": 5e-3, "stimulus": 5e-3, "rate": 1.0}
    assert told["fixed_parameters"] == expected
    assert 0 < told["measured_relative_error"] < 0.2  # the noise is coarse on 33 points, and the file says so


@pytest.mark.slow
@pytest.mark.parametrize("to", ["well", "pdebench"])
def test_the_dam_break_has_all_fields_in_both_formats(tmp_path, to):
    changes = ("data.grid={x: 16, y: 16}", "data.times=2", "problem.horizon=0.1", "data.dtype=float64")
    data = made("pdebench_radial_dam_break", tmp_path, *changes)
    assert data.provenance["fixed_initial"] == {"discharge_x": 0.0, "discharge_y": 0.0}
    fields = data.read()
    volume = fields["depth0"].sum(axis=(-2, -1))[:, None]
    np.testing.assert_allclose(fields["depth"].sum(axis=(-2, -1)), volume * np.ones(2))
    assert np.abs(fields["discharge_x"][:, -1]).max() > 0.1
    export(tmp_path / "data", tmp_path / "f.hdf5", to=to, dtype="float64")
    import_file(tmp_path / "f.hdf5", tmp_path / "back", splits={"train": 2, "test": 1})
    back = Dataset.open(tmp_path / "back").read()
    for name in ("depth", "discharge_x", "discharge_y", "depth0"):
        np.testing.assert_array_equal(back[name], fields[name])
    assert not back["discharge_y0"].any()


@pytest.mark.slow
def test_square_waves_neither_swing_nor_lose_anything(tmp_path):
    data = made("deeponet_advection", tmp_path, "data.grid.x=40", "data.times=2").read()
    u0, u = data["u0"], data["u"]
    height = data["u0_coefficients"][:, 2]
    assert np.all((height >= 1) & (height <= 2))
    assert u.min() > -1e-12 and np.all(u.max(axis=(1, 2)) <= height + 1e-12)
    np.testing.assert_allclose(u.sum(axis=-1), u0.sum(axis=-1)[:, None] * np.ones(2), rtol=1e-12)
    width = data["u0_coefficients"][:, 1]
    np.testing.assert_allclose(u0.mean(axis=-1), height * width, rtol=0.1)


@pytest.mark.slow
def test_the_antiderivative_is_the_integral(tmp_path):
    """Averages of the exact integral of each wave of u; the published best model is wrong by 2.5e-3."""
    data = made("deeponet_antiderivative", tmp_path)
    problems = simulation("deeponet_antiderivative").family
    nodes, weights = np.polynomial.legendre.leggauss(8)
    points = ((np.arange(100) + 0.5)[:, None] + nodes / 2) / 100
    for sample, (u, s) in enumerate(zip(*data.read(["u_source", "u"]).values(), strict=True)):
        wave = problems.problem(sample).source["u"]
        number = 2 * np.pi * np.asarray(wave.waves, float)[1:, 0] / wave.period[0]
        phase = number * points[..., None]
        cosine, sine = np.asarray(wave.cosine), np.asarray(wave.sine)
        exact = cosine[0] * points + np.sin(phase) / number @ cosine[1:] + (1 - np.cos(phase)) / number @ sine[1:]
        exact = exact @ weights / 2
        assert np.linalg.norm(s[0, :100] - exact) < 1e-3 * np.linalg.norm(exact)
        np.testing.assert_allclose(np.diff(s[0, 10:90]) / 0.01, (u[10:89] + u[11:90]) / 2, atol=0.05)


@pytest.mark.slow
def test_the_reaction_adds(tmp_path):
    """Against a solver of ordinary equations; with the other sign of k, as in a script that went around, it differs."""
    data = made("deeponet_diffusion_reaction", tmp_path, "data.times=2")
    assert data.provenance["fixed_parameters"] == {"diffusivity": 0.01, "rate": 0.01}
    source, s = data.read(["s_source", "s"]).values()
    assert source.shape == (3, 101)

    def solved(sample, rate):
        def slope(_, inner):
            padded = np.pad(inner, 1)
            return 0.01 * np.diff(padded, 2) * 1e4 + rate * inner**2 + source[sample, 1:-1]

        return solve_ivp(slope, (0, 1), np.zeros(99), method="BDF", rtol=1e-8, atol=1e-10).y[:, -1]

    for sample in range(3):
        size = np.linalg.norm(s[sample, -1, 1:-1])
        right, wrong = (np.linalg.norm(s[sample, -1, 1:-1] - solved(sample, k)) / size for k in (0.01, -0.01))
        assert right < 1e-3 < 3e-3 < wrong
