"""The residual objective: zero on solutions, sensitive to errors, coefficients taken from the batch."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from sciml.boundary import dirichlet
from sciml.domain import Box, Grid
from sciml.equations.darcy import Darcy
from sciml.equations.heat import Heat
from sciml.errors import ConfigError
from sciml.operators.physics import grid_residual
from sciml.problem import make_problem

POINTS = 32
GRID = Grid(Box((0.0,), (1.0,), (True,)), (POINTS,))
TIMES = np.linspace(0, 0.5, 11)[1:]
DIFFUSIVITIES = np.array([0.02, 0.05])


class Stored(nnx.Module):
    """A model that gives what the sample holds, scaled."""

    def __init__(self, factor=1.0):
        self.factor = nnx.Param(jnp.asarray(factor))

    def __call__(self, sample):
        return {"u": self.factor[...] * sample["u"]}


def heat_batch():
    x, waves = GRID.axes[0], 2 * np.pi
    decay = np.exp(-DIFFUSIVITIES[:, None] * waves**2 * TIMES)
    u0 = np.stack([np.sin(waves * x), np.sin(waves * x)])
    return {
        "u0": jnp.asarray(u0),
        "diffusivity": jnp.asarray(DIFFUSIVITIES),
        "u": jnp.asarray(decay[..., None] * u0[:, None]),
    }


def heat_objective(**places):
    problem = make_problem(Heat(diffusivity=0.3), GRID.box, initial={"u": lambda x: jnp.sin(x[0])}, horizon=0.5)
    return grid_residual(problem, GRID, times=TIMES, replace=places)


PLACES = {"u0": ("initial", "u"), "diffusivity": ("equation", "diffusivity")}


def mean_square(rows):
    return {name: float(jnp.mean(r**2)) for name, r in rows.items()}


def test_zero_on_the_exact_trajectory_of_each_sample():
    rows = heat_objective(**PLACES).residuals(Stored(), heat_batch())
    assert rows["u"].shape == (2, len(TIMES) + 1, POINTS)
    # sixth-order differences of exp(-2 t) in steps of 0.05
    assert mean_square(rows)["u"] < 1e-10


def test_a_start_from_rest_has_a_finite_residual():
    batch = {name: jnp.zeros_like(v) if name == "u0" else v for name, v in heat_batch().items()}
    for factor in (0.0, 1.0):
        found = mean_square(heat_objective(**PLACES).residuals(Stored(factor), batch))["u"]
        assert found == 0.0 if factor == 0.0 else 1e-3 < found < 1e3


def test_a_steady_problem_without_forcing_has_a_finite_residual():
    grid = Grid(Box((0.0, 0.0), (1.0, 1.0), (False, False)), (9, 9))
    boundary = {face: dirichlet(0.0) for face in grid.box.faces}
    problem = make_problem(Darcy(permeability=1.0, forcing=0.0), grid.box, boundary=boundary)
    u = jnp.asarray(np.sin(np.pi * grid.points[..., 0]) * np.sin(np.pi * grid.points[..., 1]))[None]
    for values in (u, 0 * u):
        found = mean_square(grid_residual(problem, grid).residuals(Stored(), {"u": values}))
        assert all(value < 1e3 for value in found.values())


def test_a_wrong_coefficient_or_trajectory_is_seen():
    batch = heat_batch()
    assert mean_square(heat_objective(**PLACES).residuals(Stored(1.1), batch))["u"] > 1e-3
    wrong = {**batch, "diffusivity": 2 * batch["diffusivity"]}
    assert mean_square(heat_objective(**PLACES).residuals(Stored(), wrong))["u"] > 1e-2


def test_the_gradient_leads_to_the_solution():
    graph, params = nnx.split(Stored(0.7), nnx.Param)
    objective, batch = heat_objective(**PLACES), heat_batch()

    def loss(p):
        return jnp.mean(objective.residuals(nnx.merge(graph, p), batch)["u"] ** 2)

    assert all(float(leaf) < 0 for leaf in jax.tree.leaves(jax.jit(jax.grad(loss))(params)))


def test_single_precision_predictions_keep_their_dtype_and_little_noise():
    batch = {k: v.astype(jnp.float32) for k, v in heat_batch().items()}
    rows = heat_objective(**PLACES).residuals(Stored(jnp.float32(1.0)), batch)
    assert rows["u"].dtype == jnp.float32
    assert mean_square(rows)["u"] < 1e-6


def test_steady_bounded_problem_with_a_sampled_coefficient():
    """u = sin(pi x) sin(pi y) with a = 1 solves -div(a grad u) = 2 pi^2 u; differences of order 2."""
    grid = Grid(Box((0.0, 0.0), (1.0, 1.0), (False, False)), (33, 33))
    points = grid.points
    u = np.sin(np.pi * points[..., 0]) * np.sin(np.pi * points[..., 1])
    boundary = {face: dirichlet(0.0) for face in grid.box.faces}
    equation = Darcy(permeability=7.0, forcing=lambda x: 2 * jnp.pi**2 * jnp.prod(jnp.sin(jnp.pi * x)))
    problem = make_problem(equation, grid.box, boundary=boundary)
    objective = grid_residual(problem, grid, replace={"a": ("equation", "permeability")})
    batch = {"a": jnp.ones((3, 33, 33)), "u": jnp.asarray(np.stack([u] * 3))}
    rows = objective.residuals(Stored(), batch)
    assert rows["u"].shape == (3, 31, 31)
    assert mean_square(rows)["u"] < (np.pi**2 / 12 / 32**2 * 1.1) ** 2
    assert mean_square(rows)["boundary/u"] < 1e-20
    shifted = objective.residuals(Stored(), {**batch, "u": batch["u"] + 0.1})
    assert mean_square(shifted)["boundary/u"] > 1e-4


@pytest.mark.parametrize(
    ("times", "places", "match"),
    [
        (None, {}, "times after t = 0 for an evolution"),
        ([0.0, 0.5], {}, "come after the start"),
        ([0.5], {"nu": ("equations", "diffusivity")}, "unknown places"),
    ],
)
def test_what_does_not_fit_is_refused(times, places, match):
    problem = make_problem(Heat(), GRID.box, initial={"u": lambda x: jnp.sin(x[0])}, horizon=0.5)
    with pytest.raises(ConfigError, match=match):
        grid_residual(problem, GRID, times=times, replace=places)
