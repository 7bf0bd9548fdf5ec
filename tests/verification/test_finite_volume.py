"""Finite volumes: conservation, saved times, boundaries, gradients, and what is refused or marked."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_close, assert_identical

from sciml.boundary import dirichlet, neumann, robin
from sciml.calculus import CellAverages, FaceStates
from sciml.domain import Box, Grid
from sciml.equations import Evolution, Field, equation, parameter
from sciml.equations.advection import Advection
from sciml.equations.burgers import Burgers
from sciml.equations.conservation import ConservationLaw
from sciml.equations.euler import Euler1D, Euler2D
from sciml.equations.heat import Heat
from sciml.equations.inviscid_burgers import InviscidBurgers
from sciml.equations.shallow_water import ShallowWater1D, ShallowWater2D
from sciml.errors import ConfigError, NumericalError
from sciml.problem import make_problem
from sciml.solvers import Etdrk4, Rk4, Ssprk3, error_estimate, integrate, solve, solve_batch, stack
from sciml.solvers.finite_volume.cells import cell_averages, wall
from sciml.solvers.finite_volume.method import FiniteVolume


@equation
class Sink(ConservationLaw):
    """h_t = -s: water that runs off everywhere."""

    fields = (Field("depth"),)
    strength: float = parameter(1.0)

    def nonstiff(self, u, d):
        return {"depth": -self.strength + 0.0 * u.depth}

    def max_speed(self, u, axis, d):
        return 0.0 * u.depth

    def positive(self, u, d):
        return {"depth": u.depth}


LINE = Box((0.0,), (1.0,), (True,))
WALLS = Box((0.0,), (1.0,), (False,))


def wave(x):
    return 0.4 + jnp.sin(2 * jnp.pi * x[0])


def unit_depth(x):
    return 1.0 + 0.0 * x[0]


class TestAverages:
    """Coordinates and averages belong together, on both kinds of grid."""

    def test_centers_and_refinement(self):
        grid = Grid(WALLS, (4,), cells=True)
        assert_close(grid.axes[0], np.asarray([0.125, 0.375, 0.625, 0.875]), rtol=1e-15)
        fine = grid.refined(2)
        assert fine.cells and fine.shape == (8,) and grid.spacing == (0.25,)
        assert_close(grid.restricted(np.arange(8.0)), np.asarray([0.5, 2.5, 4.5, 6.5]), rtol=1e-15)
        points = Grid(WALLS, (5,))
        assert points.refined(2).shape == (9,)
        assert_close(points.restricted(np.arange(9.0)), np.arange(0.0, 9, 2), rtol=0)

    def test_averages_around_points(self):
        """Cells of a coarse grid around points end in the middle of finer ones: order 4, mean kept; odd factors exact.

        Taking the average around the same point is off by h^2/32 of the second derivative.
        """
        box, errors = Box((0.0, -1.0), (1.0, 1.0), (True, True)), []
        function = lambda x: jnp.sin(2 * jnp.pi * x[0] + 1.0) * jnp.cos(jnp.pi * x[1])  # noqa: E731 (one line)
        for n in (8, 16):
            grid = Grid(box, (n, n))
            exact = np.asarray(cell_averages(function, grid))
            for factor, most in ((3, 1e-6), (4, 1e-2)):
                finer = np.asarray(cell_averages(function, grid.refined(factor)))
                found = grid.restricted(finer, factor, averages=True)
                assert abs(found.mean() - finer.mean()) < 1e-14 and np.abs(found - exact).max() < most
            finer = np.asarray(cell_averages(function, grid.refined(2)))
            errors.append(np.abs(grid.restricted(finer, averages=True) - exact).max())
        assert 3.7 < np.log2(errors[0] / errors[1]) < 4.5, errors

    def test_polynomials_of_degree_five_are_averaged_exactly(self):
        grid = Grid(Box((0.0, -1.0), (1.0, 1.0), (False, False)), (4, 5), cells=True)
        found = cell_averages(lambda x: x[0] ** 5 * x[1] ** 4, grid)
        ends = [(a[:, None] + np.asarray([-0.5, 0.5]) * h) for a, h in zip(grid.axes, grid.spacing, strict=True)]
        x, y = (np.diff(e ** (n + 1), axis=1)[:, 0] / ((n + 1) * h)
                for e, n, h in zip(ends, (5, 4), grid.spacing, strict=True))  # fmt: skip
        assert_close(found, x[:, None] * y, rtol=1e-13)


class TestConservation:
    """To rounding, whatever the method does at shocks."""

    def test_burgers_with_shock(self):
        problem = make_problem(InviscidBurgers(), LINE, initial={"u": wave}, horizon=1.0)
        found = solve(problem, Grid(LINE, (64,)), FiniteVolume(), times=[0.0, 0.2, 0.5])
        u = np.asarray(found.fields["u"])
        assert np.abs(u.mean(axis=1) - 0.4).max() < 1e-14
        assert (u[2] ** 2).mean() < 0.9 * (u[0] ** 2).mean()  # the shock dissipates

    def test_gas_between_walls(self):
        """Mass and energy stay between walls, mirrored fields stay mirrored, and lands on the saved times."""
        law, box = Euler2D(), Box((0.0, 0.0), (1.0, 0.5), (False, True))
        dense = lambda x: jnp.where((x[0] - 0.5) ** 2 + (x[1] - 0.25) ** 2 < 0.02, 3.0, 1.0)  # noqa: E731 (one line)
        problem = make_problem(
            law, box, initial=law.state(dense, 0.0, 0.0, dense),
            boundary={"x-": wall(law, 0), "x+": wall(law, 0)}, horizon=0.5,
        )  # fmt: skip
        found = solve(problem, Grid(box, (32, 16), cells=True), FiniteVolume(), times=[0.0, 0.11, 0.45])
        assert_close(found.times, np.asarray([0.0, 0.11, 0.45]), rtol=0)
        for name in ("density", "energy"):
            total = np.asarray(found.fields[name]).sum(axis=(1, 2))
            assert_close(total, np.full(3, total[0]), rtol=1e-13)
        density = np.asarray(found.fields["density"])[2]
        assert_close(density, density[::-1], rtol=1e-10)
        assert_close(density, density[:, ::-1], rtol=1e-10)
        assert np.abs(density - np.asarray(found.fields["density"])[0]).max() > 0.5

    def test_lake_at_rest(self):
        law, box = ShallowWater2D(), Box((0.0, 0.0), (1.0, 1.0), (False, True))
        flat, still = (lambda x: 0.7 + 0.0 * x[0]), (lambda x: 0.0 * x[0])
        problem = make_problem(
            law, box, initial={"depth": flat, "discharge_x": still, "discharge_y": still},
            boundary={"x-": wall(law, 0), "x+": neumann()}, horizon=1.0,
        )  # fmt: skip
        found = solve(problem, Grid(box, (8, 8), cells=True), FiniteVolume(), times=[1.0])
        assert np.abs(np.asarray(found.fields["depth"]) - 0.7).max() < 1e-14
        assert np.abs(np.asarray(found.fields["discharge_x"])).max() < 1e-14


def test_what_flows_in_fills_the_box_and_leaves_it():
    """Advection with speed 1: the values given at x = 0, with their time, arrive at x after x seconds.

    The last cell sees the state continued as a constant: off by h/2 times a slope of 4.
    """
    entering = lambda x, t: jnp.sin(4 * t)  # noqa: E731 (one line)
    problem = make_problem(
        Advection(1.0), WALLS, initial={"u": lambda x: 0.0 * x[0]},
        boundary={"x-": dirichlet(entering), "x+": neumann()}, horizon=2.0,
    )  # fmt: skip
    grid = Grid(WALLS, (40,), cells=True)
    found = solve(problem, grid, FiniteVolume(), times=[1.5]).fields["u"][0]
    error = np.abs(np.asarray(found) - np.sin(4 * (1.5 - grid.axes[0])))
    assert error.max() < 0.5 * 4 / 40 and error.mean() < 2e-3


@pytest.mark.parametrize("mode", [jax.jacfwd, pytest.param(jax.grad, marks=pytest.mark.slow)])
def test_gradient_through_a_system(mode):
    """With respect to gravity, through fixed steps, against a central difference (1e-9 off itself)."""

    def response(gravity):
        initial = {"depth": lambda x: 1 + 0.2 * jnp.sin(2 * jnp.pi * x[0]), "discharge_x": lambda x: 0.3 + 0.0 * x[0]}
        problem = make_problem(ShallowWater1D(gravity), LINE, initial=initial, horizon=0.1)
        fields = integrate(problem, Grid(LINE, (24,)), FiniteVolume(dt=0.005), [0.1])
        return jnp.sum(fields["depth"][0] * jnp.arange(24))

    value = jax.jit(response)
    difference = (value(1.0001) - value(0.9999)) / 0.0002
    assert_close(jax.jit(mode(response))(1.0), difference, rtol=1e-8)


class TestFixedSteps:
    """`integrate` takes dt as it is; what it may not do shows as NaN."""

    def test_beyond_half_a_cell_per_step(self):
        """MUSCL is TVD up to a half; at 0.9 cells per step a square wave overshoots by 1e-3."""
        square = {"u": lambda x: jnp.where(jnp.abs(x[0] - 0.5) < 0.2, 1.0, 0.0)}
        problem, grid = make_problem(Advection(1.0), LINE, initial=square, horizon=1.0), Grid(LINE, (32,))
        for courant, is_allowed in ((0.9, False), (0.5, True)):
            method = FiniteVolume(dt=courant / 32, reconstruction="muscl")
            found = np.asarray(integrate(problem, grid, method, [0.25])["u"])
            assert np.isfinite(found).all() == is_allowed
            if is_allowed:
                assert found.min() > -1e-14 and found.max() < 1 + 1e-14 and np.ptp(found) > 0.9

    def test_a_depth_below_zero(self):
        """A sink of strength 2 empties unit depth at t = 0.5; before, all is well."""
        problem = make_problem(Sink(2.0), LINE, initial={"depth": unit_depth}, horizon=1.0)
        found = integrate(problem, Grid(LINE, (8,)), FiniteVolume(dt=0.05), [0.25, 1.0])["depth"]
        assert_close(found[0], np.full(8, 0.5), rtol=1e-12)
        assert jnp.isnan(found[1]).all()


class TestGuard:
    """Failures are values that name the sample, the time and the cell; the other samples stay."""

    grid = Grid(WALLS, (16,), cells=True)

    def gas(self, low):
        law = Euler1D()
        pressure = lambda x: jnp.where(jnp.abs(x[0] - 0.7) < 0.03, low, 1.0)  # noqa: E731 (one line)
        return make_problem(
            law, WALLS, initial=law.state(1.0, 0.0, pressure), boundary={f: neumann() for f in WALLS.faces}, horizon=1.0
        )

    def test_negative_pressure_at_the_start(self):
        with pytest.raises(NumericalError, match="starts with a negative value of pressure in cell") as caught:
            solve(self.gas(-5.0), self.grid, FiniteVolume(), times=[0.1])
        assert "in cell 10 at x = 0.6562 m" in str(caught.value) or "in cell 11 at x = 0.7188 m" in str(caught.value)
        assert caught.value.exit_code == 79

    def test_a_sample_that_runs_dry_is_marked_and_the_others_stay(self):
        """A sink of strength s empties unit depth at t = 1/s."""
        box = Box((0.0,), (1.0,), (True,))
        problems = [
            make_problem(Sink(jnp.asarray(s)), box, initial={"depth": unit_depth}, horizon=1.0) for s in (0.5, 2.0)
        ]
        found = solve_batch(stack(problems), Grid(box, (8,)), FiniteVolume(dt=0.05), times=[0.25, 1.0])
        assert list(found.failures) == [1]
        text = str(found.failures[1])
        assert "sample 1 reaches at t = 0.5" in text and "a negative value of depth in cell 0 at x = 0 m" in text
        assert_close(found.fields["depth"][0, :, 0], np.asarray([0.875, 0.5]), rtol=1e-12)
        assert_close(found.fields["depth"][1, 0], np.full(8, 0.5), rtol=1e-12)
        assert np.isnan(found.fields["depth"][1, 1]).all()

    def test_a_start_that_is_not_finite(self):
        problem = make_problem(InviscidBurgers(), LINE, initial={"u": lambda x: 1 / (x[0] - x[0])}, horizon=1.0)
        with pytest.raises(NumericalError, match="starts with values that are not finite in cell 0 at x = 0 m"):
            solve(problem, Grid(LINE, (8,)), FiniteVolume(), times=[0.1])

    def test_speeds_without_bound(self):
        problem = make_problem(InviscidBurgers(), LINE, initial={"u": lambda x: 1e9 * wave(x)}, horizon=1.0)
        with pytest.raises(NumericalError, match="more than a million steps"):
            solve(problem, Grid(LINE, (8,)), FiniteVolume(), times=[1.0])


def test_a_sample_does_not_depend_on_its_company():
    waves = [lambda x, a=a: a + jnp.sin(2 * jnp.pi * x[0]) for a in (0.1, 0.9)]
    problems = [make_problem(InviscidBurgers(jnp.asarray(0.5 + i)), LINE, initial={"u": w}, horizon=1.0)
                for i, w in enumerate(waves[:1] * 2)]  # fmt: skip
    grid = Grid(LINE, (32,))
    both = solve_batch(stack(problems), grid, FiniteVolume(), times=[0.3])
    alone = solve_batch(stack(problems[1:]), grid, FiniteVolume(), times=[0.3])
    assert_identical(both.fields["u"][1:], alone.fields["u"])
    assert both.steps[0] < both.steps[1]  # each takes its own steps


def test_the_error_estimate_compares_averages():
    """Half the cells: the estimate is the difference to averages of the finer solution, and falls with the cells."""
    problem = make_problem(InviscidBurgers(), LINE, initial={"u": wave}, horizon=0.1)
    errors = [error_estimate(problem, Grid(LINE, (n,), cells=True), FiniteVolume(), times=[0.1]) for n in (16, 32)]
    assert errors[1] < errors[0] / 4 and errors[0] < 0.02


class TestRefused:
    """What does not belong together is told before anything runs."""

    @pytest.mark.parametrize("method", [Etdrk4(), Rk4(), Ssprk3()])
    def test_series_and_central_differences_for_shocks(self, method):
        problem = make_problem(InviscidBurgers(), LINE, initial={"u": wave}, horizon=1.0)
        with pytest.raises(ConfigError, match="have shocks, which this method cannot follow") as caught:
            solve(problem, Grid(LINE, (16,)), method, times=[0.1])
        assert "finite_volume" in caught.value.fix and caught.value.exit_code == 78
        smooth = dataclasses.replace(problem, equation=Burgers(0.1))
        assert jnp.isfinite(solve(smooth, Grid(LINE, (16,)), method, times=[0.1]).fields["u"]).all()

    @pytest.mark.parametrize(
        ("changes", "method", "grid", "message"),
        [
            ({}, FiniteVolume(cfl=0.9), Grid(WALLS, (8,), cells=True), "CFL number is not allowed"),
            ({}, FiniteVolume(), Grid(WALLS, (9,)), "need a grid of cells"),
            ({}, Rk4(), Grid(WALLS, (9,), cells=True), "values at points"),
            ({"boundary": {"x-": robin(1.0, 1.0), "x+": neumann()}}, FiniteVolume(), Grid(WALLS, (8,), cells=True),
             "no Robin condition .face x-"),
            ({"equation": Heat()}, FiniteVolume(), Grid(WALLS, (8,), cells=True), "is no conservation law"),
        ],
    )  # fmt: skip
    def test_grids_conditions_and_equations(self, changes, method, grid, message):
        problem = make_problem(
            Advection(), WALLS, initial={"u": wave}, boundary={f: neumann() for f in WALLS.faces}, horizon=1.0
        )
        with pytest.raises(ConfigError, match=message):
            solve(dataclasses.replace(problem, **changes), grid, method, times=[0.1])

    def test_products_with_derivatives(self):
        @equation
        class Expanded(ConservationLaw):
            """u_t + u u_x = 0, not as a divergence."""

            fields = (Field("u"),)

            def nonstiff(self, u, d):
                return {"u": -u.u * d.partial(u.u, 0)}

            def max_speed(self, u, axis, d):
                return d.map(jnp.abs, u.u)

        problem = make_problem(Expanded(), LINE, initial={"u": wave}, horizon=1.0)
        with pytest.raises(ConfigError, match="not the divergence of a flux"):
            solve(problem, Grid(LINE, (8,)), FiniteVolume(), times=[0.1])

    def test_higher_derivatives_and_arrays(self):
        faces = FaceStates(1, np.zeros((4, 1)))
        cells = CellAverages((0.1,), np.zeros((4, 1)))
        for d in (faces, cells):
            with pytest.raises(ConfigError, match="first and second derivatives only"):
                d.partial(jnp.ones(4), 0, 3)
            with pytest.raises(ConfigError, match="where an array has no values"):
                d.sample(np.ones(4))
            with pytest.raises(ConfigError, match="time derivative"):
                d.dt(jnp.ones(4))


def test_readings_of_the_parts():
    """`a * gradient` is averaged to the faces; transport in `stiff` is a flux; both know coordinates and time."""
    points = np.linspace(0.0, 1.0, 12)[:, None]
    d = CellAverages((1 / 11,), points, time=2.0)
    x = d.coordinates[0]
    spread = d.divergence(tuple((1 + x) * slope for slope in d.gradient(x * x)))[3:-3]
    assert_close(
        spread, (2 + 4 * x)[3:-3], rtol=1e-9
    )  # ((1 + x) 2x)' = 2 + 4x, on averages of x^2 that are off by h^2/12
    assert d.time == 2.0 and float(jnp.abs(d.divergence((x,))).max()) == 0.0
    faces = FaceStates(1, points, time=2.0)
    transport = 3.0 * faces.divergence((x,)) - faces.partial(x, 0) + faces.laplacian(x)
    assert_close(transport.flux[0], 2 * x, rtol=1e-14)
    assert_close(faces.sample(lambda p, t: p[0] * t), 2 * x, rtol=1e-14)


def test_a_user_equation_that_is_no_conservation_law_is_told_what_to_write():
    @equation
    class Plain(Evolution):
        """u_t + u u_x = 0 without its speed."""

        fields = (Field("u"),)

        def flux(self, u, d):
            return {"u": (0.5 * u.u * u.u,) * d.dim}

    problem = make_problem(Plain(), LINE, initial={"u": wave}, horizon=1.0)
    with pytest.raises(ConfigError, match="Plain is no conservation law") as caught:
        solve(problem, Grid(LINE, (8,)), FiniteVolume(), times=[0.1])
    assert "max_speed" in caught.value.fix
