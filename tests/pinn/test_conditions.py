"""What the network keeps exactly, and what it leaves to the loss."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from comparison import assert_close

from sciml.boundary import dirichlet, neumann, robin
from sciml.domain import Box
from sciml.equations.poisson import Poisson
from sciml.errors import ConfigError
from sciml.pinn.model import PINNConfig
from sciml.pinn.objectives import BoundaryResidual
from sciml.problem import make_problem

ROUNDING = 1e-13  # values of order one, some ten operations
SQUARE = Box((0.0, -1.0), (2.0, 1.0), (False, False))


def poisson(condition):
    """Poisson's equation with the same condition on every face."""
    return make_problem(Poisson(), SQUARE, boundary=dict.fromkeys(SQUARE.faces, condition))


def network(problem):
    return PINNConfig(width=6, layers=1).build(problem, {"u": (0.3, 2.0)}, {}, seed=1)


def test_initial_field_is_exact(heat):
    field = heat.network().network
    x = jnp.linspace(0.0, 1.0, 11)[:, None]
    start = jax.jit(jax.vmap(lambda x: field(jnp.append(x, 0.0))))(x)
    assert_close(start[:, 0], jax.vmap(heat.problem.initial["u"])(x), rtol=0, atol=ROUNDING)


def test_a_free_initial_field_is_not_the_given_one(heat):
    start = heat.network(initial="free").network(jnp.asarray([0.3, 0.0]))
    assert abs(float(start[0] - heat.problem.initial["u"](jnp.asarray([0.3])))) > 1e-3


def test_periodic_in_value_and_slope(heat):
    field = heat.network().network

    @jax.jit
    def at(x):
        return jax.jvp(lambda x: field(jnp.stack([x, jnp.asarray(0.4)])), (x,), (1.0,))

    assert_close(at(0.0), at(1.0), rtol=0, atol=100 * ROUNDING)  # slopes carry the wavenumbers, up to 4 pi


@pytest.mark.parametrize("early", [0.0, 20.0])
def test_time_starts_linearly(heat, early):
    """The ramp vanishes at the start with a slope, for both ways of resolving time."""
    field = heat.network(early=early).network
    rate = jax.jvp(field, (jnp.asarray([0.2, 0.0]),), (jnp.asarray([0.0, 1.0]),))[1]
    assert jnp.isfinite(rate).all() and abs(float(rate[0])) > 1e-3


def test_zero_dirichlet_faces_are_exact():
    field = network(poisson(dirichlet(0.0))).network
    edge = jnp.asarray([[0.0, 0.3], [2.0, -0.9], [0.7, -1.0], [1.9, 1.0]])
    assert_close(jax.jit(jax.vmap(field))(edge), jnp.zeros((4, 1)), rtol=0, atol=ROUNDING)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (dirichlet(2.0), lambda u, slope: u - 2.0),
        (neumann(lambda z: z[0]), None),
        (robin(3.0, 0.5, -1.0), lambda u, slope: 3.0 * u + 0.5 * slope + 1.0),
    ],
    ids=["dirichlet", "neumann", "robin"],
)
def test_rows_of_other_faces(condition, expected):
    """alpha u + beta du/dn - value with the outward normal, divided by the scale, on every face."""
    problem = poisson(condition)
    model = network(problem)
    objective = BoundaryResidual(problem, 5, {"u": 2.0})
    batch = objective.prepare({}, jax.random.key(0))
    rows = jax.jit(lambda batch: objective.residuals(model, batch))(batch)
    assert set(rows) == set(SQUARE.faces)
    value_and_gradient = jax.jit(jax.vmap(jax.value_and_grad(lambda z: model.network(z)[0])))
    for face, axis, sign in (("x-", 0, -1.0), ("x+", 0, 1.0), ("y-", 1, -1.0), ("y+", 1, 1.0)):
        z = batch[f"face:{face}"]
        assert_close(z[:, axis], jnp.full(5, (SQUARE.upper if sign > 0 else SQUARE.lower)[axis]), rtol=0)
        u, gradient = value_and_gradient(z)
        slope = sign * gradient[:, axis]
        wanted = slope - z[:, 0] if expected is None else expected(u, slope)
        assert_close(rows[face][:, 0], wanted / 2.0, rtol=1e-12, atol=ROUNDING)


def test_no_faces_no_boundary_term(heat):
    with pytest.raises(ConfigError, match="boundary term of the loss has no points"):
        BoundaryResidual(heat.problem, 8, {"u": 1.0})
