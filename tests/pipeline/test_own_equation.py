"""A user's equation in a file beside the recipe goes through the whole chain, and through `sciml verify`."""

from __future__ import annotations

import json

import pytest
from tiny_runs import here, metrics

PROBLEM = '''
from sciml.equations import Evolution, Field, equation, parameter


@equation
class Travelling(Evolution):
    """Advection, diffusion and logistic growth, u_t + c u_x = D u_xx + r u (1 - u).

    Symbols: u [1] concentration, c [m/s] speed, D [m^2/s] diffusivity, r [1/s] growth rate.
    What you should see: humps travel with speed c while they grow towards 1.
    Good values: c = 0.2, D = 0.02, r = 1 on the unit box.
    Limits: r = 0 is advection-diffusion.
    Source: R. A. Fisher, Annals of Eugenics 7 (1937) 355, eq. (1), with advection.
    """

    fields = (Field("u"),)
    speed: float = parameter(0.2, unit="m/s")
    diffusivity: float = parameter(0.02, unit="m^2/s", minimum=0.0)
    growth: float = parameter(1.0, unit="1/s")

    def stiff(self, u, d):
        return {"u": self.diffusivity * d.laplacian(u.u)}

    def nonstiff(self, u, d):
        return {"u": self.growth * u.u * (1.0 - u.u)}

    def flux(self, u, d):
        return {"u": (self.speed * u.u,) + (0.0 * u.u,) * (d.dim - 1)}
'''

RECIPE = """
name: travelling
problem:
  equation: {kind: "my_problem.py:Travelling", diffusivity: {kind: uniform, low: 0.01, high: 0.04}}
  domain: {x: {periodic: true}}
  initial: {u: {kind: fourier_series, modes: 2, amplitude: 0.2, mean: 0.5}}
  horizon: 0.5
data:
  grid: {x: 16}
  times: 4
  method: {kind: etdrk4, dt: 0.0625}
  samples: {train: 16, validation: 4, test: 4}
models:
  fno:
    kind: fno
    width: 8
    modes: [3]
    layers: 2
    train: {steps: 6, batch: 8, objective: {data: 1, residual: 0.1}}
  pinn:
    kind: pinn
    width: 8
    layers: 2
    points: 64
    unknown: [diffusivity]
    train: {optimizer: levenberg_marquardt, steps: 10, precision: float64}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the user's two files."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "my_problem.py").write_text(PROBLEM)
    (folder / "travelling.yaml").write_text(RECIPE)
    return folder


def test_the_whole_chain(place):
    ended = here("run", "travelling.yaml", folder=place)
    assert ended.code == 0, ended.err
    folder = place / "runs/travelling"
    fno, pinn = (metrics(folder, name) for name in ("fno", "pinn"))
    assert {"loss/data", "loss/residual"} <= fno[0].keys() & pinn[0].keys()
    assert pinn[-1]["evaluation/error"] < 0.02
    assert pinn[-1]["evaluation/diffusivity_relative_error"] < 0.1
    rows = {row["name"]: row for row in json.loads((folder / "results.json").read_text())["rows"]}
    assert "diffusivity" in rows["pinn"]["note"] and rows["fno"]["reference_error"] < 1e-4
    assert (folder / "fno.sciml").is_dir() and (folder / "pinn.sciml").is_dir()


def test_an_edited_equation_is_another_recipe(place):
    """Its text decides the data as much as the recipe does; a comment counts as well."""
    problem = place / "my_problem.py"
    assert here("generate", "travelling.yaml", folder=place).code == 0
    problem.write_text(PROBLEM + "\n# faster\n")
    ended = here("generate", "travelling.yaml", folder=place)
    problem.write_text(PROBLEM)
    assert ended.code == 78 and "made with another recipe; nothing was changed" in ended.err
    assert "another content of a file that the recipe names" in ended.err
    assert here("generate", "travelling.yaml", folder=place).code == 0


@pytest.mark.slow  # a minute of compilation
def test_verify(place):
    ended = here("verify", "my_problem.py:Travelling", folder=place)
    assert ended.code == 0, ended.out + ended.err
    assert "order in time" in ended.out and "FAIL" not in ended.out
