"""Exactness of the spectral layer: identity, resizing, odd grids, both modes, agreement across grids."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from sciml.operators.spectral import SpectralConv, axis_series
from sciml.operators.transforms import AxisSeries

WAVES = 4


def unit_weight(conv: SpectralConv) -> SpectralConv:
    """Set every multiplier to the identity."""
    weight = np.zeros(conv.weight.shape)
    weight[..., 0, :] = np.eye(weight.shape[-1])
    conv.weight[...] = jnp.asarray(weight, conv.weight.dtype)
    return conv


def axis_functions(basis: str, points: int) -> np.ndarray:
    """Real functions on the axis's grid, `(count, points)`, band-limited to WAVES."""
    if basis == "fourier":
        x = 2 * np.pi * np.arange(points) / points
        rows = [np.ones(points), *(f(k * x) for k in range(1, WAVES + 1) for f in (np.cos, np.sin))]
        return np.stack(rows)
    x = np.pi * np.arange(points) / (points - 1)
    if basis == "cosine":
        return np.stack([np.cos(k * x) for k in range(2 * WAVES + 1)])
    return np.stack([np.sin(k * x) for k in range(1, 2 * WAVES + 1)])


def band_limited(bases: tuple[str, ...], shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """The same random field of two channels, sampled on any grid."""
    rng = np.random.default_rng(seed)
    count = len(bases)
    tables = [axis_functions(basis, points) for basis, points in zip(bases, shape, strict=True)]
    letters, modes = "xyz"[:count], "abc"[:count]
    terms = ",".join(f"{m}{x}" for m, x in zip(modes, letters, strict=True))
    coefficients = rng.standard_normal((2, *(len(t) for t in tables)))
    return np.einsum(f"q{modes},{terms}->{letters}q", coefficients, *tables)


def layer(bases: tuple[str, ...], mode: str = "dft", channels: int = 2) -> SpectralConv:
    series = axis_series(bases, (WAVES,) * len(bases))
    return SpectralConv(channels, channels, series, mode=mode, dtype=jnp.float64, rngs=nnx.Rngs(0))


def run(conv: SpectralConv, x, output_shape=None):
    """Compiled: faster here than one primitive after the other."""
    graph, state = nnx.split(conv)
    apply = jax.jit(lambda state, x: nnx.merge(graph, state)(x, output_shape=output_shape))
    return apply(state, jnp.asarray(x))


BASES = [
    ("fourier",),
    ("cosine",),
    ("fourier", "fourier"),
    ("fourier", "cosine"),
    ("cosine", "fourier"),
    ("fourier", "fourier", "fourier"),
]


@pytest.mark.parametrize("mode", ["dft", "fft"])
@pytest.mark.parametrize("points", [16, 17, 33])
@pytest.mark.parametrize("bases", BASES, ids="-".join)
def test_unit_weight_returns_a_band_limited_field(bases, points, mode):
    shape = (points,) if len(bases) == 1 else tuple(points + 2 * i for i in range(len(bases)))
    field = band_limited(bases, shape)
    result = run(unit_weight(layer(bases, mode)), field)
    np.testing.assert_allclose(result, field, atol=1e-12 * np.abs(field).max())


def test_unit_weight_sine_series_on_a_bounded_grid():
    field = band_limited(("sine", "sine"), (17, 20))
    result = run(unit_weight(layer(("sine", "sine"))), field)
    np.testing.assert_allclose(result, field, atol=1e-12 * np.abs(field).max())


@pytest.mark.parametrize("mode", ["dft", "fft"])
@pytest.mark.parametrize("bases", BASES, ids="-".join)
@pytest.mark.parametrize("points", [(16, 24), (17, 12), (33, 10)])
def test_resizing_evaluates_the_same_function_on_another_grid(bases, points, mode):
    coarse, fine = ((n,) * len(bases) for n in points)
    result = run(unit_weight(layer(bases, mode)), band_limited(bases, coarse), fine)
    expected = band_limited(bases, fine)
    np.testing.assert_allclose(result, expected, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("bases", BASES, ids="-".join)
def test_both_modes_agree_for_learned_weights(bases):
    x = jax.random.normal(jax.random.key(1), (*(15 + i for i in range(len(bases))), 2), jnp.float64)
    dft, fft = layer(bases, "dft"), layer(bases, "fft")
    np.testing.assert_allclose(run(dft, x), run(fft, x), atol=1e-12)


@pytest.mark.parametrize("points", [16, 17])
def test_learned_layer_gives_the_same_function_at_every_resolution(points):
    bases = ("fourier", "fourier")
    conv = layer(bases)
    coarse = run(conv, band_limited(bases, (points,) * 2))
    fine = run(conv, band_limited(bases, (2 * points,) * 2))
    np.testing.assert_allclose(fine[::2, ::2], coarse, atol=1e-12)


@pytest.mark.parametrize("bases", [("fourier",), ("fourier", "fourier")], ids="-".join)
def test_shifting_the_input_shifts_the_output(bases):
    conv = layer(bases)
    x = jax.random.normal(jax.random.key(2), (*(12,) * len(bases), 2), jnp.float64)
    np.testing.assert_allclose(run(conv, jnp.roll(x, 5, 0)), jnp.roll(run(conv, x), 5, 0), atol=1e-12)


def test_modes_above_the_grid_are_left_out_and_nyquist_never_kept():
    assert AxisSeries("half_fourier", 20).on(16).waves == 7
    assert AxisSeries("half_fourier", 20).on(17).waves == 8
    checkerboard = jnp.asarray((-1.0) ** np.arange(16))[:, None]
    conv = SpectralConv(1, 1, axis_series(("fourier",), (20,)), dtype=jnp.float64, rngs=nnx.Rngs(0))
    np.testing.assert_allclose(run(conv, checkerboard), 0, atol=1e-14)


def test_the_program_holds_no_fft():
    conv = layer(("fourier", "fourier"))
    x = jnp.zeros((12, 12, 2))
    assert "fft" not in jax.jit(conv).lower(x).as_text()
    assert "fft" in jax.jit(layer(("fourier", "fourier"), "fft")).lower(x).as_text()


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_the_dtype_is_kept(dtype):
    conv = SpectralConv(1, 3, axis_series(("fourier",), (3,)), dtype=dtype, rngs=nnx.Rngs(0))
    assert conv(jnp.zeros((9, 1), dtype)).dtype == dtype


@pytest.mark.parametrize("basis,points", list(itertools.product(["cosine", "sine"], [9, 10])))
def test_real_series_use_half_waves(basis, points):
    assert AxisSeries(basis, 50).on(points).waves == (points - 2) // 2
