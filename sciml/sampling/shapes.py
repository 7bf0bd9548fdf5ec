"""Functions of a point with edges, as published data sets use them: two values, pulses, discs, cut sums of sines."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import jax
import jax.numpy as jnp
import numpy as np

from sciml.domain import Box
from sciml.sampling.series import CosineSeries
from sciml.types import Array, Float, Scalar


@final
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class TwoValues:
    """`high` where a series is >= 0, `low` elsewhere."""

    series: CosineSeries
    low: Scalar
    high: Scalar

    def __call__(self, x: Float[Array, " dim"]) -> Scalar:
        """The value at one point."""
        return jnp.where(self.series(x) >= 0, self.high, self.low)

    @property
    def coefficients(self) -> Float[Array, " n"]:
        """Those of the series."""
        return self.series.coefficients


@final
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Pulse:
    """`height` within width/2 of `center` along the first axis, 0 elsewhere; numbers in units of the box."""

    center: Scalar
    width: Scalar
    height: Scalar
    box: Box = field(metadata={"static": True})

    def __call__(self, x: Float[Array, " dim"]) -> Scalar:
        """The value at one point."""
        s = (x[0] - self.box.lower[0]) / self.box.lengths[0]
        return jnp.where(jnp.abs(s - self.center) <= self.width / 2, self.height, 0.0)

    @property
    def coefficients(self) -> Float[Array, " n"]:
        """Center, width, height."""
        return jnp.stack([self.center, self.width, self.height])


@final
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Disc:
    """`inside` within `radius` of the middle of the box, `outside` beyond."""

    radius: Scalar
    inside: Scalar
    outside: Scalar
    box: Box = field(metadata={"static": True})

    def __call__(self, x: Float[Array, " dim"]) -> Scalar:
        """The value at one point."""
        middle = (np.asarray(self.box.lower) + np.asarray(self.box.upper)) / 2
        return jnp.where(jnp.sum((x - middle) ** 2) < self.radius**2, self.inside, self.outside)

    @property
    def coefficients(self) -> Float[Array, " n"]:
        """The radius."""
        return self.radius[None]


@final
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SineSum:
    """f(s) = g(sum_j amplitude_j sin(2 pi wave_j s + phase_j)) along the first axis, s from 0 to 1.

    g takes the absolute value and the sign `flip` if `folded`, and multiplies with a window from `left` to `right` if
    `cut` (both 0 or 1); then (f - lowest)/(highest - lowest) if `span` = (lowest, highest) is not (0, 1).
    """

    amplitude: Float[Array, " n"]
    wave: Float[Array, " n"]
    phase: Float[Array, " n"]
    folded: Scalar
    flip: Scalar
    cut: Scalar
    window: Float[Array, " 2"]
    span: Float[Array, " 2"]
    box: Box = field(metadata={"static": True})

    def __call__(self, x: Float[Array, " dim"]) -> Scalar:
        """The value at one point."""
        lowest, highest = self.span
        return (self.plain((x[0] - self.box.lower[0]) / self.box.lengths[0]) - lowest) / (highest - lowest)

    def plain(self, s: Scalar) -> Scalar:
        """The value before it is scaled to its span."""
        value = jnp.sum(self.amplitude * jnp.sin(2 * jnp.pi * self.wave * s + self.phase))
        value = jnp.where(self.folded > 0, self.flip * jnp.abs(value), value)
        edges = (jnp.tanh((s - self.window[0]) / EDGE) - jnp.tanh((s - self.window[1]) / EDGE)) / 2
        return jnp.where(self.cut > 0, value * edges, value)

    @property
    def coefficients(self) -> Float[Array, " n"]:
        """Everything that was drawn."""
        switches = jnp.stack([self.folded, self.flip, self.cut])
        return jnp.concatenate([self.amplitude, self.wave, self.phase, switches, self.window, self.span])


EDGE = 0.01
"""Width of the edges of the window, in units of the box."""
