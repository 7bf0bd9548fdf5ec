"""A target error instead of points and a step: what is chosen keeps it, against the exact solution."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from sciml.boundary import dirichlet
from sciml.domain import Box, Grid
from sciml.equations.burgers import Burgers
from sciml.equations.poisson import Poisson
from sciml.errors import ConfigError, NumericalError
from sciml.problem import make_problem, manufactured
from sciml.solvers import Direct, Etdrk4, exact_solution, settings_for, solve
from sciml.solvers.accuracy import relative_difference


def burgers():
    box = Box((0.0,), (2 * np.pi,), (True,))
    return make_problem(Burgers(0.1), box, initial={"u": lambda x: jnp.sin(x[0])}, horizon=1.0)


@pytest.mark.parametrize("error", [1e-3, 1e-6])
def test_burgers_is_as_near_to_cole_hopf_as_asked(error):
    problem, said = burgers(), []
    start = Grid(problem.domain, (16,))
    chosen = settings_for(problem, start, Etdrk4(dt=0.5), error=error, times=[0.5, 1.0], tell=said.append)
    found = solve(problem, chosen.grid, chosen.method, times=[0.5, 1.0]).fields
    exact = exact_solution(problem, chosen.grid, [0.5, 1.0])
    assert relative_difference({"u": np.asarray(found["u"])}, exact.fields) <= 2 * error
    assert chosen.error <= error and list(chosen.told) == said
    assert chosen.grid.shape[0] % 16 == 0 and said[-1].startswith(f"{chosen.grid.shape[0]} points, dt = ")


def test_a_smaller_target_takes_a_finer_grid_and_a_shorter_step():
    problem = burgers()
    near, far = (
        settings_for(problem, Grid(problem.domain, (16,)), Etdrk4(dt=0.5), error=e, times=[1.0]) for e in (1e-6, 1e-2)
    )
    assert near.grid.shape > far.grid.shape and near.method.dt < far.method.dt


def test_a_steady_problem_has_no_step():
    box = Box((0.0, 0.0), (1.0, 1.0), (False, False))
    wave = {"u": lambda x: jnp.sin(3 * x[0]) * jnp.cos(2 * x[1])}
    problem = manufactured(Poisson(), box, wave, condition=lambda f, axis, sign: dirichlet(f))
    chosen = settings_for(problem, Grid(box, (9, 9)), Direct(), error=1e-3)
    truth = problem.exact_values(chosen.grid)
    found = solve(problem, chosen.grid, chosen.method).fields
    assert relative_difference({"u": np.asarray(found["u"])}, {"u": np.asarray(truth["u"])}) < 1e-3
    assert chosen.step_error == 0.0 and "dt" not in chosen.told[0]


def test_what_cannot_be_reached_is_said():
    problem = burgers()
    grid = Grid(problem.domain, (16,))
    with pytest.raises(ConfigError, match="relative"):
        settings_for(problem, grid, Etdrk4(dt=0.5), error=2.0, times=[1.0])
    with pytest.raises(NumericalError, match="not reached"):
        settings_for(problem, grid, Etdrk4(dt=0.5), error=1e-9, times=[1.0], most_points=32)
