"""Reactions and phase separation: against ODE solvers, logistic growth, balances of mass and energy."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_close
from scipy.integrate import solve_ivp

from sciml.boundary import neumann
from sciml.domain import Box, Grid
from sciml.equations import CahnHilliard, FisherKpp, FitzHughNagumo, GrayScott
from sciml.problem import make_problem
from sciml.solvers import Etdrk2, Etdrk4, Imex, solve

UNIT = Box((0.0,), (1.0,), (True,))
WALLS = Box((-1.0, -1.0), (1.0, 1.0), (False, False))


def uniform(value):
    return lambda x: value + 0.0 * x[0]


@pytest.mark.parametrize("method", [Etdrk4(dt=1.0), Imex(dt=1.0)])
def test_uniform_gray_scott_is_an_ordinary_differential_equation(method):
    feed, kill = 0.04, 0.06
    start = {"u": uniform(0.5), "v": uniform(0.3)}
    problem = make_problem(GrayScott(feed=feed, kill=kill), UNIT, initial=start, horizon=40.0)
    found = solve(problem, Grid(UNIT, (8,)), method, times=[20.0, 40.0]).fields

    def rate(_, y):
        u, v = y
        return [-u * v * v + feed * (1 - u), u * v * v - (feed + kill) * v]

    truth = solve_ivp(rate, (0, 40), [0.5, 0.3], t_eval=[20.0, 40.0], rtol=1e-11, atol=1e-12, method="DOP853").y
    for name, values in zip("uv", truth, strict=True):
        assert_close(found[name], np.repeat(values[:, None], 8, axis=1), rtol=0, atol=1e-5)


@pytest.mark.parametrize("diffusivity", [0.5, 5.0])
def test_logistic_growth_reaches_one_however_fast_the_diffusion(diffusivity):
    """Splitting with a step set by diffusion loses the reaction to rounding where float32 adds it up."""
    grid = Grid(UNIT, (64,))
    for value, known in ((0.3, 0.3436), (0.5, 0.5498), (0.8, 0.8301)):
        problem = make_problem(FisherKpp(diffusivity, 1.0), UNIT, initial={"u": uniform(value)}, horizon=40.0)
        u = np.asarray(solve(problem, grid, Etdrk4(dt=0.02), times=[0.2, 40.0]).fields["u"])
        exact = 1 / (1 + (1 / value - 1) * np.exp(-0.2))
        assert_close(u[0], np.full(64, exact), rtol=1e-8)
        assert abs(exact - known) < 1e-4
        assert_close(u[1], np.ones(64), rtol=1e-9)


def noise(seed):
    """Smooth and without slope on the faces of [-1, 1]^2."""
    weights = 0.3 * np.random.default_rng(seed).standard_normal((3, 3))
    k = np.arange(3) * np.pi / 2

    def field(x):
        return jnp.cos(k * (x[0] + 1)) @ jnp.asarray(weights) @ jnp.cos(k * (x[1] + 1))

    return field


def insulated(equation, horizon):
    start = {"u": noise(1), "v": noise(2)}
    boundary = {face: neumann() for face in WALLS.faces}
    return make_problem(equation, WALLS, initial=start, boundary=boundary, horizon=horizon)


def test_fitzhugh_nagumo_equals_the_method_of_lines():
    """The benchmark set's equation between insulated walls, against SciPy on the same five-point Laplacian."""
    n, k = 13, 5e-3
    problem, grid = insulated(FitzHughNagumo(1e-3, 5e-3, k, 1.0), 2.0), Grid(WALLS, (13, 13))
    found = solve(problem, grid, Etdrk4(dt=0.025), times=[2.0]).fields
    h = 2.0 / (n - 1)
    second = (np.diag(np.full(n, -2.0)) + np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1)) / h**2
    second[0, 1] = second[-1, -2] = 2 / h**2  # mirrored in the wall

    def rate(_, y):
        u, v = y.reshape(2, n, n)
        lap_u, lap_v = second @ u + u @ second.T, second @ v + v @ second.T
        return np.stack([1e-3 * lap_u + u - u**3 - k - v, 5e-3 * lap_v + u - v]).ravel()

    start = np.stack([np.asarray(v) for v in problem.initial_values(grid).values()]).ravel()
    truth = solve_ivp(rate, (0, 2), start, rtol=1e-10, atol=1e-10, method="DOP853").y[:, -1].reshape(2, n, n)
    for name, values in zip("uv", truth, strict=True):
        assert_close(found[name][0], values, rtol=0, atol=1e-5)


def test_diffusion_between_insulated_walls_keeps_the_mass():
    """Without reactions, by the trapezoidal rule, which counts half a cell at each wall."""
    grid = Grid(WALLS, (13, 13))
    fields = solve(insulated(FitzHughNagumo(0.02, 0.05, 0.0, 0.0), 3.0), grid, Etdrk4(dt=0.5), times=[0.0, 3.0]).fields
    weights = np.ones(13)
    weights[[0, -1]] = 0.5
    for values in fields.values():
        start, end = np.einsum("tij,i,j->t", np.asarray(values), weights, weights)
        assert abs(end - start) < 1e-11 * 144
        assert np.ptp(np.asarray(values)[1]) < 0.9 * np.ptp(np.asarray(values)[0])


def mixture(x):
    return 0.1 + 0.05 * jnp.cos(10 * np.pi * x[0]) + 0.05 * jnp.sin(6 * np.pi * x[0])


def separated(method, times):
    grid = Grid(UNIT, (64,))
    problem = make_problem(CahnHilliard(1.0, 1e-3), UNIT, initial={"u": mixture}, horizon=times[-1])
    return np.asarray(solve(problem, grid, method, times=times).fields["u"])


def free_energy(u):
    slope = np.fft.irfft(2j * np.pi * np.arange(33) * np.fft.rfft(u), n=64)
    return (0.25 * (1 - u**2) ** 2 + 0.5e-3 * slope**2).mean(axis=1)


@pytest.mark.parametrize("method", [Etdrk4(dt=5e-4), Imex(dt=1e-4)])
def test_cahn_hilliard_separates_keeps_its_mass_and_loses_energy(method):
    u = separated(method, np.linspace(0, 0.2, 11))
    assert_close(u.mean(axis=1), np.full(11, u[0].mean()), rtol=0, atol=1e-14)
    assert np.all(np.diff(free_energy(u)) < 0)
    assert np.abs(u[-1]).max() > 0.9


def test_cahn_hilliard_is_stable_with_steps_far_above_the_explicit_limit():
    """A step of 0.01 is a thousand times what an explicit method allows here: inaccurate, but in bounds and falling."""
    u = separated(Etdrk4(dt=0.01), np.linspace(0, 2.0, 11))
    assert_close(u.mean(axis=1), np.full(11, u[0].mean()), rtol=0, atol=1e-14)
    assert np.all(np.diff(free_energy(u)) < 0) and 0.9 < np.abs(u[-1]).max() < 1.1


def test_two_orders_agree_on_a_pattern():
    """A dividing spot of Gray and Scott; the difference is the error of the second order."""
    box = Box((-0.25, -0.25), (0.25, 0.25), (True, True))
    spot = lambda x: jnp.exp(-400 * (x[0] ** 2 + x[1] ** 2))  # noqa: E731 -- used twice
    start = {"u": lambda x: 1 - 0.5 * spot(x), "v": lambda x: 0.25 * spot(x)}
    problem = make_problem(GrayScott(2e-5, 1e-5), box, initial=start, horizon=200.0)
    grid = Grid(box, (24, 24))
    fine = solve(problem, grid, Etdrk4(dt=0.5), times=[200.0]).fields
    rough = solve(problem, grid, Etdrk2(dt=0.25), times=[200.0]).fields
    for name in ("u", "v"):
        assert_close(rough[name], fine[name], rtol=0, atol=1e-3)
    assert float(fine["v"].max()) > 0.2
