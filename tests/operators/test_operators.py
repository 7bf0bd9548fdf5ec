"""What the operator networks promise beyond the contract: resolutions, symmetry, normalization, refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from sciml.errors import ConfigError, DataError
from sciml.operators.deeponet import DeepONet
from sciml.operators.fno import FNO
from sciml.operators.mlp import MLP
from sciml.operators.predictor import input_normalizer, standardizer
from sciml.spec import Spec, Statistics, Variable
from sciml.training.state import cast

UNIT = Statistics(0.0, 1.0, -1.0, 1.0)


def periodic(points: int = 16) -> Spec:
    return Spec(
        inputs=(Variable("u0", shape=(points,), axes=("x",)), Variable("nu", role="scalar")),
        outputs=(Variable("u", shape=(3, points), axes=("time", "x")),),
        coordinates={"x": tuple(np.arange(points) / points), "time": (0.1, 0.5, 1.0)},
        periodic=("x",),
    )


def bounded(shape=(9, 11)) -> Spec:
    return Spec(
        inputs=(Variable("a", shape=shape, axes=("x", "y")),),
        outputs=(Variable("u", shape=shape, axes=("x", "y")),),
    )


def build(config, spec: Spec, seed: int = 0):
    statistics = {v.name: UNIT for v in (*spec.inputs, *spec.outputs)}
    model = config.build(spec, statistics, seed=seed)
    rng = np.random.default_rng(seed)
    state = nnx.state(model, nnx.Param)
    for _, variable in nnx.to_flat_state(state):
        noise = 0.1 * rng.standard_normal(variable.shape)
        variable[...] = jnp.asarray(np.asarray(variable[...]) + noise, variable.dtype)
    nnx.update(model, state)
    return model


def run(model, **inputs):
    """Output `u` for one sample; compiled, which is faster than one primitive after the other."""
    graph, state = nnx.split(model)
    return jax.jit(lambda state, sample: nnx.merge(graph, state)(sample)["u"])(state, inputs)


def smooth(points: int) -> np.ndarray:
    x = 2 * np.pi * np.arange(points) / points
    return np.sin(x) + 0.3 * np.cos(2 * x)


def test_fno_with_periodic_axes_commutes_with_shifts():
    model = build(FNO(width=6, modes=(4,), layers=2, dtype="float64"), periodic())
    u0 = np.random.default_rng(0).standard_normal(16)
    plain = run(model, u0=u0, nu=0.3)
    shifted = run(model, u0=np.roll(u0, 5), nu=0.3)
    np.testing.assert_allclose(shifted, np.roll(plain, 5, axis=-1), atol=1e-12)


def test_fno_gives_the_same_function_on_a_finer_grid():
    """GELU makes frequencies above those of the coarse grid; for smooth fields they are tiny."""
    model = build(FNO(width=6, modes=(4,), layers=2, dtype="float64"), periodic(32))
    coarse, fine = (run(model, u0=smooth(n), nu=0.3) for n in (32, 64))
    np.testing.assert_allclose(fine[:, ::2], coarse, atol=1e-6)


@pytest.mark.parametrize("series", ["cosine", "sine", "pad"])
def test_fno_on_bounded_axes(series):
    model = build(FNO(width=6, modes=(2, 3), layers=2, bounded=series, dtype="float64"), bounded())
    a = np.random.default_rng(0).standard_normal((9, 11))
    result = run(model, a=a)
    assert result.shape == (9, 11)
    assert np.isfinite(np.asarray(result)).all()


def test_fno_by_fft_gives_the_same():
    a = np.random.default_rng(0).standard_normal(16)
    results = [
        run(build(FNO(width=6, modes=(4,), layers=2, mode=mode, dtype="float64"), periodic()), u0=a, nu=0.3)
        for mode in ("dft", "fft")
    ]
    np.testing.assert_allclose(*results, atol=1e-12)


@pytest.mark.parametrize("trunk", ["separable", "joint"])
def test_deeponet_trunks_and_fixed_sensors(trunk):
    model = build(DeepONet(basis=6, width=8, trunk=trunk), periodic())
    assert run(model, u0=smooth(16), nu=0.3).shape == (3, 16)
    with pytest.raises(DataError, match="fixed sensors"):
        run(model, u0=smooth(32), nu=0.3)


def test_deeponet_responds_to_scalars_in_time():
    model = build(DeepONet(basis=6, width=8), periodic())
    small, large = (np.asarray(run(model, u0=smooth(16), nu=nu)) for nu in (0.1, 0.9))
    ratio = large / small
    assert np.ptp(ratio, axis=0).max() > 1e-3  # not one factor for all times


def test_a_network_starts_as_a_linear_operator():
    """The last matrices of all perceptrons start at zero: f(a + b) - f(a) - f(b) + f(0) = 0."""
    statistics = {name: UNIT for name in ("u0", "nu", "u")}
    for config in (FNO(width=6, modes=(4,), layers=2, dtype="float64"), DeepONet(basis=6, width=8, dtype="float64")):
        model = config.build(periodic(), statistics, seed=0)
        a, b = np.random.default_rng(0).standard_normal((2, 16))
        f = [run(model, u0=u, nu=0.3) for u in (a + b, a, b, 0 * a)]
        np.testing.assert_allclose(f[0] - f[1] - f[2] + f[3], 0, atol=1e-12)


def test_normalization_is_inverted():
    per_time = standardizer(Statistics((1.0, 2.0), (0.5, 0.0), (0.0, 2.0), (2.0, 2.0)), jnp.dtype("float64"))
    value = jnp.asarray(np.random.default_rng(0).standard_normal((2, 5)))
    np.testing.assert_allclose(per_time.decode(per_time.encode(value)), value, rtol=1e-14)
    wide = input_normalizer(Statistics(0.05, 0.02, 0.001, 0.1), jnp.dtype("float64"))
    np.testing.assert_allclose([wide.encode(0.001), wide.encode(0.1), wide.encode(0.01)], [-1, 1, 0], atol=1e-12)
    np.testing.assert_allclose(wide.decode(wide.encode(0.03)), 0.03)


def test_small_deviations_from_a_large_mean_survive_single_precision():
    """300 K +- 0.01 K: rounded to float32 before the mean is subtracted, the error would be 1e-3."""
    normalizer = standardizer(Statistics(300.0, 0.01, 299.9, 300.1), jnp.dtype("float32"))
    deviations = np.linspace(-1, 1, 101)
    encoded = jax.jit(normalizer.encode)(300.0 + 0.01 * deviations)
    assert encoded.dtype == jnp.float32
    np.testing.assert_allclose(encoded, deviations, atol=1e-6)


def test_normalization_is_not_rounded_by_training_in_single_precision():
    spec = periodic()
    statistics = {v.name: Statistics(300.0001, 0.01, 299.9, 300.1) for v in (*spec.inputs, *spec.outputs)}
    model = FNO(width=4, modes=(2,), layers=1).build(spec, statistics, seed=0)
    graph, state = nnx.split(model)
    rounded = nnx.merge(graph, cast(state, "float32"))
    assert float(rounded.encoders["nu"].encode(300.0001)) == 0.0


def test_statistics_are_not_trained():
    model = build(FNO(width=6, modes=(4,), layers=1), periodic())
    trained = {"/".join(map(str, path)) for path, _ in nnx.to_flat_state(nnx.state(model, nnx.Param))}
    assert not any(name.endswith(("shift", "scale")) for name in trained)


@pytest.mark.parametrize(
    ("config", "spec", "match"),
    [
        (FNO(modes=(4, 4)), periodic(), "modes do not fit"),
        (FNO(), Spec((Variable("a", role="scalar"),), (Variable("q", role="scalar"),)), "maps fields to fields"),
        (MLP(), periodic(), "maps numbers to numbers"),
        (
            FNO(),
            Spec((Variable("a", shape=(4,), axes=("x",)),), (Variable("u", shape=(5,), axes=("x",)),)),
            "all fields on one grid",
        ),
    ],
)
def test_specs_that_do_not_fit_are_refused(config, spec, match):
    with pytest.raises(ConfigError, match=match):
        config.build(spec, {v.name: UNIT for v in (*spec.inputs, *spec.outputs)}, seed=0)


def test_missing_statistics_are_named():
    with pytest.raises(ConfigError, match="no statistics for 'nu'"):
        FNO().build(periodic(), {"u0": UNIT, "u": UNIT}, seed=0)
