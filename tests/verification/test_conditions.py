"""Conditions per field, conditions that move under jit, and a start that does not fit its faces."""

from __future__ import annotations

import warnings
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_close

from sciml.boundary import dirichlet, neumann, robin
from sciml.domain import Box, Grid
from sciml.equations import Evolution, Field, equation
from sciml.equations.burgers import Burgers
from sciml.equations.heat import Heat
from sciml.errors import ConfigError
from sciml.problem import make_problem
from sciml.solvers import Etdrk4, solve

LINE = Box((0.0,), (1.0,), (False,))
RATE = 0.1


@equation
class TwoHeats(Evolution):
    """Two temperatures that do not see each other."""

    fields: ClassVar[tuple[Field, ...]] = (Field("u"), Field("v"))

    def stiff(self, u, d):
        """RATE lap."""
        return {name: RATE * d.laplacian(u[name]) for name in ("u", "v")}


def falling(x, t):
    return jnp.exp(-RATE * jnp.pi**2 * t) * jnp.sin(jnp.pi * x[0]) + 2.0


def level(x, t):
    return jnp.exp(-RATE * jnp.pi**2 * t) * jnp.cos(jnp.pi * x[0])


def with_slope(x, t):
    """u + du/dx of `falling` at x = 1."""
    return falling(x, t) - jnp.pi * jnp.exp(-RATE * jnp.pi**2 * t)


@pytest.mark.parametrize(
    "right",
    [
        {"u": dirichlet(falling), "v": dirichlet(level)},
        pytest.param({"u": robin(1.0, 1.0, with_slope), "v": neumann(0.0)}, marks=pytest.mark.slow),
    ],
    ids=["held by moving values", "robin and neumann"],
)
def test_each_field_has_its_own_conditions(right):
    """Exact decaying waves, to the error of the differences; on the left u is held and v insulated."""
    left = {"v": neumann(0.0), "u": dirichlet(2.0)}
    start = {"u": lambda x: falling(x, 0.0), "v": lambda x: level(x, 0.0)}
    problem = make_problem(TwoHeats(), LINE, initial=start, boundary={"x-": left, "x+": right}, horizon=1.0)
    grid = Grid(LINE, (33,))
    found = solve(problem, grid, Etdrk4(dt=0.01), times=[0.3]).fields
    assert_close(found["u"][0], falling(grid.axes, 0.3), rtol=0, atol=2e-3)
    assert_close(found["v"][0], level(grid.axes, 0.3), rtol=0, atol=2e-3)


def test_fields_without_a_condition_are_named():
    start = {"u": lambda x: 1.0 + 0 * x[0], "v": lambda x: 0 * x[0]}
    boundary = {"x-": {"u": dirichlet(1.0)}, "x+": neumann(0.0)}
    with pytest.raises(ConfigError, match="face x- do not match the fields") as caught:
        make_problem(TwoHeats(), LINE, initial=start, boundary=boundary, horizon=1.0)
    assert "'v': dirichlet(0.0)" in caught.value.fix


def test_a_start_that_does_not_fit_its_faces_is_named():
    """The warning gives both values; a start that fits, and a slope, are quiet."""
    boundary = {"x-": dirichlet(0.5), "x+": neumann(0.0)}
    problems = [
        make_problem(Heat(0.1), LINE, initial={"u": lambda x, a=a: a + 0 * x[0]}, boundary=boundary, horizon=1.0)
        for a in (0.0, 0.5)
    ]
    with pytest.warns(UserWarning, match="u starts with 0 on face x- where its condition demands 0.5"):
        solve(problems[0], Grid(LINE, (9,)), Etdrk4(dt=0.1), times=[0.1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = solve(problems[1], Grid(LINE, (9,)), Etdrk4(dt=0.1), times=[0.1]).fields["u"]
    assert_close(found, np.full((1, 9), 0.5), rtol=0, atol=1e-12)


def test_a_grid_that_is_too_coarse_for_the_start_is_named_with_one_that_will_do():
    """Ten waves on 24 points lie beyond 2/3 of 12; 48 points hold them; a jump is held by none; means do not count."""
    box = Box((0.0,), (1.0,), (True,))

    def told(start, n, equation=None):
        problem = make_problem(equation or Burgers(0.1), box, initial={"u": start}, horizon=1.0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            solve(problem, Grid(box, (n,)), Etdrk4(dt=0.1), times=[0.1])
        assert all(w.filename == __file__ for w in caught)
        return " ".join(str(w.message) for w in caught)

    def waves(x):
        return 5 + jnp.sin(20 * jnp.pi * x[0])

    assert "shape (24,) is too coarse for the start of u" in told(waves, 24)
    assert "a grid of shape (48,) holds it" in told(waves, 24)
    assert told(waves, 48) == told(waves, 24, Heat(0.1)) == ""  # a linear equation keeps all waves
    assert "it has jumps" in told(lambda x: jnp.where(x[0] < 0.3, 1.0, 0.0), 24)


def test_heat_between_walls_is_conserved_exactly():
    """Neumann faces balance half cells: the trapezoidal sum does not change, whatever the start."""
    walls = {"x-": neumann(0.0), "x+": neumann(0.0)}
    start = {"u": lambda x: jnp.exp(3 * x[0]) * jnp.sin(7 * x[0])}
    problem = make_problem(Heat(0.1), LINE, initial=start, boundary=walls, horizon=1.0)
    grid = Grid(LINE, (17,))
    found = np.asarray(solve(problem, grid, Etdrk4(dt=0.1), times=[0.0, 0.5]).fields["u"])
    sums = np.trapezoid(found, grid.axes[0])
    assert_close(sums[1], sums[0], rtol=0, atol=1e-12, dtype=False)
