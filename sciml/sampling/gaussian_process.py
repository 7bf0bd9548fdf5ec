"""Gaussian processes with a squared exponential kernel, as analytic functions of a point."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import final

import jax
import jax.numpy as jnp
import numpy as np

from sciml.domain import Box
from sciml.registry import option, register
from sciml.sampling.fields import RandomField
from sciml.sampling.series import Waves, half_space
from sciml.types import Array, Float, Key, Scalar

MARGIN = 8.0  # correlation lengths beyond a bounded axis: what comes around has a covariance of 1e-14
CUT = 8.5  # |k| length where the spectrum is cut: amplitudes there are 1e-8 of the largest


@final
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Waveform:
    """f(x) = sum_m cosine_m cos(w_m.s) + sine_m sin(w_m.s), s = 2 pi (x - lower)/period; the period may pass the box.

    `cosine` and `sine` have shape (modes,); the first wave is zero, its cosine amplitude the constant part.
    """

    cosine: Float[Array, " modes"]
    sine: Float[Array, " modes"]
    waves: Waves = field(metadata={"static": True})
    lower: tuple[float, ...] = field(metadata={"static": True})
    period: tuple[float, ...] = field(metadata={"static": True})

    def __call__(self, x: Float[Array, " dim"]) -> Scalar:
        """The value at one point."""
        s = 2 * jnp.pi * (x - jnp.asarray(self.lower)) / jnp.asarray(self.period)
        phase = jnp.asarray(self.waves, dtype=jnp.float64) @ s
        return self.cosine @ jnp.cos(phase) + self.sine @ jnp.sin(phase)

    @property
    def coefficients(self) -> Float[Array, " n"]:
        """All numbers that define the function: cosine amplitudes, then those of the sines without the first, zero."""
        return jnp.concatenate([self.cosine, self.sine[1:]])


@final
@register("field", "gaussian_process")
@dataclass(frozen=True)
class GaussianProcess(RandomField):
    """Gaussian process with covariance amplitude^2 exp(-|x - y|^2/(2 length^2)), analytic (Lu et al., 2021).

    The spectral series of the kernel, on a period that is longer than a bounded axis; exact to 1e-12. `length` is in
    units of the box along each axis.
    """

    length: float = option(0.2, above=0.0, doc="correlation length, in units of the box")
    amplitude: float = option(1.0, above=0.0, doc="standard deviation")

    def draw(self, key: Key, box: Box) -> Waveform:
        """Independent amplitudes with the variance of the spectrum."""
        margins = [0.0 if periodic else MARGIN * self.length for periodic in box.periodic]
        period = tuple(length * (1 + margin) for length, margin in zip(box.lengths, margins, strict=True))
        scales = self.length / (1 + np.asarray(margins))  # of the kernel, in periods
        most = max(1, *(math.ceil(CUT / (2 * math.pi * scale)) for scale in scales))
        waves = ((0,) * box.dim, *half_space(most, box.dim))
        squares = np.sum((2 * np.pi * np.asarray(waves, float) * scales) ** 2, axis=1)
        kept = squares <= CUT**2
        waves = tuple(wave for wave, keep in zip(waves, kept, strict=True) if keep)
        variance = np.prod(np.sqrt(2 * np.pi) * scales) * np.exp(-squares[kept] / 2)
        spread = self.amplitude * np.sqrt(np.where(np.arange(len(waves)) == 0, 1.0, 2.0) * variance)
        cosine, sine = jnp.asarray(spread) * jax.random.normal(key, (2, len(waves)))
        return Waveform(cosine, sine.at[0].set(0.0), waves, box.lower, period)
