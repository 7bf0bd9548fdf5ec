"""Shocks: exact Riemann problems, dam breaks, first order in L1, symmetry of rings, positivity."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_close

from sciml.boundary import neumann
from sciml.domain import Box, Grid
from sciml.equations.euler import Euler1D
from sciml.equations.shallow_water import ShallowWater2D
from sciml.problem import make_problem
from sciml.solvers import solve, solve_batch, stack
from sciml.solvers.finite_volume.exact_riemann import DamBreak, Gas, gas_profile, gas_star
from sciml.solvers.finite_volume.method import FiniteVolume
from sciml.solvers.finite_volume.riemann_problems import (
    CASES,
    dam_exact,
    dam_solution,
    gas_exact,
    gas_problem,
    gas_solutions,
    spread,
)
from sciml.solvers.published import published_rows
from sciml.solvers.published_shocks import TUBES


class TestExactRiemannSolver:
    """The yardstick itself: jump relations, and the digits of the textbook (in the certificate of euler_1d)."""

    def test_conservation_across_the_fan_and_the_shock(self):
        """What the flux at x = 0 lets through is what the integral over x changes by: momentum of Sod's tube."""
        left, right = CASES["sod"].left, CASES["sod"].right
        speeds = np.linspace(-2, 2, 400001)
        density, velocity, _ = gas_profile(left, right, speeds)
        assert_close(np.trapezoid(density, speeds), 2 * 1.0 + 2 * 0.125, rtol=1e-5)
        assert_close(np.trapezoid(density * velocity, speeds), 1.0 - 0.1, rtol=1e-5)

    def test_mirror(self):
        left, right = Gas(1.0, 0.3, 1.0), Gas(0.4, -0.2, 0.3)
        star, mirrored = gas_star(left, right), gas_star(Gas(0.4, 0.2, 0.3), Gas(1.0, -0.3, 1.0))
        assert_close(star.pressure, mirrored.pressure, rtol=1e-12)
        assert_close(star.velocity, -mirrored.velocity, rtol=1e-12)

    def test_dam_break_conserves_water(self):
        for right in (0.0, 0.1):
            dam = DamBreak(1.0, right, gravity=1.0)
            assert_close(dam_exact(dam, 2000)[0].mean(), 0.5 * (1.0 + right), rtol=1e-5)


@pytest.fixture(scope="module")
def tubes():
    """Every Riemann problem by WENO5 and HLLC on 100 cells, in one program."""
    return gas_solutions(list(CASES), 100, FiniteVolume())


class TestShockTubes:
    @pytest.mark.parametrize("name", TUBES)
    def test_no_wave_oscillates(self, tubes, name):
        """How wide they are is in the certificate; the density varies at most 15 % more than the exact one."""
        exact = gas_exact(name, 100)
        variation = np.abs(np.diff(tubes[name][0])).sum() / np.abs(np.diff(exact[0])).sum()
        assert variation < 1.15

    def test_nothing_is_negative_where_gas_nearly_vanishes_or_explodes(self, tubes):
        for name in ("123", "left blast"):
            assert tubes[name][0].min() > 0 and tubes[name][2].min() > 0
        assert gas_exact("123", 100)[2].min() < 2e-3

    def test_a_stationary_contact_stays_exactly(self, tubes):
        density, velocity, pressure = tubes["stationary contact"]
        assert_close(density, np.where(np.arange(100) < 50, 1.4, 1.0), rtol=1e-13)
        assert np.abs(velocity).max() < 1e-12 and np.ptp(pressure) < 1e-9

    def test_a_sample_does_not_depend_on_its_company(self, tubes):
        alone = gas_solutions(["lax"], 100, FiniteVolume())["lax"]
        assert np.array_equal(alone, tubes["lax"])

    @pytest.mark.slow
    @pytest.mark.parametrize("riemann", ["hllc", "rusanov"])
    @pytest.mark.parametrize("reconstruction", ["weno5", "muscl"])
    def test_first_order_in_l1(self, reconstruction, riemann):
        """Pressure, between 100 and 200 cells: 1 at shocks and corners of fans; one case may lag, the mean may not."""
        names = ["sod", "lax", "123", "left blast", "collision"]
        errors = []
        for cells in (100, 200):
            found = gas_solutions(names, cells, FiniteVolume(reconstruction=reconstruction, riemann=riemann))
            errors.append(np.stack([np.abs(found[n][2] - gas_exact(n, cells)[2]).mean() for n in names]))
        orders = np.log2(errors[0] / errors[1])
        assert (orders > 0.4).all() and 0.7 < orders.mean() < 1.2, orders

    @pytest.mark.slow
    def test_shock_meets_waves(self):
        """Shu and Osher's problem on 200 cells against 800: WENO5 keeps more of the waves behind the shock.

        C.-W. Shu, S. Osher, J. Comput. Phys. 83 (1989) 32, example 8.
        """
        box, law = Box((-5.0,), (5.0,), (False,)), Euler1D()
        behind = lambda x, a, b: jnp.where(x[0] < -4, a, b)  # noqa: E731 (one line)
        initial = law.state(
            lambda x: behind(x, 3.857143, 1 + 0.2 * jnp.sin(5 * x[0])),
            lambda x: behind(x, 2.629369, 0.0),
            lambda x: behind(x, 10.33333, 1.0),
        )
        problem = make_problem(law, box, initial=initial, boundary={f: neumann() for f in box.faces}, horizon=1.8)
        found = {}
        for reconstruction, cells in (("weno5", 800), ("weno5", 200), ("muscl", 200)):
            method = FiniteVolume(reconstruction=reconstruction)
            density = solve(problem, Grid(box, (cells,), cells=True), method, times=[1.8]).fields["density"][0]
            found[reconstruction, cells] = np.asarray(density)
        fine = found["weno5", 800].reshape(200, 4).mean(axis=1)
        errors = {key: np.abs(values - fine).mean() for key, values in found.items() if key[1] == 200}
        assert errors["weno5", 200] < 0.9 * errors["muscl", 200] < 0.08, errors
        assert 4.5 < fine.max() < 4.9


class TestDamBreak:
    @pytest.mark.parametrize(
        ("reconstruction", "right"),
        [("weno5", 0.1), ("weno5", 0.0), pytest.param("muscl", 0.1, marks=pytest.mark.slow)],
    )
    def test_on_wet_and_dry_ground(self, reconstruction, right):
        dam = DamBreak(1.0, right, gravity=1.0)
        found = dam_solution(dam, 100, FiniteVolume(reconstruction=reconstruction))
        exact = dam_exact(dam, 100)
        for values, expected in zip(found, exact, strict=True):
            assert np.abs(values - expected).mean() < spread(expected)
        assert found[0].min() >= 0
        assert_close(found[0].mean(), 0.5 * (1 + right), rtol=1e-13)

    @pytest.mark.slow
    def test_a_ring_is_round_and_symmetric(self):
        """The radial dam break of PDEBench on 48 x 48 cells: eight-fold symmetry to rounding, nearly round."""
        box = Box((-2.5, -2.5), (2.5, 2.5), (False, False))
        depth = lambda x: jnp.where(x @ x < 0.25, 2.0, 1.0)  # noqa: E731 (one line)
        still = lambda x: 0.0 * x[0]  # noqa: E731 (one line)
        problem = make_problem(
            ShallowWater2D(1.0), box, initial={"depth": depth, "discharge_x": still, "discharge_y": still},
            boundary={f: neumann() for f in box.faces}, horizon=1.0,
        )  # fmt: skip
        grid = Grid(box, (48, 48), cells=True)
        found = solve(problem, grid, FiniteVolume(), times=[1.0])
        h = np.asarray(found.fields["depth"][0])
        for other in (h.T, h[::-1], h[:, ::-1]):
            assert_close(h, other, rtol=1e-11)
        radius = np.linalg.norm(grid.points, axis=-1)
        along, across = h[24:, 24], np.diag(h)[24:]
        same = np.interp(radius[24:, 24][2:16], np.diag(radius)[24:], across)
        assert np.abs(along[2:16] - same).max() < 0.05
        front = radius[np.abs(h - 1) > 0.02].max()
        assert 1.4 < front < 1.9  # the bore is a little faster than sqrt(g h) = 1


def test_the_values_in_the_certificates_hold():
    """Toro's digits, five shock tubes, Stoker's dam, the speed of a shock, the limit without viscosity."""
    for name in ("euler_1d", "shallow_water_1d", "inviscid_burgers"):
        rows = list(published_rows(name))
        assert rows and all(row.holds for row in rows), [row.text for row in rows]


def test_a_batch_of_tubes_equals_single_solves():
    """Another program, so rounding only."""
    problem = gas_problem(CASES["sod"])
    grid = Grid(problem.domain, (100,), cells=True)
    single = solve(problem, grid, FiniteVolume(), times=[0.2]).fields["density"]
    batch = solve_batch(stack([problem]), grid, FiniteVolume(), times=[0.2]).fields["density"][0]
    assert_close(batch, single, rtol=1e-10)
