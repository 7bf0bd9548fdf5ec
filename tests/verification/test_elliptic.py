"""Elliptic problems: jumping coefficients, every solver with every condition it accepts, what has no solution."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from comparison import assert_close

from sciml.boundary import dirichlet, neumann
from sciml.calculus import FiniteDifference
from sciml.domain import Box, Grid
from sciml.equations.darcy import Darcy
from sciml.problem import make_problem
from sciml.solvers import Direct, solve

LINE = Box((0.0,), (1.0,), (False,))
SQUARE = Box((0.0, 0.0), (1.0, 1.0), (False, False))
LEFT, RIGHT = 12.0, 3.0


def layers(x):
    """Two materials that meet in the middle."""
    return jnp.where(x[0] < 0.5, LEFT, RIGHT)


def through_layers(x):
    """u = 1 at x = 0, 0 at x = 1 without sources: the flux is one over the sum of the resistances."""
    flux = 1.0 / (0.5 / LEFT + 0.5 / RIGHT)
    return np.where(x < 0.5, 1.0 - flux * x / LEFT, flux * (1.0 - x) / RIGHT)


def test_flow_through_layers_is_exact():
    """Jump midway between two points: the harmonic mean gives the exact pressures, to rounding."""
    problem = make_problem(Darcy(layers, 0.0), LINE, boundary={"x-": dirichlet(1.0), "x+": dirichlet(0.0)})
    grid = Grid(LINE, (16,))
    found = solve(problem, grid, Direct()).fields["u"]
    assert_close(found, through_layers(grid.axes[0]), rtol=0, atol=1e-13)
    d = FiniteDifference(grid, problem.boundary)  # control: with plain means between the points it is not
    plain = d.stencils.apply(layers(grid.points.T), 0, 0, "to_face")
    fluxes = plain * d.gradient(d.field(found))[0].raw
    assert np.ptp(np.asarray(fluxes[1:-1])) > 0.1


def test_flow_through_layers_between_walls_is_exact():
    """The same in two dimensions between insulating walls, by conjugate gradients with a tolerance of 1e-12."""
    boundary = {"x-": dirichlet(1.0), "x+": dirichlet(0.0), "y-": neumann(0.0), "y+": neumann(0.0)}
    grid = Grid(SQUARE, (16, 9))
    found = solve(make_problem(Darcy(layers, 0.0), SQUARE, boundary=boundary), grid, Direct()).fields["u"]
    assert_close(found, np.tile(through_layers(grid.axes[0])[:, None], (1, 9)), rtol=0, atol=1e-10)
