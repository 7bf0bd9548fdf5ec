"""The residual at points: against the exact solution, a formula by hand, and differences of the loss."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from comparison import assert_close
from jax.flatten_util import ravel_pytree

from sciml.boundary import dirichlet
from sciml.calculus.pointwise import Pointwise
from sciml.domain import Box
from sciml.equations.darcy import Darcy
from sciml.errors import ConfigError
from sciml.pinn.model import PINNConfig
from sciml.pinn.objectives import POINTS, PointResidual
from sciml.pinn.sampling import spread_points
from sciml.pinn.scales import residual_sizes, steady_field_sizes
from sciml.problem import make_problem
from sciml.training.state import parameters, with_parameters

SQUARE = Box((0.0, 0.0), (1.0, 1.0), (False, False))


def test_the_exact_solution_leaves_nothing(heat):
    d = Pointwise(1, has_time=True)
    residual = d.values(heat.problem.residual({"u": d.field(heat.exact)}, d)["u"])
    rows = jax.jit(jax.vmap(residual))(spread_points(jax.random.key(0), heat.problem, 50))
    assert_close(rows, jnp.zeros(50), rtol=0, atol=1e-12)  # terms up to 20, rounding


def test_rows_are_those_written_by_hand(heat):
    model = heat.network(guess=0.07)
    objective = PointResidual(heat.problem, 20, {"u": 4.0})
    batch = objective.prepare({}, jax.random.key(0))

    def by_hand(z):
        u_t = jax.grad(lambda z: model.network(z)[0])(z)[1]
        u_xx = jax.hessian(lambda z: model.network(z)[0])(z)[0, 0]
        return (u_t - 0.07 * u_xx) / 4.0  # the guess, not the true 0.04

    rows = jax.jit(lambda batch: objective.residuals(model, batch)["u"])(batch)
    assert_close(rows, jax.jit(jax.vmap(by_hand))(batch[POINTS]), rtol=1e-10, atol=1e-10)


def test_a_known_coefficient_is_that_of_the_problem(heat):
    assert heat.network(unknown=()).coefficients() == {}
    problem = heat.network(unknown=()).problem(heat.problem)
    assert_close(problem.equation.diffusivity, heat.problem.equation.diffusivity, rtol=0)


def test_gradient_of_the_loss_is_that_of_differences(heat):
    """With respect to network and unknown; the difference of step 1e-5 has an error of order 1e-10."""
    model, objective = heat.network(), heat.objective(points=30)
    batch = objective.prepare(heat.readings(), jax.random.key(0))
    flat, unravel = ravel_pytree(parameters(model))

    @jax.jit
    def loss(vector):
        rows = objective.residuals(with_parameters(model, unravel(vector)), batch)
        return sum(jnp.mean(values**2) for values in rows.values())

    gradient = jax.jit(jax.grad(loss))(flat)
    place = _place_of_the_unknown(model, unravel)
    for i in (place, 0, flat.size // 2, flat.size - 1):
        step = jnp.zeros(flat.size).at[i].set(1e-5)
        difference = (loss(flat + step) - loss(flat - step)) / 2e-5
        assert_close(gradient[i], difference, rtol=1e-6, atol=1e-6 * float(jnp.max(jnp.abs(gradient))))
    assert abs(float(gradient[place])) > 0


def _place_of_the_unknown(model, unravel):
    """Index of the logarithm of the diffusivity among the flattened parameters."""
    size = ravel_pytree(parameters(model))[0].size
    tagged = unravel(jnp.arange(size, dtype=jnp.float64))
    return int(with_parameters(model, tagged).logarithms["diffusivity"][...])


def test_a_batch_of_points_is_points_one_by_one(heat):
    model = heat.network()
    x, t = jnp.linspace(0.0, 1.0, 5), jnp.linspace(0.2, 1.0, 5)
    together = jax.jit(jax.vmap(lambda x, t: model({"x": x, "t": t})["u"]))(x, t)
    singly = jnp.stack([model({"x": a, "t": b})["u"] for a, b in zip(x, t, strict=True)])
    assert_close(together, singly, rtol=1e-13, atol=1e-14)


def test_points_are_even_and_the_same_unless_asked(heat):
    def points(**options):
        return PointResidual(heat.problem, 1000, {"u": 1.0}, **options)

    first, second = (points().prepare({}, jax.random.key(k))[POINTS] for k in (1, 2))
    assert_close(first, second, rtol=0)
    moved = points(resample=True).prepare({}, jax.random.key(2))[POINTS]
    assert float(jnp.max(jnp.abs(moved - first))) > 0.1
    counts = jnp.histogram2d(first[:, 0], first[:, 1], bins=5, range=[[0, 1], [0, 1]])[0]
    assert_close(counts, jnp.full((5, 5), 40.0), rtol=0, atol=8.0, dtype=False)  # random points: +-20
    early = points(early=20.0).prepare({}, jax.random.key(0))[POINTS]
    share = jnp.mean(early[:, 1] < 0.1)
    assert_close(share, jnp.log1p(2.0) / jnp.log1p(20.0), rtol=0.05, dtype=False)


def test_sizes_of_a_steady_problem_follow_its_coefficients():
    """A half wave of amplitude A leaves -div(a grad u) of size a 2 pi^2 A/2 in two dimensions."""
    problem = make_problem(Darcy(5.0, 3.0), SQUARE, boundary=dict.fromkeys(SQUARE.faces, dirichlet(0.0)))
    size = steady_field_sizes(problem)["u"]
    assert_close(size, 3.0 / (5.0 * jnp.pi**2), rtol=0.05, dtype=False)  # 256 points instead of the integral
    assert residual_sizes(problem, {"u": size})["u"] == pytest.approx(3.0)
    assert residual_sizes(problem, {"u": 10 * size})["u"] == pytest.approx(30.0)


@pytest.mark.parametrize(
    ("unknown", "guess", "message"),
    [
        (("viscosity",), 0.03, "not a number in the equation"),
        (("diffusivity",), 0.0, "needs a positive first guess"),
        (("diffusivity",), -0.03, "needs a positive first guess"),
    ],
)
def test_impossible_unknowns_are_refused(heat, unknown, guess, message):
    with pytest.raises(ConfigError, match=message):
        heat.network(unknown=unknown, guess=guess)


def test_a_field_is_not_an_unknown_number():
    equation = Darcy(permeability=lambda x: 1.0 + x[0])
    problem = make_problem(equation, SQUARE, boundary=dict.fromkeys(SQUARE.faces, dirichlet(0.0)))
    with pytest.raises(ConfigError, match="not a number in the equation"):
        PINNConfig(unknown=("permeability",)).build(problem, {"u": (0.0, 1.0)}, {"permeability": 1.0}, seed=0)
