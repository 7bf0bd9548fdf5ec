"""The transformer operator: grids of one to three axes, symmetry, words for what does not fit, and its experts."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_close
from flax import nnx
from tiny_transformers import rows, transformer

from sciml.errors import ConfigError
from sciml.operators.attention import attend_here, places, turned
from sciml.operators.experts import Experts, room_of, route
from sciml.operators.transformer import Transformer, cut, joined
from sciml.spec import Spec, Statistics, Variable


def _steady(shape: tuple[int, ...], periodic: tuple[str, ...] = ()) -> Spec:
    names = tuple("xyz"[: len(shape)])
    return Spec(
        inputs=(Variable("a", shape=shape, axes=names),),
        outputs=(Variable("u", shape=shape, axes=names),),
        coordinates={name: tuple(np.linspace(0, 1, n)) for name, n in zip(names, shape, strict=True)},
        periodic=periodic,
    )


def _build(spec: Spec, **options):
    table = {v.name: Statistics(0.0, 1.0, -2.0, 2.0) for v in (*spec.inputs, *spec.outputs)}
    options = {"width": 8, "heads": 2, "layers": 1, "waves": 2, "projection": 8, **options}
    return nnx.jit(Transformer(**options).build(spec, table, seed=0))


@pytest.mark.parametrize(("shape", "patch"), [((12,), (3,)), ((6, 9), (2, 3)), ((4, 6, 2), (2, 3, 1))])
def test_grids_of_any_number_of_axes(shape, patch):
    model = _build(_steady(shape), patch=patch)
    assert model({"a": jnp.ones(shape)})["u"].shape == shape
    field = np.random.default_rng(0).normal(size=(*shape, 2))
    tokens = cut(field, patch)
    assert tokens.shape == (*(n // p for n, p in zip(shape, patch, strict=True)), 2 * np.prod(patch))
    np.testing.assert_array_equal(joined(tokens, patch), field)
    first = field[tuple(slice(p) for p in patch)]
    np.testing.assert_array_equal(tokens[(0,) * len(shape)], first.reshape(-1))


def test_shifts_by_a_patch_commute_on_a_periodic_axis():
    """Rounding only: no token knows where it is."""
    model, sample = nnx.jit(transformer()), {name: v[0] for name, v in rows(1).items()}
    shifted = {**sample, "u0": np.roll(sample["u0"], 6)}
    assert_close(model(shifted)["u"], jnp.roll(model(sample)["u"], 6, axis=1), rtol=1e-11, atol=1e-12)


def test_it_starts_as_a_linear_map_within_patches():
    """Before training no token has seen another one."""
    model = _build(_steady((12,)), patch=(3,), dtype="float64")
    u, v = (np.random.default_rng(i).normal(size=12) for i in (0, 1))
    zero = model({"a": 0 * u})["u"]
    both = model({"a": u + v})["u"]
    assert_close(both - zero, model({"a": u})["u"] + model({"a": v})["u"] - 2 * zero, rtol=1e-12, atol=1e-13)
    changed = model({"a": np.where(np.arange(12) < 3, v, u)})["u"]
    assert_close(changed[3:], model({"a": u})["u"][3:], rtol=1e-14)


def test_distance_is_a_fourier_series():
    marks, angles = places((6,), (True,), 2), 2 * np.pi * np.outer(np.arange(6) / 6, [1, 2])
    near = np.random.default_rng(0).normal(size=(6, 1, 2, 2))
    products = np.einsum("qhc,kc->qk", turned(near, marks), marks)
    difference = angles[:, None] - angles[None]
    series = np.cos(difference) * near[:, 0, 0][:, None] + np.sin(difference) * near[:, 0, 1][:, None]
    assert_close(products, np.sum(series, -1), rtol=1e-12, atol=1e-13)


def test_attention_averages_values():
    """Equal logits give the mean, one large logit gives one value."""
    value = np.random.default_rng(0).normal(size=(5, 1, 3))
    zero = np.zeros((5, 1, 2))
    assert_close(attend_here(zero, zero, value)[0], value.mean(0), rtol=1e-12)
    key = zero.copy()
    key[3] = 500.0
    assert_close(attend_here(zero + 1.0, key, value)[0], value[3], rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"patch": (5,)}, "along x one of"),
        ({"patch": (2, 2, 2)}, "1 or 2 numbers"),
        ({"patch": (3, 2), "heads": 3}, "heads: one of"),
        ({"patch": (3, 2), "experts": 2, "groups": 5}, "groups: one of"),
        ({"patch": (3, 2), "experts": 1, "chosen": 2}, "more experts than there are"),
    ],
)
def test_what_does_not_fit_is_said(options, message):
    with pytest.raises(ConfigError, match=message):
        _build(_steady((9, 8)), **options)({"a": jnp.ones((9, 8))})


def _experts(**options) -> Experts:
    settings = {"chosen": 1, "groups": 2, "capacity": 1.0, "activation": "gelu", **options}
    return Experts(4, 3, 3, **settings, gain=1.0, dtype=jnp.float64, rngs=nnx.Rngs(0))


def test_a_full_expert_takes_no_more():
    """All tokens want expert 0, which has room for two; the others pass by."""
    chances = jnp.tile(jnp.asarray([[0.7, 0.2, 0.1]]), (4, 1))
    first = route(chances, 1, 2)
    assert first.places[:, 0].tolist() == [0, 1, 6, 6]
    np.testing.assert_array_equal(first.weights[:, 0], [0.7, 0.7, 0.0, 0.0])
    both = route(chances, 2, 2)
    assert both.places.tolist() == [[0, 2], [1, 3], [6, 6], [6, 6]]
    assert_close(both.weights[0], np.asarray([0.7, 0.2]) / 0.9, rtol=1e-14)


def test_first_choices_go_before_second_ones():
    """Token 0 has expert 1 as its second choice, token 1 as its first one: token 1 gets the only place."""
    found = route(jnp.asarray([[0.6, 0.4, 0.0], [0.1, 0.8, 0.1]]), 2, 1)
    assert found.places[1, 0] == 1 and found.places[0, 1] == 3


@pytest.mark.parametrize("chosen", [1, 2])
@pytest.mark.parametrize("capacity", [3.0, 0.5])
def test_experts_are_all_perceptrons_weighted_by_their_use(chosen, capacity):
    """The dense reference: every expert on every token, times the weight that routing gave it; gradients too."""
    layer = _experts(chosen=chosen, capacity=capacity)
    x = jnp.asarray(np.random.default_rng(1).normal(size=(12, 4)))
    graph, params = nnx.split(layer)

    def dense(params, x):
        layer = nnx.merge(graph, params)
        chances = jax.nn.softmax(layer.router(x), -1).reshape(2, 6, 3)
        room = room_of(6, 3, chosen, capacity)
        routes = jax.vmap(lambda p: route(p, chosen, room))(chances)
        used = jax.nn.one_hot(routes.places // room, 3) * routes.weights[..., None]
        inner = jnp.einsum("td,ednh->neth", x, layer.inner[...])
        every = jnp.einsum("eth,ehd->etd", jax.nn.gelu(inner[0], approximate=False) * inner[1], layer.outer[...])
        return jnp.einsum("te,etd->td", used.sum(2).reshape(12, 3), every)

    def value_and_slopes(function):
        def loss(params, x):
            result = function(params, x)
            return jnp.sum(jnp.sin(result)), result

        return jax.jit(jax.value_and_grad(loss, (0, 1), has_aux=True))(params, x)

    sparse = value_and_slopes(lambda params, x: nnx.merge(graph, params)(x)[0])
    assert_close(sparse, value_and_slopes(dense), rtol=1e-11, atol=1e-13)
    dropped = int(jnp.sum(jnp.all(sparse[0][1] == 0, -1)))
    assert (dropped > 0) == (capacity < 1), dropped


def test_balance_is_zero_for_an_even_router_and_asked_for_in_training():
    layer = _experts()
    layer.router.weight[...] = jnp.zeros_like(layer.router.weight[...])
    assert_close(nnx.jit(layer)(jnp.ones((12, 4)))[1], np.zeros(2), rtol=0, atol=1e-15)
    layer.router.bias[...] = jnp.asarray([50.0, 0.0, 0.0])
    assert_close(nnx.jit(layer)(jnp.ones((12, 4)))[1], np.full(2, 2.0), rtol=1e-12)
    model = transformer(experts=4, groups=2)
    inputs = {name: v for name, v in rows(3).items() if name != "u"}
    assert {n: v.shape for n, v in jax.eval_shape(model.predict_batch, inputs).items()} == {
        "u": (3, 2, 16),
        "penalty/balance": (3, 2),
    }
    assert set(jax.eval_shape(model, {name: v[0] for name, v in inputs.items()})) == {"u"}
