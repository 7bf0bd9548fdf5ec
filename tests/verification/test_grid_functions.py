"""Fields given by their values: on the grid in use, and interpolated."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_close, assert_identical

from sciml.domain import Box, Grid
from sciml.equations.heat import Heat
from sciml.errors import ConfigError
from sciml.functions import evaluate_on
from sciml.problem import make_problem
from sciml.sampling import GridFunction
from sciml.solvers import Etdrk4, solve


def wave(x):
    return jnp.sin(2 * jnp.pi * x[0]) * (1 + x[1])


@pytest.mark.parametrize("cells", [False, True])
def test_interpolation_is_exact_at_its_points_and_of_second_order_between(cells):
    box = Box((0.0, -1.0), (1.0, 1.0), (True, False))
    errors = []
    for n in (16, 32):
        grid = Grid(box, (n, n + 1), cells)
        function = GridFunction(grid, evaluate_on(wave, grid.points))
        assert_close(evaluate_on(function, grid.points), evaluate_on(wave, grid.points), rtol=1e-12, atol=1e-12)
        points = np.random.default_rng(0).uniform([0.0, -0.9], [1.0, 0.9], (200, 2))
        errors.append(float(jnp.abs(evaluate_on(function, points) - evaluate_on(wave, points)).max()))
    assert 3.0 < errors[0] / errors[1] < 5.0


def test_wraps_around_a_periodic_axis():
    grid = Grid(Box((0.0,), (1.0,), (True,)), (8,))
    function = GridFunction(grid, jnp.arange(8.0))
    found = evaluate_on(function, np.asarray([[1.0 - 1 / 16], [1.25], [-0.25]]))
    assert_close(found, np.asarray([3.5, 2.0, 6.0]), rtol=1e-14)


def test_initial_values_on_the_grid_are_taken_as_they_are_and_differentiable():
    grid = Grid(Box((0.0,), (1.0,), (True,)), (16,))
    values = np.random.default_rng(1).standard_normal(16)
    problem = make_problem(Heat(0.1), grid.box, initial={"u": values}, horizon=0.1)
    assert_identical(np.asarray(problem.initial_values(grid)["u"]), values)
    jax.tree.map(lambda leaf: leaf, problem)
    series = np.fft.rfft(values) * np.exp(-0.1 * 0.1 * (2 * np.pi * np.arange(9)) ** 2)
    found = solve(problem, grid, Etdrk4(dt=0.1), times=[0.1]).fields["u"][0]
    assert_close(found, np.fft.irfft(series, n=16), rtol=1e-12, atol=1e-14)


def test_values_of_another_grid_are_refused():
    grid = Grid(Box((0.0,), (1.0,), (True,)), (16,))
    problem = make_problem(Heat(0.1), grid.box, initial={"u": np.zeros(12)}, horizon=0.1)
    with pytest.raises(ConfigError, match="GridFunction"):
        problem.initial_values(grid)
    with pytest.raises(ConfigError, match="do not stand on the grid"):
        GridFunction(grid, np.zeros(12))
    assert dataclasses.replace(GridFunction(grid, np.zeros(16)), values=np.ones(16)).values[0] == 1
