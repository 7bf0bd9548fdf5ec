"""Convolution with a global kernel: multiply the low frequencies of a field by learned matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from sciml.operators.transforms import AxisSeries, Mode
from sciml.types import Array, Float


def axis_series(bases: Sequence[str], modes: Sequence[int]) -> tuple[AxisSeries, ...]:
    """Series per axis from plain names ("fourier", "cosine", "sine"); the last Fourier axis keeps half."""
    fourier = [i for i, basis in enumerate(bases) if basis == "fourier"]
    half = fourier[-1] if fourier else None
    named: list[Any] = ["half_fourier" if i == half else basis for i, basis in enumerate(bases)]
    return tuple(AxisSeries(basis, waves) for basis, waves in zip(named, modes, strict=True))


def transform_order(series: Sequence[AxisSeries]) -> tuple[int, ...]:
    """Axes in the order of analysis: real series, then the half axis, then the full ones, last first."""
    rank = {"cosine": 0, "sine": 0, "half_fourier": 1, "fourier": 2}
    return tuple(sorted(range(len(series)), key=lambda i: (rank[series[i].basis], -i)))


class SpectralConv(nnx.Module):
    """Learned multiplier on the frequencies |k| <= modes of a field (Li et al., arXiv:2010.08895, eq. 5).

    Maps `(*space, in)` to `(*space, out)`. Wave numbers above the grid's own limit are left out, so that one
    set of weights serves every grid, odd ones included; with `output_shape` the result is evaluated on
    another grid of the same box, exactly. All products are real matrix products, so that the exported
    program holds no FFT; `mode="fft"` gives the same numbers by FFT. `gain` scales the initial weights.
    """

    def __init__(
        self,
        channels_in: int,
        channels_out: int,
        series: tuple[AxisSeries, ...],
        *,
        mode: Mode = "dft",
        gain: float = 1.0,
        dtype: jnp.dtype | type = jnp.float32,
        rngs: nnx.Rngs,
    ) -> None:
        self.series = series
        self.mode: Mode = mode
        self.parts = 2 if any("fourier" in s.basis for s in series) else 1
        shape = (*(s.size for s in series), channels_in, self.parts, channels_out)
        scale = gain * (1.0 / (self.parts * channels_in)) ** 0.5
        self.weight = nnx.Param(scale * jax.random.normal(rngs.params(), shape, dtype))

    def __call__(
        self,
        x: Float[Array, "*space channels"],
        *,
        output_shape: tuple[int, ...] | None = None,
        gain: Float[Array, "*modes channels"] | None = None,
    ) -> Float[Array, "*space_out channels_out"]:
        """One sample; `gain` multiplies each kept frequency of each output channel (conditioning on scalars)."""
        shape_in = x.shape[:-1]
        shape_out = shape_in if output_shape is None else output_shape
        kept = tuple(s.on(a, b) for s, a, b in zip(self.series, shape_in, shape_out, strict=True))
        order = transform_order(kept)
        spectrum = x[None]
        for axis in order:
            spectrum = kept[axis].analyze(spectrum, axis + 1, self.mode)
        spectrum = self._mix(spectrum, kept, gain)
        for axis in reversed(order):
            spectrum = kept[axis].synthesize(spectrum, axis + 1, shape_out[axis], self.mode)
        return spectrum[0]

    def _mix(self, spectrum: Array, kept: tuple[AxisSeries, ...], gain: Array | None) -> Array:
        """One batched real product per frequency, `(2 in) x (2 out)`."""
        weight = self.weight[...]
        for axis, (now, full) in enumerate(zip(kept, self.series, strict=True)):
            weight = now.crop(weight, axis, full)
        space = "xyz"[: len(kept)]
        if self.parts == 2:
            real, imaginary = weight[..., 0, :], weight[..., 1, :]
            rows = jnp.stack([real, imaginary], axis=-2), jnp.stack([-imaginary, real], axis=-2)
            weight = jnp.stack(rows, axis=-4)  # (*modes, part in, in, part out, out)
            mixed = jnp.einsum(f"p{space}i,{space}piqo->q{space}o", spectrum, weight)
        else:
            mixed = jnp.einsum(f"p{space}i,{space}ipo->p{space}o", spectrum, weight)
        if gain is None:
            return mixed
        for axis, (now, full) in enumerate(zip(kept, self.series, strict=True)):
            gain = now.crop(gain, axis, full)
        return mixed * gain
