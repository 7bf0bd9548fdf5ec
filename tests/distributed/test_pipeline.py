"""Layers on devices in a row: both schedules give the gradient of one device, and send what the formula says."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_close
from flax import nnx
from jax.sharding import PartitionSpec as P
from tiny_transformers import assert_same, parameter_bytes, rows, transformer
from volumes import gpipe_bytes, one_f_one_b_bytes

from sciml import axes
from sciml.axes import Placement
from sciml.errors import ConfigError
from sciml.parallel.layout import Layout
from sciml.parallel.pipeline import gpipe, one_f_one_b
from sciml.parallel.plan import Plan
from sciml.parallel.traffic import bytes_sent, collectives

WIDTH, LAYERS = 6, 4


def _params() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = {"in": (2, WIDTH), "layers": (LAYERS, WIDTH, WIDTH), "out": (WIDTH, 1)}
    return {name: rng.normal(size=shape) / WIDTH**0.5 for name, shape in shapes.items()}


def _batch(count: int) -> dict[str, np.ndarray]:
    x, y = np.split(np.random.default_rng(1).normal(size=(count, 3)), [2], axis=1)
    return {"x": x, "y": y}


def _before(params, batch):
    return {"h": batch["x"] @ params["in"]}


def _stage(params, state):
    def layer(h, w):
        return h + jnp.tanh(h @ w), None

    first = axes.varying_like(state["h"], params["layers"])
    return {"h": jax.lax.scan(layer, first, params["layers"])[0]}


def _parts(count):
    return lambda params, state, batch: {"y": jnp.sum((state["h"] @ params["out"] - batch["y"]) ** 2) / count}


def _whole(params, batch):
    return sum(_parts(len(batch["x"]))(params, _stage(params, _before(params, batch)), batch).values())


def _spread(schedule: str, stages: int, microbatches: int, count: int):
    """The compiled loss and gradient, rows over `data` and layers over `pipeline`."""
    plan = Plan(data=2, pipeline=stages)
    specs = {"in": P(), "layers": P("pipeline"), "out": P()}

    def by_gpipe(params, batch):
        def loss(params):
            state = gpipe(lambda s: _stage(params, s), _before(params, batch), microbatches)
            return sum(_parts(count)(params, state, batch).values())

        return jax.value_and_grad(loss)(params)

    def by_one_f_one_b(params, batch):
        parts, gradient = one_f_one_b(_before, _stage, _parts(count), params, batch, microbatches)
        return parts["y"], gradient

    def on_device(params, batch):
        with axes.placed(Placement({axes.LAYERS: ("pipeline", stages)})):
            params = jax.tree.map(lambda leaf: axes.vary(leaf, ["data"]), params)
            schedules = {"gpipe": by_gpipe, "1f1b": by_one_f_one_b}
            return jax.lax.psum(schedules[schedule](params, batch), "data")

    function = jax.shard_map(on_device, mesh=plan.mesh(), in_specs=(specs, P("data")), out_specs=(P(), specs))
    return jax.jit(function).lower(_params(), _batch(count)).compile()


@pytest.mark.parametrize(("stages", "microbatches"), [(2, 4), (4, 2)])
@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_a_schedule_gives_the_gradient_of_one_device(schedule, stages, microbatches):
    loss, gradient = _spread(schedule, stages, microbatches, 16)(_params(), _batch(16))
    whole, slope = jax.value_and_grad(_whole)(_params(), _batch(16))
    assert_close(float(loss), float(whole), rtol=1e-13)
    assert_close(jax.device_get(gradient), jax.device_get(slope), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("microbatches", [2, 8])
def test_bytes_of_the_schedules(microbatches):
    """All but the gradients' own sum over `data`, which this test makes too."""
    stages, count, size = 4, 16, WIDTH * 8
    own = 2 * 0.5 * (8 + sum(v.nbytes / (stages if k == "layers" else 1) for k, v in _params().items()))
    shared = sum(v.nbytes for k, v in _params().items() if k != "layers")
    programs = {name: _spread(name, stages, microbatches, count).as_text() for name in ("gpipe", "1f1b")}
    state = count // 2 * size
    expected = {
        "gpipe": gpipe_bytes(state, state, stages, microbatches),
        "1f1b": one_f_one_b_bytes(state, stages, microbatches, shared=shared + 8),
    }
    for name, text in programs.items():
        assert bytes_sent(text) == pytest.approx(expected[name] + own, rel=0.01), name
        assert {c.kind for c in collectives(text)} == {"collective-permute", "all-reduce"}


def test_kept_activations_grow_with_microbatches_in_gpipe_only():
    """Temporary memory with the same rows per microbatch; with 1F1B it grows by less than a copy of the rows."""
    counts = (4, 16, 64)
    memory = {
        name: [_spread(name, 4, m, 16 * m).memory_analysis().temp_size_in_bytes for m in counts]
        for name in ("gpipe", "1f1b")
    }
    flat, growing = memory["1f1b"], memory["gpipe"]
    rows_here = sum(v.nbytes for v in _batch(16 * counts[-1]).values()) / 2
    assert flat[2] - flat[0] < rows_here, memory
    assert growing[2] - growing[1] == pytest.approx(4 * (growing[1] - growing[0]), rel=0.05), memory
    assert growing[2] - growing[0] > 10 * rows_here, memory


def test_rows_that_do_not_divide_into_microbatches_are_refused():
    with pytest.raises(ConfigError, match="microbatches"):
        _spread("gpipe", 2, 3, 16)


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_a_transformer_in_a_pipeline(schedule):
    """8 rows in 4 microbatches through 4 stages of one layer; tokens and the scalars' features travel."""
    spread = assert_same({}, {"pipeline": 4, "microbatches": 4, "schedule": schedule})
    tokens, condition, numbers = 8 * 8 * 8 * 8, 8 * 32 * 8, 2 * 3 / 4 * 8
    expected = {
        "gpipe": gpipe_bytes(tokens + condition, tokens, 4, 4),
        "1f1b": one_f_one_b_bytes(tokens + condition, 4, 4, shared=parameter_bytes({}, ("layers",)) + 8),
    }
    assert bytes_sent(spread.program) == pytest.approx(expected[schedule] + numbers, rel=0.01)
    assert {c.kind for c in collectives(spread.program)} == {"collective-permute", "all-reduce"}


@pytest.mark.slow
@pytest.mark.parametrize("zero", [0, 2, 3])
@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_pipeline_tensor_and_rows_with_zero(schedule, zero):
    """Eight devices; with ZeRO-3 every layer is gathered where it is used, and again in the backward pass."""
    shared = {"fsdp": 2, "zero": zero} if zero else {"data": 2}
    assert_same({}, {"pipeline": 2, "tensor": 2, "microbatches": 2, "remat": True, "schedule": schedule, **shared})


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_a_pipeline_of_experts_with_sharded_parameters(schedule):
    options = {"experts": 4, "chosen": 2, "groups": 2, "capacity": 0.5, "hidden": 4}
    plan = {"pipeline": 2, "expert": 2, "fsdp": 2, "zero": 3, "microbatches": 2, "remat": True, "schedule": schedule}
    assert_same(options, plan)


def test_one_sample_passes_through_all_stages():
    """A model that is called, not asked for a batch, still gives what it gives on one device."""
    model, layout = transformer(), Layout.of(transformer(), Plan(pipeline=2, microbatches=4))
    graph, params, rest = nnx.split(model, nnx.Param, ...)
    sample = {name: v[0] for name, v in rows(1).items() if name != "u"}

    def on_device(params):
        with axes.placed(layout.placement()):
            return nnx.merge(graph, params, rest)(sample)

    specs = layout.specs(params, sharded=False)
    spread = jax.jit(jax.shard_map(on_device, mesh=layout.mesh, in_specs=(specs,), out_specs=P()))(params)
    assert_close(spread, nnx.jit(model)(sample), rtol=1e-12)
