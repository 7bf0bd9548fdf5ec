"""Tokens and heads spread over devices: attention is that of one device, and sends what the formula says."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_close
from jax.sharding import PartitionSpec as P
from tiny_transformers import assert_same, pairs, parameter_bytes, trained
from volumes import all_to_all_bytes, ring_bytes, tensor_bytes

from sciml import axes
from sciml.axes import Placement
from sciml.errors import ConfigError
from sciml.operators.attention import attend, attend_here
from sciml.parallel.plan import Plan
from sciml.parallel.traffic import bytes_sent, collectives

TOKENS, HEADS, SIZE, ROWS = 16, 4, 3, 2
WIDTH, LAYERS, WAVES, GRID_TOKENS, BATCH = 8, 4, 2, 8, 8


def _inputs() -> tuple[np.ndarray, ...]:
    """Queries, keys and values of two rows; large logits, so that the streaming softmax must rescale."""
    rng = np.random.default_rng(0)
    query, key, value = rng.normal(size=(3, ROWS, TOKENS, HEADS, SIZE))
    return 3 * query, 3 * key, value[..., :2]


def _spread(kind: str, parts: int):
    """The compiled attention and its gradient, tokens over `domain`."""
    placement = Placement({axes.SPACE: ("domain", parts)}, {"attention": kind})

    def on_device(*inputs):
        with axes.placed(placement):
            result, pull = jax.vjp(jax.vmap(attend), *inputs)
            return result, pull(jnp.cos(result))

    spec = P(None, "domain")
    mesh = Plan(domain=parts).mesh()
    function = jax.shard_map(on_device, mesh=mesh, in_specs=(spec,) * 3, out_specs=(spec, (spec,) * 3))
    return jax.jit(function).lower(*_inputs()).compile()


@pytest.mark.parametrize("parts", [2, 4])
@pytest.mark.parametrize("kind", ["ring", "all_to_all"])
def test_spread_attention_is_attention(kind, parts):
    compiled = _spread(kind, parts)
    result, pull = jax.vjp(jax.vmap(attend_here), *_inputs())
    assert_close(compiled(*_inputs()), (result, pull(jnp.cos(result))), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("kind", ["ring", "all_to_all"])
def test_bytes_of_spread_attention(kind):
    """On four devices; with two, XLA sees that the ring's one rotation forward is also the first one backward."""
    parts, compiled = 4, _spread(kind, 4)
    local = [x.nbytes / parts for x in _inputs()]
    expected = {
        "ring": ring_bytes(local[1] + local[2], 1, parts),
        "all_to_all": all_to_all_bytes(sum(local) + local[2], 1, parts),
    }
    assert bytes_sent(compiled.as_text()) == pytest.approx(expected[kind], rel=1e-12)


def test_the_ring_keeps_no_more_than_its_part():
    """Temporary memory of forward and backward: neither all pairs of tokens nor a copy of all keys on a device."""
    spread, whole = (_spread("ring", parts).memory_analysis().temp_size_in_bytes for parts in (8, 1))
    assert spread < 0.3 * whole


def test_heads_that_do_not_divide_are_refused():
    with pytest.raises(ConfigError, match="a multiple of 8 heads"):
        _spread("all_to_all", 8)


def test_patches_that_do_not_divide_a_slab_are_refused():
    with pytest.raises(ConfigError, match="one of 4 slabs"):
        trained(pairs({"patch": (8,)}), pairs({"domain": 4}))


def _gradient_bytes(parts: int, split: tuple[str, ...] = ()) -> float:
    """All-reduce of gradients, loss and gradient norm."""
    return 2 * (parts - 1) / parts * (parameter_bytes({}, split) + 16)


def test_ring_through_the_step():
    """Besides attention: gradients, and the norms of the truth of the relative loss."""
    spread = assert_same({}, {"domain": 4, "attention": "ring"})
    tokens = BATCH * GRID_TOKENS / 4 * 8
    pair = tokens * (2 * WIDTH + 4 * 2 * WAVES)
    norms = 2 * 3 / 4 * BATCH * 8
    expected = ring_bytes(pair, LAYERS, 4) + _gradient_bytes(4) + norms
    assert bytes_sent(spread.program) == pytest.approx(expected, rel=0.01)
    assert {c.kind for c in collectives(spread.program)} == {"collective-permute", "all-reduce"}


def test_all_to_all_through_the_step():
    spread = assert_same({}, {"domain": 4, "attention": "all_to_all"})
    tokens = BATCH * GRID_TOKENS / 4 * 8
    each = tokens * (4 * WIDTH + 2 * 4 * 2 * WAVES)
    expected = all_to_all_bytes(each, LAYERS, 4) + _gradient_bytes(4) + 2 * 3 / 4 * BATCH * 8
    assert bytes_sent(spread.program) == pytest.approx(expected, rel=0.01)
    assert {c.kind for c in collectives(spread.program)} == {"all-to-all", "all-reduce"}


@pytest.mark.parametrize("remat", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_heads_and_widths_over_tensor(remat):
    """Two pairs of products per layer; the inputs of attention are normalized and scaled by the scalars after
    they are spread, so that the gradients of two such scales per row are added too. Besides the layers there
    are two more pairs, of scalars to 32 features and of tokens to patches of two frames."""
    spread = assert_same({}, {"tensor": 2, "remat": remat})
    tokens = BATCH * GRID_TOKENS * WIDTH * 8
    layers = tensor_bytes(tokens, LAYERS, 2, remat=remat, scales=2 * BATCH * WIDTH * 8)
    ends = BATCH * 32 * 8 + BATCH * GRID_TOKENS * 4 * 8 + tokens
    assert bytes_sent(spread.program) == pytest.approx(layers + ends + 8, rel=0.01)
    assert {c.kind for c in collectives(spread.program)} == {"all-reduce"}


def test_space_heads_and_rows_together():
    assert_same({}, {"data": 2, "domain": 2, "tensor": 2})
