"""What the solutions must do: conserve, decay, return, match exact solutions and known runs."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_close

from sciml.boundary import dirichlet
from sciml.domain import Box, Grid
from sciml.equations.advection import Advection
from sciml.equations.allen_cahn import AllenCahn
from sciml.equations.burgers import Burgers
from sciml.equations.heat import Heat
from sciml.equations.kuramoto_sivashinsky import KuramotoSivashinsky
from sciml.equations.poisson import Poisson
from sciml.problem import make_problem
from sciml.solvers import (
    ConjugateGradient,
    Etdrk4,
    Imex,
    error_estimate,
    exact_solution,
    reference_solution,
    solve,
)
from sciml.solvers.accuracy import relative_difference

UNIT = Box((0.0,), (1.0,), (True,))


def start(x):
    """Band-limited, with a mean."""
    return 0.3 + jnp.sin(2 * jnp.pi * x[0]) + 0.5 * jnp.cos(6 * jnp.pi * x[0])


def run(equation, grid, method, times, initial=start):
    problem = make_problem(equation, grid.box, initial={"u": initial}, horizon=times[-1])
    return problem, np.asarray(solve(problem, grid, method, times=times).fields["u"])


def test_advection_returns_after_one_period():
    _, u = run(Advection(0.5), Grid(UNIT, (32,)), Etdrk4(dt=0.1), [0.0, 0.5, 2.0])
    assert_close(u[2], u[0], rtol=0, atol=1e-13)
    assert_close(u[1], np.roll(u[0], 8), rtol=0, atol=1e-13)


@pytest.mark.parametrize("method", [Etdrk4(dt=0.005), Imex(dt=0.005)])
def test_burgers_conserves_the_mean_and_loses_energy(method):
    """The flux form conserves the zeroth mode to rounding, whatever the step."""
    _, u = run(Burgers(0.02), Grid(UNIT, (64,)), method, np.linspace(0, 0.5, 6))
    assert_close(u.mean(axis=1), np.full(6, u[0].mean()), rtol=0, atol=1e-15)
    assert np.all(np.diff((u**2).mean(axis=1)) < 0)


def test_allen_cahn_lowers_its_energy():
    """D/2 |u_x|^2 + r/4 (1 - u^2)^2, which the equation descends."""
    box = Box((-1.0,), (1.0,), (True,))
    grid = Grid(box, (128,))
    wave = lambda x: 0.5 * jnp.sin(jnp.pi * x[0]) + 0.3 * jnp.cos(3 * jnp.pi * x[0])  # noqa: E731 -- used once
    _, u = run(AllenCahn(1e-3, 5.0), grid, Etdrk4(dt=0.02), np.linspace(0, 2, 9), wave)
    slope = np.fft.irfft(1j * np.pi * np.arange(65) * np.fft.rfft(u), n=128)
    energy = (0.5e-3 * slope**2 + 1.25 * (1 - u**2) ** 2).mean(axis=1)
    assert np.all(np.diff(energy) < 0) and np.abs(u).max() < 1.02  # the fronts overshoot a little on 128 points


def ring(x):
    """The initial field of Kassam and Trefethen (2005), sec. 4."""
    return jnp.cos(x[0] / 16) * (1 + jnp.sin(x[0] / 16))


def test_kuramoto_sivashinsky_conserves_the_mean_and_stays_bounded():
    """Box 32 pi, dt 1/4; before chaos (t = 20) a quarter of the step changes 1e-5, after it the run stays bounded."""
    grid = Grid(Box((0.0,), (32 * np.pi,), (True,)), (128,))
    _, u = run(KuramotoSivashinsky(), grid, Etdrk4(dt=0.25), [0.0, 20.0, 150.0], ring)
    _, finer = run(KuramotoSivashinsky(), grid, Etdrk4(dt=0.0625), [0.0, 20.0, 150.0], ring)
    assert_close(u[1], finer[1], rtol=0, atol=1e-4)
    assert_close(u.mean(axis=1), np.full(3, u[0].mean()), rtol=0, atol=1e-13)
    assert 1.0 < np.abs(u[2]).max() < 4.0


def test_kuramoto_sivashinsky_grows_as_its_symbol_says():
    """A small wave of wave number k grows as exp((k^2 - k^4) t); products are of second order, 1e-6 relative."""
    grid = Grid(Box((0.0,), (32 * np.pi,), (True,)), (64,))
    _, u = run(KuramotoSivashinsky(), grid, Etdrk4(dt=0.1), [0.0, 2.0], lambda x: 1e-6 * jnp.cos(x[0] / 2))
    rate = 1 / 4 - 1 / 16
    assert_close(np.abs(u[1]).max() / np.abs(u[0]).max(), np.exp(2 * rate), rtol=1e-5, dtype=False)


@pytest.mark.parametrize("equation", [Heat(0.02), Advection(1.3)])
def test_linear_equations_match_their_exact_solution(equation):
    grid = Grid(UNIT, (24,))
    problem, u = run(equation, grid, Etdrk4(), [0.5, 1.0])
    exact = exact_solution(problem, grid, [0.5, 1.0])
    assert exact is not None
    assert_close(u, exact.fields["u"], rtol=0, atol=1e-13)


def test_burgers_matches_cole_hopf_even_at_small_viscosity():
    """Viscosity 0.005 with shocks: the quadrature knows its own error; 384 points leave 1e-5 of the shock."""
    grid = Grid(UNIT, (384,))
    problem, u = run(Burgers(0.005), grid, Etdrk4(dt=0.002), [0.1, 0.5])
    reference = reference_solution(problem, grid, times=[0.1, 0.5])
    assert reference.kind == "exact" and reference.error < 1e-10
    assert_close(u, reference.fields["u"], rtol=0, atol=2e-5)


def test_error_estimate_is_close_to_the_true_error():
    """An under-resolved Burgers run: the estimate against Cole-Hopf, within a factor of two."""
    grid = Grid(UNIT, (48,))
    problem, u = run(Burgers(0.02), grid, Etdrk4(dt=0.02), [0.2, 0.4])
    exact = reference_solution(problem, grid, times=[0.2, 0.4]).fields["u"]
    true = np.linalg.norm(u - exact) / np.linalg.norm(exact)
    estimate = error_estimate(problem, grid, Etdrk4(dt=0.02), times=[0.2, 0.4])
    assert 0.5 < estimate / true < 2.0


def test_a_refined_reference_states_its_error():
    """Poisson on a square has no exact solution here; the estimate 3/4 h^2 bounds the true 1/16 h^2 error."""
    square = Box((0.0, 0.0), (1.0, 1.0), (False, False))
    problem = make_problem(Poisson(1.0), square, boundary={face: dirichlet(0.0) for face in square.faces})
    reference = reference_solution(problem, Grid(square, (9, 9)), method=ConjugateGradient())
    center = reference.fields["u"][4, 4]
    assert reference.kind == "refined" and 1e-5 < reference.error < 1e-2
    assert abs(center - 0.0736713532815) / 0.0736713532815 < reference.error  # series solution


@pytest.mark.parametrize("initial", [lambda x: jnp.where(x[0] < 0.5, 1.0, 0.0), lambda x: jnp.abs(x[0] - 0.5)])
def test_an_exact_solution_of_a_rough_field_knows_its_tail(initial):
    """A jump and a kink advected by half a cell, where the series overshoots: the stated error bounds the true one."""
    grid = Grid(UNIT, (24,))
    problem = make_problem(Advection(1.0), UNIT, initial={"u": initial}, horizon=1.0)
    exact = exact_solution(problem, grid, [1 / 48])
    assert exact is not None
    truth = np.asarray([float(initial(jnp.asarray([(x - 1 / 48) % 1.0]))) for x in grid.axes[0]])
    error = np.linalg.norm(exact.fields["u"][0] - truth) / np.linalg.norm(truth)
    assert max(error, 1e-6) < exact.error < 0.2
    smooth = make_problem(Advection(1.0), UNIT, initial={"u": start}, horizon=1.0)
    band_limited = exact_solution(smooth, grid, [0.3])
    assert band_limited is not None and band_limited.error < 1e-13


def test_differences_keep_nan_and_take_a_zero_reference():
    zero, one = np.zeros(4), np.ones(4)
    assert np.isnan(relative_difference({"a": one, "b": np.nan * one}, {"a": one, "b": one}))
    assert np.isnan(relative_difference({"a": np.nan * one, "b": one}, {"a": one, "b": one}))
    assert_close(relative_difference({"a": one, "b": one}, {"a": one, "b": zero}), 2.0, rtol=1e-15)


def test_no_exact_solution_is_none():
    square = Box((0.0,), (1.0,), (False,))
    problem = make_problem(Poisson(1.0), square, boundary={face: dirichlet(0.0) for face in square.faces})
    assert exact_solution(problem, Grid(square, (9,))) is None
