"""Finite elements: orders, exact solutions on domains with holes, gradients, one text for boxes and meshes."""

from __future__ import annotations

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_close

from sciml.boundary import dirichlet, inflow, neumann, robin
from sciml.equations import AllenCahn, Darcy, Field, Heat, Steady, equation, parameter
from sciml.geometry import brick, rectangle, ring
from sciml.problem import make_problem, manufactured
from sciml.solvers import integrate, published_mesh, solve
from sciml.solvers.finite_element import LINEAR_SOLVERS, Elements, Galerkin, TrBdf2


@equation
class Cubic(Steady):
    """-lap u + r u^3 + sin u + u_x = f: nonlinear, not symmetric."""

    fields: ClassVar[tuple[Field, ...]] = (Field("u"),)
    rate: float = parameter(2.0)

    def residual(self, u, d):
        reaction = self.rate * u.u * u.u * u.u + d.map(jnp.sin, u.u)
        return {"u": -d.laplacian(u.u) + reaction + d.partial(u.u, 0)}


def wave(x):
    return jnp.sin(2.0 * x[0] + 0.3) * jnp.cos(x[1])


ROWS = {
    function.__name__: function
    for function in (
        published_mesh.orders_of_elements,
        published_mesh.orders_of_displacements,
        published_mesh.domain_with_a_hole,
        published_mesh.convergence_at_the_hole,
        published_mesh.cooling_of_a_ring,
    )
}


@pytest.mark.parametrize(
    "name", ["patch", "plate_with_a_hole", *(pytest.param(name, marks=pytest.mark.slow) for name in ROWS)]
)
def test_known_values_and_orders(name):
    rows = list(getattr(published_mesh, name)())
    assert rows and all(row.holds for row in rows), "\n".join(row.text for row in rows)


@pytest.mark.slow
def test_order_of_quadratic_triangles():
    """Slope of the error over four meshes; rounding is far below the smallest of 1e-6."""
    found = published_mesh.errors(published_mesh.poisson_on, [rectangle(cells=(n, n)) for n in (3, 5, 8, 12)], 2)
    assert abs(published_mesh.observed_order([1 / 3, 1 / 5, 1 / 8, 1 / 12], found) - 3.0) < 0.2


def permeability(x):
    return 3.0 + x[0] * x[1]


def on_a_ring(forcing=1.0, inner=0.5):
    mesh = ring(1.0, 2.0, (2, 12))
    flow = {"inner": inflow(inner), "outer": robin(2.0, 1.0, 0.3)}
    return make_problem(Darcy(permeability, forcing), mesh, boundary=flow), Elements(mesh, 2)


def test_gradients_equal_differences():
    """With respect to a source, a flux through the boundary and the value of the coefficient at every node."""
    problem, elements = on_a_ring()
    at_nodes = jax.vmap(permeability)(jnp.asarray(elements.nodes))

    @jax.jit
    def response(forcing, inner, coefficient):
        flow = {"inner": inflow(inner), "outer": robin(2.0, 1.0, 0.3)}
        changed = make_problem(Darcy(coefficient, forcing), problem.domain, boundary=flow)
        return jnp.sum(integrate(changed, elements, Galerkin())["u"] ** 2)

    point = (jnp.asarray(1.0), jnp.asarray(0.5), at_nodes)
    found = jax.grad(response, argnums=(0, 1, 2))(*point)
    direction = (1.0, -0.7, jnp.sin(jnp.arange(len(at_nodes))))
    step = 1e-4
    ahead, behind = ([p + s * step * d for p, d in zip(point, direction, strict=True)] for s in (1, -1))
    difference = (response(*ahead) - response(*behind)) / (2 * step)
    along = sum(jnp.sum(g * d) for g, d in zip(found, direction, strict=True))
    assert_close(along, difference, rtol=1e-7)  # truncation 1e-8, rounding 1e-11


def test_nonlinear_problems_and_their_gradients():
    """Newton's method reaches the manufactured solution; the derivative is that of the solution, not of the steps."""
    mesh = rectangle(cells=(6, 6))
    elements = Elements(mesh, 2)
    problem = manufactured(Cubic(), mesh, {"u": wave})
    exact = np.asarray(jax.vmap(wave)(jnp.asarray(elements.nodes)))

    @jax.jit
    def solved(rate):
        changed = make_problem(Cubic(rate), mesh, boundary=problem.boundary, source=problem.source)
        return integrate(changed, elements, Galerkin())["u"]

    assert_close(solved(2.0), exact, rtol=0.0, atol=0.1 / 6**3, dtype=False)  # of order h^3
    found = jax.jit(jax.grad(lambda rate: jnp.sum(solved(rate))))(2.0)
    difference = jnp.sum(solved(2.001) - solved(1.999)) / 0.002
    assert_close(found, difference, rtol=1e-6)


def quadratic(x, t):
    """In the space of P2 elements at all times: what is left is the error in time."""
    return (1.0 + x[0] ** 2 - x[0] * x[1]) * jnp.cos(3.0 * t)


def test_order_in_time_with_moving_boundary_values(no_recompilation):
    mesh = rectangle(cells=(2, 2))
    problem, elements = manufactured(Heat(0.4), mesh, {"u": quadratic}, horizon=1.0), Elements(mesh, 2)
    exact = np.asarray([jax.vmap(lambda x, t=t: quadratic(x, t))(jnp.asarray(elements.nodes)) for t in (0.5, 1.0)])
    steps, errors = (0.1, 0.05, 0.025, 0.0125), []
    solve(problem, elements, TrBdf2(dt=0.5), times=(0.5, 1.0))
    with no_recompilation():
        for dt in steps:
            found = solve(problem, elements, TrBdf2(dt=dt), times=(0.5, 1.0))
            errors.append(np.abs(np.asarray(found.fields["u"]) - exact).max())
    assert found.steps == 40
    assert abs(published_mesh.observed_order(steps, np.asarray(errors)) - 2.0) < 0.15


@pytest.mark.slow
def test_a_nonlinear_evolution_and_its_gradient():
    """Allen-Cahn in a closed domain from a uniform start: u' = r (u - u^3), a Bernoulli equation."""
    mesh = rectangle(cells=(2, 2))
    elements = Elements(mesh, 1)
    closed = {face: neumann(0.0) for face in mesh.faces}

    def final(rate):
        start = {"u": jnp.full(elements.shape, 0.3)}
        problem = make_problem(AllenCahn(0.1, rate), mesh, boundary=closed, initial=start, horizon=1.0)
        return integrate(problem, elements, TrBdf2(dt=0.05), times=[1.0])["u"][0, 0]

    value, slope = jax.jit(jax.value_and_grad(final))(1.5)
    exact, above, below = (0.3 / np.sqrt(0.09 + 0.91 * np.exp(-2 * rate)) for rate in (1.5, 1.501, 1.499))
    assert_close(value, exact, rtol=2e-4, dtype=False)
    assert_close(slope, (above - below) / 0.002, rtol=2e-3, dtype=False)


@pytest.mark.parametrize("name", sorted(LINEAR_SOLVERS))
def test_linear_solvers_agree(name):
    """In space, with conditions of all three kinds; the direct solver is the control."""
    if name == "petsc":
        pytest.importorskip("petsc4py", reason="petsc4py is not installed")
    mesh = brick(cells=(2, 2, 2))
    conditions = {face: dirichlet(0.0) for face in mesh.faces} | {"x+": neumann(1.0), "z-": robin(1.0, 2.0, 0.5)}
    problem, elements = make_problem(Darcy(permeability, 1.0), mesh, boundary=conditions), Elements(mesh, 1)
    found = solve(problem, elements, Galerkin(linear_solver=name)).fields["u"]
    assert_close(found, solve(problem, elements, Galerkin()).fields["u"], rtol=1e-9, atol=1e-11)


def test_meshes_with_equal_contents_share_a_program(no_recompilation):
    problem, elements = on_a_ring()
    first = solve(problem, elements, Galerkin()).fields["u"]
    again, other = on_a_ring(forcing=2.0)
    with no_recompilation():
        second = solve(again, other, Galerkin()).fields["u"]
    assert float(jnp.abs(second - first).max()) > 1e-3


def test_values_integrals_and_slopes_of_a_field():
    """Of a quadratic function, which P2 elements hold exactly, on straight cells."""
    elements = Elements(published_mesh.uneven_square(), 2)
    x, y = elements.nodes.T
    assert_close(elements.integral(x * y), 0.25, rtol=1e-12)
    assert_close(elements.at(x * y, [[0.3, 0.7], [1.0, 1.0]]), np.asarray([0.21, 1.0]), rtol=1e-12)
    curved = Elements(ring(1.0, 2.0, (2, 12)), 2)
    around = 1.5 * np.stack([np.cos(np.arange(9.0)), np.sin(np.arange(9.0))], axis=1)
    assert_close(curved.at(curved.nodes[:, 0], around), around[:, 0], rtol=0.0, atol=1e-12)
    assert_close(elements.nodal_slopes(x * y), np.stack([y, x], axis=1), rtol=0.0, atol=1e-12)


@pytest.mark.slow
def test_families_by_vmap():
    """Two forcings at once are the two solutions; the problem is linear in its data."""
    problem, elements = on_a_ring()

    def solved(forcing):
        changed = make_problem(Darcy(permeability, forcing), problem.domain, boundary=problem.boundary)
        return integrate(changed, elements, Galerkin())["u"]

    family = jax.jit(jax.vmap(solved))(jnp.asarray([1.0, 3.0]))
    assert_close(family[0], solve(problem, elements, Galerkin()).fields["u"], rtol=1e-10, atol=1e-12)
    nothing = make_problem(Darcy(permeability, 0.0), problem.domain, boundary=problem.boundary)
    base = solve(nothing, elements, Galerkin()).fields["u"]
    assert_close(family[1] - base, 3.0 * (family[0] - base), rtol=1e-10, atol=1e-12)
