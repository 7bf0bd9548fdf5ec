"""A stack of equal blocks is the blocks one after the other, compiled once."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_close
from flax import nnx

from sciml.axes import LAYERS, Placement, placed
from sciml.operators.dense import Dense
from sciml.operators.stack import Stack
from sciml.training.optimizers.muon import matrices
from sciml.training.state import parameters


class Add(nnx.Module):
    """x + tanh(W x + b)."""

    def __init__(self, rngs: nnx.Rngs):
        self.dense = Dense(3, 3, dtype=jnp.float64, rngs=rngs)

    def __call__(self, state):
        return {"x": state["x"] + jnp.tanh(self.dense(state["x"]))}


@pytest.fixture(scope="module")
def stack() -> Stack:
    rngs = nnx.Rngs(0)
    return Stack(lambda: Add(rngs), 4)


def _loop(stack: Stack, x):
    weight, bias = stack.block.dense.weight[...], stack.block.dense.bias[...]
    for w, b in zip(weight, bias, strict=True):
        x = x + jnp.tanh(x @ w + b)
    return x


def test_a_stack_is_a_loop(stack):
    x = np.random.default_rng(0).normal(size=(5, 3))
    assert_close(stack({"x": x[0]})["x"], _loop(stack, x[0]), rtol=1e-13)
    assert_close(stack.batch({"x": x})["x"], _loop(stack, x), rtol=1e-13)
    assert len({tuple(np.ravel(w)) for w in np.asarray(stack.block.dense.weight[...])}) == 4, "layers differ"


def test_recomputation_changes_no_gradient(stack):
    """And each layer's parameters pass through `gather`, once more for the backward pass."""
    graph, params = nnx.split(stack)
    x, calls = jnp.ones((5, 3)), []

    def gather(layer):
        calls.append(jax.tree.map(jnp.shape, layer))
        return layer

    def slope(options):
        with placed(Placement({}, options)):
            return jax.grad(lambda p: jnp.sum(nnx.merge(graph, p).batch({"x": x})["x"] ** 2))(params)

    assert_close(slope({"remat": True, "gather": gather}), slope({}), rtol=1e-13)
    assert {leaf for call in calls for leaf in jax.tree.leaves(call, is_leaf=lambda s: isinstance(s, tuple))} == {
        (3,),
        (3, 3),
    }


def test_layers_are_named_and_stacked_vectors_are_no_matrices(stack):
    leaves = jax.tree.leaves(parameters(stack), is_leaf=lambda leaf: isinstance(leaf, nnx.Variable))
    assert {leaf.get_metadata()["axes"][0] for leaf in leaves} == {LAYERS}
    found = jax.tree.leaves(matrices(parameters(stack)), is_leaf=lambda leaf: leaf is None or hasattr(leaf, "_fields"))
    shapes = [leaf[...].shape for leaf in leaves]
    assert {s: f is not None for s, f in zip(shapes, found, strict=True)} == {(4, 3): False, (4, 3, 3): True}


def test_one_block_is_compiled_however_deep(stack):
    deep = Stack(lambda: Add(nnx.Rngs(0)), 8)
    texts = [str(jax.make_jaxpr(lambda x, s=s: s({"x": x})["x"])(jnp.ones(3))) for s in (stack, deep)]
    assert [text.count("tanh") for text in texts] == [1, 1]
