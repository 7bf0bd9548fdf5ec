"""What cannot be solved on a mesh is refused in words; each refusal with a control that is accepted."""

from __future__ import annotations

import sys
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
import pytest

from sciml.boundary import dirichlet, inflow, neumann, robin
from sciml.calculus.weak import Weak, WeakForm
from sciml.domain import Box, Grid
from sciml.equations import (
    CahnHilliard,
    Darcy,
    Elasticity,
    Field,
    Heat,
    Poisson,
    Steady,
    equation,
    parameter,
)
from sciml.errors import ConfigError, NumericalError
from sciml.geometry import rectangle
from sciml.problem import make_problem
from sciml.solvers import Direct, solve, solve_batch, stack
from sciml.solvers.finite_element import Elements, Galerkin, TrBdf2
from sciml.solvers.finite_element.linear import need_petsc

MESH = rectangle(cells=(2, 2))
ELEMENTS = Elements(MESH, 1)
LINE = Box((0.0,), (1.0,), (False,))
FIXED = {face: dirichlet(0.0) for face in MESH.faces}
OPEN = {face: neumann(0.0) for face in MESH.faces}


def zero(x):
    return 0.0 * x[0]


def poisson(boundary=None, forcing=1.0):
    return make_problem(Poisson(forcing), MESH, boundary=boundary or FIXED)


def heat(boundary=None, equation=None):
    return make_problem(equation or Heat(0.1), MESH, boundary=boundary or FIXED, initial={"u": zero}, horizon=1.0)


@equation
class Expanded(Steady):
    """a lap u + grad a . grad u, which is not written as a divergence."""

    fields: ClassVar[tuple[Field, ...]] = (Field("u"),)
    factor: float = parameter(1.0)

    def residual(self, u, d):
        (x, y), slopes = d.coordinates, d.gradient(u.u)
        a = 1.0 + self.factor * x * y
        return {"u": -(a * d.laplacian(u.u)) - self.factor * (y * slopes[0] + x * slopes[1]) - 1.0}


@equation
class Downstream(Steady):
    """A first derivative and nothing else: no second condition can hold."""

    fields: ClassVar[tuple[Field, ...]] = (Field("u"),)
    rate: float = parameter(1.0)

    def residual(self, u, d):
        return {"u": d.partial(u.u, 0) + self.rate * u.u - 1.0}


def test_what_works():
    """The control: the same problem without a fault. That heat works is seen among the orders."""
    assert np.isfinite(solve(poisson(), ELEMENTS, Galerkin()).fields["u"]).all()


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (make_problem(Expanded(1.0), MESH, boundary=FIXED), "not in divergence form"),
        (heat(equation=CahnHilliard()), "not in divergence form"),
    ],
)
def test_equations_that_are_not_in_divergence_form(problem, words):
    method, times = (TrBdf2(dt=0.5), [1.0]) if problem.is_evolution else (Galerkin(), None)
    with pytest.raises(ConfigError, match=words):
        solve(problem, ELEMENTS, method, times=times)


def test_the_calculus_names_what_it_cannot_read():
    d = WeakForm(jnp.zeros((1, 1, 2)))
    x, y = d.coordinates
    flux = d.laplacian(x * y)
    assert isinstance(2.0 * flux - x + 1.0, Weak) and isinstance(1.0 - flux, Weak)
    for wrong in (
        lambda: flux * x,
        lambda: x / flux,
        lambda: flux**2,
        lambda: d.map(jnp.sin, flux),
        lambda: d.laplacian(flux),
        lambda: d.partial(x, 0, 3),
        lambda: d.values(flux),
        lambda: d.divergence((flux, x)),
        lambda: d.gradient(d.sample(zero)),
    ):
        with pytest.raises(ConfigError, match="not in divergence form"):
            wrong()
    with pytest.raises(ConfigError, match="no time derivative"):
        d.dt(x)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: solve(poisson(), Elements(rectangle(cells=(3, 3)), 1), Galerkin()), "same mesh"),
        (lambda: solve(poisson(), Grid(LINE, (8,)), Galerkin()), "same mesh"),
        (lambda: solve(poisson(), ELEMENTS, Direct()), "which this method does not solve"),
        (lambda: solve(heat(), ELEMENTS, Galerkin()), "which this method does not solve"),
        (lambda: solve(heat(), ELEMENTS, TrBdf2()), "needs the times"),
        (lambda: solve(poisson(), ELEMENTS, Galerkin(), times=[1.0]), "has none"),
        (lambda: solve(poisson(), ELEMENTS, Galerkin(linear_solver="magic")), "no such linear solver"),
        (lambda: solve(make_problem(Downstream(), MESH, boundary=OPEN), ELEMENTS, Galerkin()), "has no flux"),
        (lambda: solve_batch(stack([poisson()]), ELEMENTS, Galerkin()), "does not work with meshes"),
        (lambda: poisson({"x-": dirichlet(0.0), "hole": neumann(0.0)}), "missing"),
        (lambda: poisson(FIXED | {"x-": {"v": dirichlet(0.0)}}), "do not match the fields"),
        (lambda: TrBdf2(dt=0.0), "positive"),
        (lambda: make_problem(Poisson(1.0), LINE, boundary={"x-": inflow(1.0), "x+": dirichlet()}), "for meshes"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(call, words):
    with pytest.raises(ConfigError, match=words):
        call()


def test_singular_systems_are_named():
    """Rigid motions."""
    free = make_problem(Elasticity(1.0, 1.0, 0.0, 0.0), MESH, boundary={face: inflow(0.0) for face in MESH.faces})
    with pytest.raises(NumericalError, match="singular, or its values are not finite"):
        solve(free, ELEMENTS, Galerkin())


def test_conjugate_gradients_name_an_indefinite_matrix():
    problem = poisson(FIXED | {"x+": robin(-40.0, 1.0, 0.0)})
    assert np.isfinite(solve(problem, ELEMENTS, Galerkin()).fields["u"]).all()
    with pytest.raises(NumericalError, match="singular|did not converge"):
        solve(problem, ELEMENTS, Galerkin(linear_solver="conjugate_gradients"))


def test_every_node_fixed():
    mesh = rectangle(cells=(1, 1))
    problem = make_problem(Poisson(1.0), mesh, boundary={face: dirichlet(0.0) for face in mesh.faces})
    with pytest.raises(ConfigError, match="every node"):
        solve(problem, Elements(mesh, 1), Galerkin())


def test_petsc_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "petsc4py", None)
    with pytest.raises(ConfigError, match="needs petsc4py") as caught:
        need_petsc()
    assert "pip install petsc" in caught.value.fix
    with pytest.raises(ConfigError, match="needs petsc4py"):
        solve(poisson(), ELEMENTS, Galerkin(linear_solver="petsc"))


@pytest.mark.parametrize(
    ("permeability", "words"),
    [
        (np.ones(4), r"'permeability' does not have one value per node.*\(9,\)"),
        (-1.0, "'permeability'"),
        (lambda x: jnp.log(x[0] - 0.5), "'permeability' is not finite.* at x = 0, y = 0"),
        (np.linspace(-0.1, 1.0, 9), r"'permeability'.* at x = 0, y = 0"),
    ],
)
def test_coefficients_are_checked(permeability, words):
    solve(make_problem(Darcy(np.linspace(0.1, 1.0, 9), 1.0), MESH, boundary=FIXED), ELEMENTS, Galerkin())
    with pytest.raises(ConfigError, match="(?s)" + words):
        solve(make_problem(Darcy(permeability, 1.0), MESH, boundary=FIXED), ELEMENTS, Galerkin())
