"""Bounded boxes: Dirichlet, Neumann and Robin faces, differences of order 2 and 4, steady and in time."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_close, observed_order

from sciml.boundary import dirichlet, neumann, robin
from sciml.domain import Box, Grid
from sciml.equations.advection import Advection
from sciml.equations.burgers import Burgers
from sciml.equations.darcy import Darcy
from sciml.equations.heat import Heat
from sciml.equations.poisson import Poisson
from sciml.problem import make_problem, manufactured
from sciml.solvers import Bicgstab, ConjugateGradient, Direct, Etdrk4, Imex, Rk4, integrate, solve

LINE = Box((0.0,), (1.0,), (False,))


def slope(function, axis, sign):
    """The outward derivative of a function of x, or of x and t, on a face."""
    return lambda x, *t: sign * jax.grad(lambda y: function(y, *t))(x)[axis]


def mixed(function, axis, sign):
    """2 u + 0.5 du/dn."""
    outward = slope(function, axis, sign)
    if function is steady_wave:
        return lambda x: 2.0 * function(x) + 0.5 * outward(x)
    return lambda x, t: 2.0 * function(x, t) + 0.5 * outward(x, t)


def steady_wave(x):
    return jnp.sin(5.0 * x[0] + 0.3)


def moving_wave(x, t):
    return jnp.exp(-t) * jnp.sin(4.0 * x[0] + 0.3)


def fixed_slope(function, axis, sign):
    """A Neumann condition on the right, a Dirichlet one on the left, so that a steady problem is not singular."""
    outward = slope(function, axis, sign)
    value = (lambda x: outward(x)) if function is steady_wave else (lambda x, t: outward(x, t))
    return neumann(value) if sign > 0 else dirichlet(function)


CONDITIONS = {
    "dirichlet": lambda f, axis, sign: dirichlet(f),
    "neumann": fixed_slope,
    "robin": lambda f, axis, sign: robin(2.0, 0.5, mixed(f, axis, sign)),
}
OTHERS = (("dirichlet", 2), ("dirichlet", 4), ("neumann", 2), ("neumann", 4), ("robin", 2))
conditions = pytest.mark.parametrize("kind", CONDITIONS)
orders = pytest.mark.parametrize("order", [2, 4])


def choose(kind, function):
    """Conditions made from the plain function, whose identity decides whether it has a time."""
    return lambda wrapped, axis, sign: CONDITIONS[kind](function, axis, sign)


def largest_error(problem, grid, method, time=None):
    """Of the computed against the exact u at the grid points, in one compiled program."""

    def error():
        found = integrate(problem, grid, method, None if time is None else [time])["u"]
        return jnp.abs(found - problem.exact_values(grid, time)["u"]).max()

    return float(jax.jit(error)())


@conditions
@orders
def test_steady_orders(kind, order):
    """Poisson by fast diagonalization; 0.35 below order 4 because the one-sided stencils settle late."""
    problem = manufactured(Poisson(), LINE, {"u": steady_wave}, condition=choose(kind, steady_wave))
    counts, errors = (48, 64, 96, 128), []
    for n in counts:
        grid = Grid(LINE, (n + 1,))
        errors.append(largest_error(problem, grid, Direct(difference_order=order)))
    assert observed_order(1 / np.asarray(counts), errors) > order - 0.35, errors


@pytest.mark.parametrize(
    ("kind", "order"),
    [("robin", 4), *(pytest.param(k, o, marks=pytest.mark.slow) for k, o in OTHERS)],
)
def test_evolution_orders(kind, order):
    """Heat by ETDRK4 in the eigenvectors of the differences; the step is small enough to leave the grid's error."""
    problem = manufactured(Heat(0.5), LINE, {"u": moving_wave}, horizon=1.0, condition=choose(kind, moving_wave))
    counts, errors = (16, 24, 32, 48), []
    for n in counts:
        grid = Grid(LINE, (n + 1,))
        errors.append(largest_error(problem, grid, Etdrk4(dt=0.005, difference_order=order), 0.1))
    assert observed_order(1 / np.asarray(counts), errors) > order - 0.35, errors


def test_methods_agree_on_a_bounded_evolution():
    """Burgers with fixed ends: modes, implicit and explicit treatment of diffusion differ by their time error only."""
    boundary = {"x-": dirichlet(1.0), "x+": dirichlet(-1.0)}
    start = {"u": lambda x: 1.0 - 2.0 * x[0] + jnp.sin(jnp.pi * x[0])}
    problem = make_problem(Burgers(0.1), LINE, initial=start, boundary=boundary, horizon=1.0)
    grid = Grid(LINE, (25,))
    found = [solve(problem, grid, m(dt=0.005), times=[0.2]).fields["u"] for m in (Etdrk4, Imex, Rk4)]
    assert_close(found[1], found[0], rtol=0, atol=1e-5)
    assert_close(found[2], found[0], rtol=0, atol=1e-5)
    assert_close(found[0][0, [0, -1]], np.asarray([1.0, -1.0]), rtol=0, atol=1e-14)


def test_stiff_part_without_modes_is_treated_densely():
    """Advection through an inflow on the left, extrapolated on the right: exponential of the matrix against RK4."""
    boundary = {"x-": dirichlet(0.0), "x+": neumann(0.0)}
    start = {"u": lambda x: jnp.exp(-100 * (x[0] - 0.3) ** 2)}
    problem = make_problem(Advection(1.0), LINE, initial=start, boundary=boundary, horizon=1.0)
    grid = Grid(LINE, (33,))
    exponential = solve(problem, grid, Etdrk4(dt=0.05), times=[0.1]).fields["u"]
    explicit = solve(problem, grid, Rk4(dt=0.001), times=[0.1]).fields["u"]
    assert_close(exponential, explicit, rtol=0, atol=1e-7)  # the error of RK4


def test_neumann_faces_conserve_the_mean():
    """No flux: the mean (trapezoidal rule) drifts by the error of the differences only, order 2 in 1/64."""
    boundary = {"x-": neumann(0.0), "x+": neumann(0.0)}
    start = {"u": lambda x: 1.0 + jnp.cos(jnp.pi * x[0]) + 0.5 * jnp.cos(2 * jnp.pi * x[0])}
    problem = make_problem(Heat(0.1), LINE, initial=start, boundary=boundary, horizon=1.0)
    grid = Grid(LINE, (65,))
    found = np.asarray(solve(problem, grid, Etdrk4(dt=0.01), times=[0.0, 0.5]).fields["u"])
    means = np.trapezoid(found, grid.axes[0])
    assert abs(means[1] - means[0]) < 2e-3


def bumpy(x):
    return 1.0 + 0.5 * jnp.sin(3.0 * x[0]) * x[-1]


def product_wave(x):
    return jnp.sin(2.0 * x[0] + 0.3) * jnp.cos(x[1])


@pytest.mark.parametrize(
    ("method", "order"),
    [
        (ConjugateGradient, 2),
        pytest.param(Direct, 2, marks=pytest.mark.slow),
        pytest.param(Bicgstab, 4, marks=pytest.mark.slow),
    ],
)
def test_variable_coefficients_in_two_dimensions(method, order):
    """Darcy flow, manufactured, on the unit square."""
    square = Box((0.0, 0.0), (1.0, 1.0), (False, False))
    problem = manufactured(Darcy(bumpy), square, {"u": product_wave})
    counts, errors = (12, 16, 24, 32), []
    for n in counts:
        grid = Grid(square, (n + 1, n + 1))
        errors.append(largest_error(problem, grid, method(difference_order=order)))
    assert observed_order(1 / np.asarray(counts), errors) > order - 0.3, errors


def test_three_dimensions_with_a_periodic_axis():
    """Poisson, periodic in y, by fast diagonalization; error of order 2 at 12 intervals."""
    box = Box((0.0, 0.0, 0.0), (1.0, 1.0, 1.0), (False, True, False))
    problem = manufactured(
        Poisson(), box, {"u": lambda x: jnp.sin(2 * x[0]) * jnp.cos(2 * jnp.pi * x[1]) * jnp.exp(-x[2])}
    )
    grid = Grid(box, (13, 16, 13))
    found = solve(problem, grid, Direct()).fields["u"]
    assert float(jnp.abs(found - problem.exact_values(grid)["u"]).max()) < 2e-2


def test_iterations_hardly_depend_on_the_grid():
    """The preconditioner is spectrally equivalent to the operator: its contrast decides, not the spacing."""
    square = Box((0.0, 0.0), (1.0, 1.0), (False, False))
    boundary = {face: dirichlet(0.0) for face in square.faces}
    problem = make_problem(Darcy(bumpy), square, boundary=boundary)
    counts = [solve(problem, Grid(square, (n, n)), ConjugateGradient()).steps for n in (17, 65)]
    assert counts[1] <= counts[0] + 4 and counts[1] < 25
