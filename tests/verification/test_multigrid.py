"""Geometric multigrid: a convergence factor below 0.2 on any grid, jumping coefficients, grids that do not coarsen."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_close

from sciml.boundary import dirichlet, neumann, robin
from sciml.domain import Box, Grid
from sciml.equations.darcy import Darcy
from sciml.equations.poisson import Poisson
from sciml.errors import ConfigError
from sciml.problem import make_problem
from sciml.solvers import ConjugateGradient, Direct, Multigrid, integrate, solve

TOLERANCE = 1e-10
CYCLES = Multigrid(tolerance=TOLERANCE, accelerate=False)


def box(dim, periodic=False):
    return Box((0.0,) * dim, (1.0,) * dim, (periodic,) * dim)


def zero_mean(x):
    """Mean zero over the unit box, periodic or by the trapezoidal rule between faces."""
    return jnp.cos(2 * jnp.pi * x[0]) + jnp.cos(4 * jnp.pi * x[-1])


CONDITIONS = {
    "dirichlet": lambda faces: {face: dirichlet(0.3) for face in faces},
    "neumann": lambda faces: {face: neumann(0.0) for face in faces},
    "robin": lambda faces: {face: robin(2.0, 0.5, 1.0) for face in faces},
    "mixed": lambda faces: dict(zip(faces, (dirichlet(1.0), neumann(0.5), robin(1.0, 1.0), neumann(0.0)), strict=True)),
    "periodic": lambda faces: {},
}


def poisson(kind, dim=2):
    domain = box(dim, kind == "periodic")
    source = zero_mean if kind in ("neumann", "periodic") else 1.0
    return make_problem(Poisson(source), domain, boundary=CONDITIONS[kind](domain.faces))


def factor(problem, n, method=CYCLES):
    """The mean factor by which a cycle reduces the residual."""
    grid = Grid(problem.domain, (n - problem.domain.periodic[0],) * problem.domain.dim)
    return TOLERANCE ** (1 / solve(problem, grid, method).steps)


@pytest.mark.parametrize(
    ("kind", "n"),
    [
        ("mixed", 33),
        ("mixed", 65),
        *(pytest.param("mixed", n, marks=pytest.mark.slow) for n in (129,)),
        *(pytest.param(k, 65, marks=pytest.mark.slow) for k in ("dirichlet", "neumann", "robin", "periodic")),
        *(pytest.param(k, 129, marks=pytest.mark.long) for k in ("dirichlet", "neumann", "robin", "periodic")),
    ],
)
def test_convergence_does_not_depend_on_the_grid(kind, n):
    assert factor(poisson(kind), n) < 0.2


@pytest.mark.slow
def test_three_dimensions():
    assert factor(poisson("dirichlet", 3), 17) < 0.2


def materials(x):
    """The two permeabilities of the usual binary media, in patches."""
    return jnp.where(jnp.sin(9 * x[0] + 1) * jnp.sin(7 * x[1]) > 0, 12.0, 3.0)


def test_jumps_with_conjugate_gradients():
    """The same answer as with the other preconditioner, in a few cycles; alone the cycles converge, too."""
    domain = box(2)
    problem = make_problem(Darcy(materials), domain, boundary={face: dirichlet(0.0) for face in domain.faces})
    grid = Grid(domain, (33, 33))
    ours, other = solve(problem, grid, Multigrid()), solve(problem, grid, ConjugateGradient(tolerance=1e-12))
    assert_close(ours.fields["u"], other.fields["u"], rtol=0, atol=1e-9 * float(other.fields["u"].max()))
    assert ours.steps <= 10


def test_the_answer_is_that_of_the_direct_solver():
    """Neumann faces only: both have mean zero."""
    problem = poisson("neumann")
    grid = Grid(problem.domain, (17, 17))
    found, expected = (solve(problem, grid, method).fields["u"] for method in (Multigrid(), Direct()))
    assert_close(found, expected, rtol=0, atol=1e-10)


@pytest.mark.slow
def test_gradient_through_the_hierarchy():
    """Of a weighted mean with respect to the permeability, against a central difference (error 1e-6 relative)."""
    domain = box(2)
    grid = Grid(domain, (33, 33))
    boundary = {"x-": dirichlet(1.0), "x+": dirichlet(0.0), "y-": neumann(0.0), "y+": robin(1.0, 1.0, 0.0)}
    base = materials(np.moveaxis(grid.points, -1, 0))
    pattern = jnp.asarray(grid.points[..., 1])

    def response(amount):
        problem = make_problem(Darcy(base + amount * pattern), domain, boundary=boundary)
        return jnp.sum(pattern * integrate(problem, grid, Multigrid(tolerance=1e-12))["u"])

    compiled = jax.jit(response)
    difference = (compiled(0.51) - compiled(0.49)) / 0.02
    assert_close(jax.jit(jax.grad(response))(0.5), difference, rtol=1e-4)


def test_grids_that_cannot_be_halved_are_refused_with_sizes_that_can():
    problem = poisson("dirichlet")
    with pytest.raises(ConfigError, match="cannot be halved") as caught:
        solve(problem, Grid(problem.domain, (64, 101)), Multigrid())
    assert "points: [65, 97]" in caught.value.fix
