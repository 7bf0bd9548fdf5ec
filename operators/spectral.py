"""Convolution with a global kernel: multiply the low frequencies of a field by learned matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from sciml import axes
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
        names = (*(None,) * len(series), axes.SPECTRAL, None, None)
        self.weight = nnx.Param(scale * jax.random.normal(rngs.params(), shape, dtype), axes=names)

    def __call__(
        self,
        x: Float[Array, "*space channels"],
        *,
        output_shape: tuple[int, ...] | None = None,
        gain: Float[Array, "*modes channels"] | None = None,
    ) -> Float[Array, "*space_out channels_out"]:
        """One sample; `gain` multiplies each kept frequency of each output channel (conditioning on scalars)."""
        shape_in = axes.whole_shape(x.shape[:-1])
        shape_out = shape_in if output_shape is None else output_shape
        kept = tuple(s.on(a, b) for s, a, b in zip(self.series, shape_in, shape_out, strict=True))
        spectrum = axes.portion(x, axes.SPECTRAL, -1)[None].astype(jnp.promote_types(x.dtype, jnp.float32))
        way = self._pencil if self._swaps() else self._direct
        return way(spectrum, kept, shape_out, gain).astype(x.dtype)

    def _swaps(self) -> bool:
        """Whether a split first axis is made whole by splitting another one."""
        pencil = axes.placement().options.get("transform") == "pencil"
        return pencil and len(self.series) > 1 and axes.parts(axes.SPACE) > 1

    def _direct(
        self, spectrum: Array, kept: tuple[AxisSeries, ...], shape: tuple[int, ...], gain: Array | None
    ) -> Array:
        """Axis by axis; the points of a split axis add their contributions to every frequency."""
        order = transform_order(kept)
        for axis in order:
            spectrum = kept[axis].analyze(spectrum, axis + 1, self.mode, _split(axis))
        cropped = None if gain is None else _cropped(gain, kept, self.series)
        spectrum = self._product(spectrum, _cropped(self.weight[...], kept, self.series), cropped)
        for axis in reversed(order):
            spectrum = kept[axis].synthesize(spectrum, axis + 1, shape[axis], self.mode, _split(axis))
        return spectrum[0]

    def _pencil(
        self, spectrum: Array, kept: tuple[AxisSeries, ...], shape: tuple[int, ...], gain: Array | None
    ) -> Array:
        """The whole first axis on every device, for its part of the frequencies of another axis.

        These are few by then, so that little travels; zeros fill them up to a multiple of the devices.
        """
        others = [axis for axis in transform_order(kept) if axis != 0]
        partner, count = others[-1], axes.parts(axes.SPACE)

        def own(weight: Array) -> Array:
            return axes.portion(_filled(_cropped(weight, kept, self.series), partner, count), axes.SPACE, partner)

        for axis in others:
            spectrum = kept[axis].analyze(spectrum, axis + 1, self.mode)
        size = spectrum.shape[partner + 1]
        spectrum = axes.swap(_filled(spectrum, partner + 1, count), axes.SPACE, partner + 1, 1)
        spectrum = kept[0].analyze(spectrum, 1, self.mode)
        spectrum = self._product(spectrum, own(self.weight[...]), None if gain is None else own(gain))
        spectrum = kept[0].synthesize(spectrum, 1, shape[0], self.mode)
        spectrum = axes.swap(spectrum, axes.SPACE, 1, partner + 1)
        spectrum = jax.lax.slice_in_dim(spectrum, 0, size, axis=partner + 1)
        for axis in reversed(others):
            spectrum = kept[axis].synthesize(spectrum, axis + 1, shape[axis], self.mode)
        return spectrum[0]

    def _product(self, spectrum: Array, weight: Array, gain: Array | None) -> Array:
        """One batched real product per frequency, `(2 in) x (2 out)`, added over the parts of the input channels."""
        space, weight = "xyz"[: len(self.series)], weight.astype(spectrum.dtype)
        if self.parts == 2:
            real, imaginary = weight[..., 0, :], weight[..., 1, :]
            rows = jnp.stack([real, imaginary], axis=-2), jnp.stack([-imaginary, real], axis=-2)
            weight = jnp.stack(rows, axis=-4)  # (*modes, part in, in, part out, out)
            mixed = jnp.einsum(f"p{space}i,{space}piqo->q{space}o", spectrum, weight)
        else:
            mixed = jnp.einsum(f"p{space}i,{space}ipo->p{space}o", spectrum, weight)
        mixed = axes.total(mixed, axes.SPECTRAL)
        return mixed if gain is None else mixed * gain.astype(mixed.dtype)


def _split(axis: int) -> str | None:
    return axes.SPACE if axis == 0 else None


def _cropped(weight: Array, kept: tuple[AxisSeries, ...], full: tuple[AxisSeries, ...]) -> Array:
    """Weights per frequency, cut to those kept."""
    for axis, (now, whole) in enumerate(zip(kept, full, strict=True)):
        weight = now.crop(weight, axis, whole)
    return weight


def _filled(x: Array, axis: int, count: int) -> Array:
    """Zeros appended along `axis` up to a multiple of `count`."""
    widths = [(0, 0)] * x.ndim
    widths[axis] = (0, -x.shape[axis] % count)
    return jnp.pad(x, widths)
