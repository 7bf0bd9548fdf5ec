"""The stored inputs are what the solver started from: its own frame at time zero."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from comparison import assert_identical

from sciml.pipeline.generation import Simulation
from sciml.pipeline.starting import known_source, starting_fields
from sciml.problem import make_problem
from sciml.recipe import Recipe
from sciml.solvers import solve

PERIODIC = {"lower": 0.0, "upper": 1.0, "periodic": True}
WALLS = {face: {"kind": "dirichlet", "value": 0.5} for face in ("x-", "x+")}
CASES = {
    "averages": {
        "equation": {"kind": "advection"},
        "domain": {"x": PERIODIC},
        "initial": {"u": {"kind": "pulse"}},
        "method": {"kind": "finite_volume", "reconstruction": "muscl"},
    },
    "incompressible": {
        "equation": {"kind": "navier_stokes_2d", "viscosity": 0.01},
        "domain": {"x": PERIODIC, "y": PERIODIC},
        "initial": {"u": {"kind": "fourier_series", "modes": 2}, "v": 0.25},
        "method": {"kind": "etdrk4", "dt": 0.005},
    },
    "cut by the two-thirds rule": {
        "equation": {"kind": "burgers", "viscosity": 0.1},
        "domain": {"x": PERIODIC},
        "initial": {"u": {"kind": "pulse"}},
        "method": {"kind": "etdrk4", "dt": 0.005},
    },
    "conditions on the faces": {
        "equation": {"kind": "heat"},
        "domain": {"x": {"lower": 0.0, "upper": 1.0}},
        "boundary": WALLS,
        "initial": {"u": {"kind": "cosine_series", "modes": 3}},
        "method": {"kind": "imex", "dt": 0.005},
    },
}
SLOW = ("cut by the two-thirds rule", "conditions on the faces")


def simulation(case: str) -> Simulation:
    """Two samples of 16 points per axis."""
    given = CASES[case]
    section = {k: v for k, v in given.items() if k != "method"} | {"horizon": 0.01}
    data = {
        "grid": dict.fromkeys(given["domain"], 16),
        "times": 1,
        "method": given["method"],
        "samples": {"train": 1, "test": 1},
    }
    models = {"fno": {"kind": "fno", "modes": [2], "train": {"batch": 1}}}
    return Simulation.of(Recipe.model_validate({"name": "t", "problem": section, "data": data, "models": models}))


@pytest.mark.parametrize(
    "case", ["averages", "incompressible", *(pytest.param(c, marks=pytest.mark.slow) for c in SLOW)]
)
@pytest.mark.filterwarnings("ignore:u starts with")
def test_inputs_are_the_frame_at_time_zero(case):
    made = simulation(case)
    stored, _ = made.record(1)
    names = made.family.field_names
    assert {f"{name}0" for name in names} <= set(made.layout.names)
    problem = made.family.problem(1)
    frames = solve(problem, made.grid, made.method, times=[0.0, 0.01]).fields
    points = problem.initial_values(made.grid) if case != "incompressible" else _unprojected(made)
    for name in names:
        np.testing.assert_allclose(stored[f"{name}0"], frames[name][0], rtol=1e-12, atol=1e-14)
        assert np.abs(points[name] - frames[name][0]).max() > 1e-3  # the control: values at points are something else


def _unprojected(made: Simulation) -> dict[str, np.ndarray]:
    values = {v.place[1]: v.values(made.family.problem(1), made.grid)[v.name] for v in made.family.varying}
    return {name: np.asarray(values[name]) for name in made.family.field_names}


def test_a_constant_start_that_no_constraint_changes_is_told_and_not_stored():
    given = {"kind": "shallow_water_1d"}
    section = {"equation": given, "domain": {"x": PERIODIC}, "horizon": 0.01}
    section["initial"] = {"depth": {"kind": "disc"}, "discharge_x": 0.125}
    data = {"grid": {"x": 16}, "times": 1, "method": {"kind": "finite_volume"}, "samples": {"train": 1, "test": 1}}
    models = {"fno": {"kind": "fno", "modes": [2], "train": {"batch": 1}}}
    made = Simulation.of(Recipe.model_validate({"name": "t", "problem": section, "data": data, "models": models}))
    assert made.told()["fixed_initial"] == {"discharge_x": 0.125}
    assert "discharge_x0" not in made.layout.names and "depth0" in made.layout.names


def test_a_source_on_cells_is_an_average():
    made = simulation("averages")
    problem = made.family.problem(0)
    source = jax.tree.map(lambda x: x, problem.initial["u"])
    forced = make_problem(problem.equation, problem.domain, initial={"u": source}, source={"u": source}, horizon=0.01)
    known = known_source(forced, "u", made.grid, made.method)
    assert_identical(np.asarray(known), np.asarray(starting_fields(problem, made.grid, made.method)["u"]))
    assert known_source(forced, "u", made.grid, simulation("incompressible").method) is None
