"""Finite volumes where all is smooth, and ends of cells at jumps: orders in space and time, scaling."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import observed_order

from sciml.domain import Box, Grid
from sciml.equations.burgers import Burgers
from sciml.equations.euler import Euler2D
from sciml.equations.inviscid_burgers import InviscidBurgers
from sciml.problem import make_problem
from sciml.solvers import Etdrk4, solve
from sciml.solvers.finite_volume.method import FiniteVolume
from sciml.solvers.finite_volume.reconstruction import RECONSTRUCTIONS, van_leer
from sciml.solvers.finite_volume.system import CellSystem

LINE = Box((0.0,), (1.0,), (True,))


def wave(x):
    return 0.4 + jnp.sin(2 * jnp.pi * x[0])


def rate(problem, grid, **choices):
    """The rate of change of the averages at t = 0, shape (fields, *grid.shape)."""
    settings = {"reconstruction": "weno5", "limiter": "van_leer", "riemann": "hllc"} | choices
    system = CellSystem(problem, grid, **settings)
    return np.asarray(jax.jit(lambda: system.rate(system.initial(), 0.0, 1e-4))())


class TestOrder:
    """The rate of change against the exact one: no error of the time steps."""

    def test_burgers_in_one_dimension(self):
        """Exact rate: -(f(u(x + h/2)) - f(u(x - h/2)))/h; in L1, because limiters clip the extrema."""
        problem = make_problem(InviscidBurgers(), LINE, initial={"u": wave}, horizon=1.0)
        for reconstruction, expected, counts in (("weno5", 5, (32, 48, 64, 96)), ("muscl", 2, (64, 96, 128, 192))):
            errors = []
            for n in counts:
                faces = np.arange(n + 1) / n - 0.5 / n
                exact = -n * np.diff(0.5 * (0.4 + np.sin(2 * np.pi * faces)) ** 2)
                errors.append(np.abs(rate(problem, Grid(LINE, (n,)), reconstruction=reconstruction)[0] - exact).mean())
            order = observed_order([1 / n for n in counts], errors)
            assert expected - 0.2 < order < expected + 1, (reconstruction, order, errors)

    @pytest.mark.slow
    def test_vortex_at_rest_in_two_dimensions(self):
        """An isentropic vortex is steady: the whole rate is error. C.-W. Shu, ICASE report 97-65, sec. 5.1.

        Order 5 is approached from below: 4.2 from 96 to 128 cells, 4.9 from 128 to 160.
        """
        box, strength = Box((-7.0, -7.0), (7.0, 7.0), (True, True)), 2.0

        def temperature(x):
            return 1 - 0.4 * strength**2 / (8 * 1.4 * jnp.pi**2) * jnp.exp(1 - x @ x)

        def turning(x):
            return strength / (2 * jnp.pi) * jnp.exp(0.5 * (1 - x @ x))

        law = Euler2D()
        initial = law.state(
            lambda x: temperature(x) ** 2.5,
            lambda x: -turning(x) * x[1],
            lambda x: turning(x) * x[0],
            lambda x: temperature(x) ** 3.5,
        )
        problem = make_problem(law, box, initial=initial, horizon=1.0)
        counts = (96, 112, 128, 160)
        errors = [np.abs(rate(problem, Grid(box, (n, n)))).mean() for n in counts]
        assert 4.3 < observed_order([1 / n for n in counts], errors) < 5.5, errors
        assert np.log(errors[2] / errors[3]) / np.log(160 / 128) > 4.8, errors

    def test_in_time(self):
        """Order 3 of SSP-RK3: differences of neighboring step sizes on one grid, one program for all of them."""
        problem = make_problem(Burgers(0.02), LINE, initial={"u": wave}, horizon=0.1)
        steps = [0.1 / n for n in (24, 48, 96, 192, 384)]
        found = [solve(problem, Grid(LINE, (16,)), FiniteVolume(dt=dt), times=[0.1]).fields["u"] for dt in steps]
        errors = [float(jnp.abs(a - b).mean()) for a, b in zip(found, found[1:], strict=False)]
        assert abs(observed_order(steps[:-1], errors) - 3) < 0.2, errors

    def test_diffusion_is_of_order_four(self):
        problem = make_problem(Burgers(0.1), LINE, initial={"u": lambda x: jnp.sin(2 * jnp.pi * x[0])}, horizon=1.0)
        counts, errors = (16, 24, 32, 48), []
        for n in counts:
            grid = Grid(LINE, (n,))
            h = 0.5 / n
            x = grid.axes[0]
            slope, value = (lambda z: 2 * np.pi * np.cos(2 * np.pi * z)), (lambda z: np.sin(2 * np.pi * z))
            exact = (0.1 * (slope(x + h) - slope(x - h)) - 0.5 * (value(x + h) ** 2 - value(x - h) ** 2)) * n
            errors.append(np.abs(rate(problem, grid)[0] - exact).mean())
        assert observed_order([1 / n for n in counts], errors) > 3.8, errors


def test_viscous_burgers_as_by_series():
    """Another method, which knows points: averages over five of its 384 are off by (h/4)^2/12 max|u_xx|, as much as
    the order 4 of diffusion on 96 cells."""
    problem = make_problem(Burgers(0.02), LINE, initial={"u": wave}, horizon=0.2)
    cells, points = Grid(LINE, (96,)), Grid(LINE, (384,))
    found = solve(problem, cells, FiniteVolume(), times=[0.1, 0.2]).fields["u"]
    exact = np.asarray(solve(problem, points, Etdrk4(dt=1e-3), times=[0.1, 0.2]).fields["u"])
    window = np.asarray([0.5, 1, 1, 1, 0.5]) / 4  # the average over a cell by the trapezoidal rule
    averages = sum(w * np.roll(exact, 2 - k, axis=1) for k, w in enumerate(window))[:, ::4]
    curvature = 384**2 * np.abs(np.diff(exact, n=2, axis=1)).max()
    assert np.abs(found - averages).max() < 2 * curvature / (12 * 384**2)


@pytest.mark.parametrize("name", ["weno5", "muscl"])
def test_a_small_jump_on_a_large_mean_is_kept_as_sharp_as_a_large_one(name):
    """Ends of cells commute with scaling and with adding a constant, up to rounding over the size of the jump."""
    reconstruct = jax.jit(lambda v: jnp.stack(RECONSTRUCTIONS[name][0](v, 0, van_leer)))
    steps = jnp.asarray([0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.9, 0.7, 0.7, 0.2, 0.2, 0.2])
    alone = reconstruct(steps)
    for size in (1e-2, 1e-5, 1e-8):
        found = (reconstruct(1 + size * steps) - 1) / size
        assert np.abs(found - alone).max() < 1e-14 / size, size
