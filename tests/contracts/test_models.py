"""Every registered operator and surrogate model keeps the contract of models.

`FITS` says which tasks a model must fit; it must refuse every other one.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax import export

from sciml import registry
from sciml.errors import ConfigError
from sciml.spec import Spec, Statistics, Variable
from sciml.training.state import parameter_count


def trajectory() -> Spec:
    space, time = np.arange(16) / 16, np.linspace(0.2, 1.0, 5)
    return Spec(
        inputs=(Variable("u0", shape=(16,), axes=("x",)), Variable("nu", role="scalar", low=0.01, high=0.1)),
        outputs=(Variable("u", shape=(5, 16), axes=("time", "x")),),
        coordinates={"x": tuple(space), "time": tuple(time)},
        periodic=("x",),
    )


def steady() -> Spec:
    axes, shape = ("x", "y"), (9, 8)
    return Spec(
        inputs=(Variable("a", shape=shape, axes=axes),),
        outputs=(Variable("u", shape=shape, axes=axes), Variable("v", shape=shape, axes=axes)),
        coordinates={"x": tuple(np.linspace(0, 1, 9)), "y": tuple(np.linspace(0, 1, 8))},
    )


def numbers() -> Spec:
    inputs = tuple(Variable(name, role="scalar") for name in ("a", "b", "c"))
    return Spec(inputs=inputs, outputs=(Variable("q", role="scalar"), Variable("r", role="scalar")))


TASKS = {"trajectory": trajectory(), "steady": steady(), "numbers": numbers()}
FITS = {
    "fno": {"trajectory", "steady"},
    "deeponet": {"trajectory", "steady"},
    "transformer": {"trajectory", "steady"},
    "mlp": {"numbers"},
}
OPTIONS = {
    "fno": {"width": 8, "modes": (3,), "layers": 2},
    "deeponet": {"basis": 8, "width": 16},
    "transformer": {"width": 8, "heads": 2, "layers": 2, "patch": (1,), "waves": 3},
    "mlp": {"width": 8},
}


EXPORTED = {"transformer": {"dtype": "float64"}}
"""Two compilations of deep float32 attention differ by more than the bound: it is held to it in float64."""


def owned_models() -> list[str]:
    """Models of `sciml.operators`; those at points have their own contract."""
    infos = {name: registry.describe("model", name) for name in registry.names("model")}
    return [name for name, info in infos.items() if info.module.startswith("sciml.operators")]


def statistics(spec: Spec) -> dict[str, Statistics]:
    table = {v.name: Statistics(0.3, 1.2, -2.0, 2.0) for v in (*spec.inputs, *spec.outputs)}
    for v in spec.inputs:
        if v.low is not None:
            table[v.name] = Statistics(0.05, 0.02, v.low, v.high)
    return table


def batch(spec: Spec, size: int) -> dict[str, jax.Array]:
    rng = np.random.default_rng(0)
    return {v.name: jnp.asarray(rng.uniform(0.02, 0.09, (size, *v.shape))) for v in spec.inputs}


def build(name: str, task: str, **more):
    options = {**OPTIONS.get(name, {}), **more}
    return registry.load("model", name)(**options).build(TASKS[task], statistics(TASKS[task]), seed=0)


def awaken(model: nnx.Module) -> nnx.Module:
    """Replace the zeros a model starts with, so that every path is exercised."""
    graph, params, rest = nnx.split(model, nnx.Param, ...)
    rng = np.random.default_rng(1)
    params = jax.tree.map(lambda p: p + jnp.asarray(0.1 * rng.standard_normal(p.shape), p.dtype), params)
    return nnx.merge(graph, params, rest)


def run(model: nnx.Module):
    graph, state = nnx.split(model)
    return jax.jit(lambda inputs: jax.vmap(lambda sample: nnx.merge(graph, state)(sample))(inputs))


every_fit = pytest.mark.parametrize(("name", "task"), [(n, t) for n in FITS for t in TASKS if t in FITS[n]])
every_misfit = pytest.mark.parametrize(("name", "task"), [(n, t) for n in FITS for t in TASKS if t not in FITS[n]])


def test_every_model_has_its_tasks():
    assert set(FITS) == set(owned_models())
    assert all(tasks and tasks <= set(TASKS) for tasks in FITS.values())


@every_misfit
def test_another_task_is_refused(name, task):
    with pytest.raises(ConfigError, match="expected"):
        build(name, task)


@every_fit
def test_shapes_batches_and_second_call(name, task):
    model, spec = awaken(build(name, task)), TASKS[task]
    inputs, batched, one = batch(spec, 3), run(model), nnx.jit(model)
    outputs = batched(inputs)
    assert {k: v.shape for k, v in outputs.items()} == {v.name: (3, *v.shape) for v in spec.outputs}
    for i in (0, 2):
        single = one({k: v[i] for k, v in inputs.items()})
        for k, v in single.items():
            np.testing.assert_allclose(outputs[k][i], v, rtol=1e-4, atol=1e-5)
    batched({k: v + 0.01 for k, v in inputs.items()})
    assert batched._cache_size() == 1


@every_fit
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dtype_and_finite_gradients(name, task, dtype):
    model, spec = awaken(build(name, task, dtype=dtype)), TASKS[task]
    graph, params, rest = nnx.split(model, nnx.Param, ...)
    inputs = batch(spec, 2)

    def loss(p):
        outputs = jax.vmap(lambda s: nnx.merge(graph, p, rest)(s))(inputs)
        assert {v.dtype for v in outputs.values()} == {jnp.dtype(dtype)}
        return sum(jnp.mean(v**2) for v in outputs.values())

    leaves = jax.tree.leaves(jax.jit(jax.grad(loss))(params))
    assert {leaf.dtype for leaf in leaves} == {jnp.dtype(dtype)}
    assert all(bool(jnp.isfinite(leaf).all()) and bool((leaf != 0).any()) for leaf in leaves)
    assert parameter_count(model) == sum(leaf.size for leaf in leaves)


@every_fit
def test_same_seed_same_model(name, task):
    states = [nnx.state(build(name, task), nnx.Param) for _ in range(2)]
    for a, b in zip(*(jax.tree.leaves(s) for s in states), strict=True):
        np.testing.assert_array_equal(a, b)


@every_fit
def test_export_round_trip_with_symbolic_batch(name, task):
    model, spec = awaken(build(name, task, **EXPORTED.get(name, {}))), TASKS[task]
    batched = run(model)
    (size,) = export.symbolic_shape("B")
    template = {v.name: jax.ShapeDtypeStruct((size, *v.shape), jnp.float64) for v in spec.inputs}
    exported = export.export(batched, platforms=("cpu", "cuda"))(template)
    assert "fft" not in exported.mlir_module()
    again = export.deserialize(bytearray(exported.serialize()))
    for count in (1, 3, 8):
        inputs = batch(spec, count)
        for k, v in batched(inputs).items():
            np.testing.assert_allclose(jax.jit(again.call)(inputs)[k], v, rtol=1e-6, atol=1e-7)
