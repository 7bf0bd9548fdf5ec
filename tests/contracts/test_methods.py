"""Every registered method: what it declares, and that one compiled solve serves all coefficients and steps."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_close

from sciml import registry
from sciml.boundary import dirichlet
from sciml.domain import Box, Grid
from sciml.equations.burgers import Burgers
from sciml.equations.darcy import Darcy
from sciml.errors import ConfigError
from sciml.problem import make_problem
from sciml.solvers import EllipticSolver, TimeStepper, integrate, solve
from sciml.solvers.method import Scheme

NAMES = registry.names("method")
SHIPPED = {
    "etdrk2", "etdrk4", "imex", "rk4", "ssprk3", "finite_volume", "direct", "conjugate_gradient", "bicgstab",
    "multigrid",
}  # fmt: skip
TIMES = (0.05, 0.1)


def start(x):
    return jnp.sin(2 * jnp.pi * x[0]) + 0.3


def evolution(viscosity=0.05):
    box = Box((0.0,), (1.0,), (True,))
    return make_problem(Burgers(viscosity), box, initial={"u": start}, horizon=0.1), Grid(box, (16,))


def permeability(x):
    return 1.0 + 0.5 * jnp.sin(3 * x[0]) * x[1]


def steady(forcing=1.0):
    box = Box((0.0, 0.0), (1.0, 1.0), (False, False))
    boundary = {face: dirichlet(0.2) for face in box.faces}
    return make_problem(Darcy(permeability, forcing), box, boundary=boundary), Grid(box, (9, 9))


def case(name):
    """(method, problem for a coefficient, grid, times, coefficient) that suit a method."""
    cls = registry.load("method", name)
    if issubclass(cls, TimeStepper | Scheme):
        return cls(dt=0.01), evolution, evolution()[1], TIMES, 0.05
    return cls(), steady, steady()[1], None, 1.0


def test_the_shipped_methods_are_registered():
    assert set(NAMES) == SHIPPED


@pytest.mark.parametrize("name", NAMES)
def test_declares_order_and_references(name):
    cls = registry.load("method", name)
    assert issubclass(cls, TimeStepper | Scheme | EllipticSolver)
    assert cls.references and all(len(text) > 20 for text in cls.references)
    method = cls()
    assert method.order >= 1
    if issubclass(cls, TimeStepper):
        assert dict(registry.describe("method", name).constants)["order"] == cls.order
    elif issubclass(cls, EllipticSolver):
        assert [cls(difference_order=order).order for order in (2, 4)] == [2, 4]
    assert hash(method) == hash(cls())
    with pytest.raises(dataclasses.FrozenInstanceError):
        method.references = ()


@pytest.mark.parametrize(("kind", "of"), [((TimeStepper, Scheme), evolution), (EllipticSolver, steady)])
def test_a_method_of_the_wrong_kind_names_all_that_fit(kind, of):
    problem, grid = of()
    fits = {name: issubclass(registry.load("method", name), kind) for name in NAMES}
    wrong = registry.load("method", next(name for name in NAMES if not fits[name]))()
    with pytest.raises(ConfigError, match="which this method does not solve") as caught:
        solve(problem, grid, wrong, times=TIMES)
    assert f"one of {', '.join(name for name in NAMES if fits[name])}" in str(caught.value)


@pytest.mark.parametrize("name", NAMES)
def test_solves_without_compiling_again(name, no_recompilation):
    method, problem_of, grid, times, number = case(name)
    first = solve(problem_of(number)[0], grid, method, times=times)
    expected = grid.shape if times is None else (len(times), *grid.shape)
    assert first.fields["u"].shape == expected and first.fields["u"].dtype == jnp.float64
    other = method if times is None else dataclasses.replace(method, dt=0.007)
    problem = problem_of(1.1 * number)[0]
    with no_recompilation():
        second = solve(problem, grid, other, times=times)
    assert float(jnp.abs(second.fields["u"] - first.fields["u"]).max()) > 1e-6


def changed(problem, times, value):
    """The problem with another viscosity or forcing."""
    name = "viscosity" if times else "forcing"
    return dataclasses.replace(problem, equation=dataclasses.replace(problem.equation, **{name: value}))


@pytest.mark.parametrize("name", NAMES)
def test_solve_equals_integrate_under_vmap(name):
    """Rounding only: the same arithmetic in another program."""
    method, problem_of, grid, times, number = case(name)
    base, numbers = problem_of(number)[0], number * np.asarray([1.0, 1.2])
    family = jax.jit(jax.vmap(lambda value: integrate(changed(base, times, value), grid, method, times)["u"]))(numbers)
    for value, found in zip(numbers, family, strict=True):
        alone = solve(changed(base, times, float(value)), grid, method, times=times).fields["u"]
        assert_close(found, alone, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("mode", [jax.grad, pytest.param(jax.jacfwd, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", NAMES)
def test_gradient_equals_central_difference(name, mode):
    """The difference has a truncation error of 1e-6 relative and rounding of 1e-9."""
    method, problem_of, grid, times, number = case(name)
    base, weights = problem_of(number)[0], jnp.asarray(grid.points[..., 0])

    def response(value):
        return jnp.sum(weights * integrate(changed(base, times, value), grid, method, times)["u"])

    def solved(value):
        return jnp.sum(weights * solve(changed(base, times, value), grid, method, times=times).fields["u"])

    step = 1e-3 * number
    difference = (solved(number + step) - solved(number - step)) / (2 * step)
    assert_close(jax.jit(mode(response))(number), difference, rtol=1e-4)
