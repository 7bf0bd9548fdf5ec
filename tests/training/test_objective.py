"""Residual rows, their names and weights, and the normal equations made from them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_close
from flax import nnx
from jax.flatten_util import ravel_pytree
from jax.sharding import PartitionSpec as P
from tiny_models import Curve, TinyFourier, TinyMLP, field_batch, pins, scalar_batch

from sciml.errors import ConfigError
from sciml.metrics import sample_errors
from sciml.parallel.layout import Layout
from sciml.parallel.losses import loss_functions
from sciml.parallel.plan import Plan
from sciml.training.objective import Data, Weighted
from sciml.training.state import cast, parameters, with_parameters


def test_relative_rows_have_the_squared_relative_error_as_mean_square():
    model, batch = TinyFourier(nnx.Rngs(0)), field_batch()
    rows = Data(("u",)).residuals(model, batch)["u"]
    prediction = jax.vmap(lambda u0: model({"u0": u0})["u"])(batch["u0"])
    assert_close(np.mean(rows**2), np.mean(sample_errors(prediction, batch["u"]) ** 2), rtol=1e-13)


def test_absolute_rows_are_divided_by_their_scale():
    model, batch = TinyMLP(nnx.Rngs(0)), scalar_batch()
    plain = Data(("y",), relative=False).residuals(model, batch)["y"]
    scaled = Data(("y",), relative=False, scales=(4.0,)).residuals(model, batch)["y"]
    assert_close(4.0 * scaled, plain, rtol=1e-15)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_a_zero_truth_gives_the_plain_error(precision):
    model, batch = TinyFourier(nnx.Rngs(0)), field_batch()
    model = with_parameters(model, cast(parameters(model), precision))
    batch = cast({**batch, "u": np.zeros_like(batch["u"])}, precision)
    rows = Data(("u",)).residuals(model, batch)["u"]
    prediction = jax.vmap(lambda u0: model({"u0": u0})["u"])(batch["u0"])
    assert rows.dtype == jnp.dtype(precision)
    assert_close(rows, prediction, rtol=1e-5)


def test_weighted_sums_name_and_scale_their_terms():
    model = TinyMLP(nnx.Rngs(0))
    goal = Weighted({"fit": (Data(("y",), relative=False, inputs=("a", "b")), 4.0), "curve": (Curve(), 0.25)})
    batch = goal.prepare(scalar_batch() | pins(), jax.random.key(0))
    rows = goal.residuals(model, batch)
    assert list(rows) == ["fit", "curve/inside", "curve/pins"]
    alone = Data(("y",), relative=False, inputs=("a", "b")).residuals(model, batch)["y"]
    assert_close(rows["fit"], 2.0 * alone, rtol=1e-15)


@pytest.mark.parametrize("terms", [{}, {"a": (Data(("y",)), 0.0)}, {"a": (Data(("y",)), float("nan"))}])
def test_a_sum_without_positive_weights_is_refused(terms):
    with pytest.raises(ConfigError, match="positive weights"):
        Weighted(terms)


def test_missing_entries_and_wrong_shapes_are_named():
    model, batch = TinyMLP(nnx.Rngs(0)), scalar_batch()
    with pytest.raises(ConfigError, match="lacks entries") as caught:
        Data(("z",)).residuals(model, batch)
    assert "z" in str(caught.value)
    with pytest.raises(ConfigError, match="shape of the data"):
        Data(("y",)).residuals(model, {**batch, "y": np.zeros((16, 2))})


def _in_plan(plan, model, function, residuals, params, batch):
    """Call `function(loss_functions, params)` inside the plan's shard_map."""
    inside = jax.shard_map(
        lambda p, b: function(loss_functions(residuals, b, Layout.of(model, plan)), p),
        mesh=plan.mesh(),
        in_specs=(P(), P("data") if plan.data > 1 else P()),
        out_specs=P(),
    )
    return jax.jit(inside)(params, batch)


@pytest.mark.parametrize("plan", [Plan(), Plan(data=4), Plan(data=2, accumulate=2)])
def test_normal_equations_and_curvature_are_those_of_the_whole_residual(plan):
    """Against dense differentiation of the stacked residual vector; rounding only."""
    model, objective = TinyMLP(nnx.Rngs(0)), Curve()
    batch = objective.prepare(pins(), jax.random.key(0))
    graphdef, params, constants = nnx.split(model, nnx.Param, ...)
    flat, unravel = ravel_pytree(params)

    def residuals(leaves, rows):
        return objective.residuals(nnx.merge(graphdef, leaves, constants), rows)

    def whole(vector):
        return jnp.concatenate([r / r.size**0.5 for r in residuals(unravel(vector), batch).values()])

    jacobian = jax.jacfwd(whole)(flat)
    system = _in_plan(plan, model, lambda f, p: f.normal_equations(p), residuals, params, batch)
    assert_close(system.matrix, jacobian.T @ jacobian, rtol=1e-11, atol=1e-13)
    assert_close(system.gradient, jacobian.T @ whole(flat), rtol=1e-11, atol=1e-13)
    assert_close(system.loss, jnp.sum(whole(flat) ** 2), rtol=1e-13)
    direction = jnp.cos(jnp.arange(flat.size, dtype=float))
    second = jax.jvp(lambda v: jax.jvp(whole, (v,), (direction,))[1], (flat,), (direction,))[1]
    bend = _in_plan(plan, model, lambda f, p: f.curvature(p, unravel(direction)), residuals, params, batch)
    assert_close(bend, jacobian.T @ second, rtol=1e-11, atol=1e-12)
    (_, _), gradient = _in_plan(plan, model, lambda f, p: f.value_and_grad(p), residuals, params, batch)
    assert_close(ravel_pytree(gradient)[0], 2.0 * jacobian.T @ whole(flat), rtol=1e-11, atol=1e-13)


def test_the_gradient_of_a_complex_parameter_points_uphill():
    model, batch = TinyFourier(nnx.Rngs(0)), field_batch()
    graphdef, params, _ = nnx.split(model, nnx.Param, ...)

    def residuals(leaves, rows):
        return Data(("u",)).residuals(nnx.merge(graphdef, leaves), rows)

    def both(functions, p):
        (loss, _), gradient = functions.value_and_grad(p)
        moved = jax.tree.map(lambda leaf, g: leaf - 1e-6 * g, p, gradient)
        square = sum(jnp.sum(jnp.abs(g) ** 2) for g in jax.tree.leaves(gradient))
        return (loss - functions.value(moved)[0]) / 1e-6, square

    slope, expected = _in_plan(Plan(), model, both, residuals, params, batch)
    assert_close(slope, expected, rtol=1e-3)  # first order: curvature times the length 1e-6


def test_rows_that_belong_to_nothing_are_refused_by_least_squares():
    model = TinyMLP(nnx.Rngs(0))
    graphdef, params, constants = nnx.split(model, nnx.Param, ...)

    def reduced(leaves, rows):
        y = Data(("y",), relative=False).residuals(nnx.merge(graphdef, leaves, constants), rows)["y"]
        return {"y": y.reshape(8, 2).sum(1)}

    with pytest.raises(ConfigError, match="rows belong to rows"):
        _in_plan(Plan(), TinyMLP(nnx.Rngs(0)), lambda f, p: f.normal_equations(p).loss, reduced, params, scalar_batch())
