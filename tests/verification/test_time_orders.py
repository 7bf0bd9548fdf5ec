"""Observed orders in time where a defect of the method would show: coupling, unequal saved times, exact jumps."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from comparison import assert_close
from verification.trial_equations import Predation

from sciml.domain import Box, Grid
from sciml.equations.burgers import Burgers
from sciml.equations.heat import Heat
from sciml.problem import make_problem
from sciml.solvers import Etdrk4, Imex, integrate, solve
from sciml.solvers.order import fastest_rates, order_in_time


def test_two_coupled_fields():
    """Every method on a system with a diffusivity per field, against a manufactured solution."""
    rates = fastest_rates(Predation())
    for method in (Etdrk4(), Imex()):
        row = order_in_time(Predation(), method, rates)
        assert row.holds() and row.deviation < 1e-4, row


def test_saved_times_are_hit_exactly_whatever_the_step():
    """Unequal gaps, a step that divides none of them, and a first time of zero."""
    box = Box((0.0,), (1.0,), (True,))
    problem = make_problem(Burgers(0.05), box, initial={"u": lambda x: jnp.sin(2 * jnp.pi * x[0])}, horizon=1.0)
    grid = Grid(box, (32,))
    times = [0.0, 0.013, 0.2, 0.31]
    found = solve(problem, grid, Etdrk4(dt=0.003), times=times)
    assert_close(found.times, np.asarray(times), rtol=0)
    assert_close(found.fields["u"][0], np.sin(2 * np.pi * grid.axes[0]), rtol=0, atol=1e-14)
    alone = solve(problem, grid, Etdrk4(dt=0.002), times=times[2:3]).fields["u"][0]
    # two step sizes differ by their time error, 1e-8 here
    assert_close(found.fields["u"][2], alone, rtol=0, atol=1e-6)
    plain = jax.jit(lambda: integrate(problem, grid, Etdrk4(dt=0.003), times)["u"])()
    assert_close(plain, found.fields["u"], rtol=0, atol=1e-12)


def test_a_linear_equation_jumps_exactly():
    """One step per saved time however small dt, and no error in time: each mode decays as exp(-D k^2 t)."""
    box = Box((0.0, 0.0), (1.0, 2.0), (True, True))
    start = {"u": lambda x: jnp.sin(2 * jnp.pi * x[0]) * jnp.cos(3 * jnp.pi * x[1])}
    problem = make_problem(Heat(0.02), box, initial=start, horizon=1.0)
    grid = Grid(box, (16, 24))
    found = solve(problem, grid, Etdrk4(dt=1e-4), times=[0.3, 1.0])
    rate = 0.02 * np.pi**2 * (4 + 9)
    expected = np.exp(-rate * np.asarray([0.3, 1.0]))[:, None, None] * np.asarray(problem.initial_values(grid)["u"])
    assert found.steps == 1
    assert_close(found.fields["u"], expected, rtol=0, atol=1e-13, dtype=False)
