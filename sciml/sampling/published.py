"""Random fields of published data sets, each written from its formula; `experiments/datasets` uses them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import jax
import jax.numpy as jnp
import numpy as np

from sciml.domain import Box
from sciml.errors import ConfigError
from sciml.registry import option, register
from sciml.sampling.fields import RandomCosineSeries, RandomField
from sciml.sampling.series import FourierSeries, half_space
from sciml.sampling.shapes import Disc, Pulse, SineSum, TwoValues
from sciml.types import Key

SPAN_POINTS = 1024
WINDOW = ((0.1, 0.45), (0.55, 0.9))
ODDS = 0.1


@final
@register("field", "periodic_gaussian")
@dataclass(frozen=True)
class PeriodicGaussian(RandomField):
    """Gaussian periodic field with covariance sigma^2 (-lap + tau^2)^-alpha and no mean (Li et al., 2021, sec. 5)."""

    alpha: float = option(2.0, minimum=0.0, doc="smoothness exponent")
    tau: float = option(5.0, above=0.0, unit="1/m", doc="inverse correlation length")
    sigma: float = option(25.0, above=0.0, doc="square root of the factor of the covariance")
    modes: int = option(32, minimum=1, doc="highest wave number per axis")

    def draw(self, key: Key, box: Box) -> FourierSeries:
        """Karhunen-Loeve series in sqrt(2/V) cos and sin. Raises `ConfigError` on a box with a bounded axis."""
        _refuse_bounded(box)
        waves = half_space(self.modes, box.dim)
        numbers = 2 * np.pi * np.asarray(waves, float) / np.asarray(box.lengths)
        spread = self.sigma * (np.sum(numbers**2, axis=1) + self.tau**2) ** (-self.alpha / 2)
        scale = spread * np.sqrt(2 / np.prod(box.lengths))
        cosine, sine = jnp.asarray(scale) * jax.random.normal(key, (2, len(waves)))
        return FourierSeries(jnp.asarray(0.0), cosine, sine, waves, box)


@final
@register("field", "plane_wave")
@dataclass(frozen=True)
class PlaneWave(RandomField):
    """A fixed periodic wave, amplitude sin(2 pi wave (s_1 + ... + s_d) + phase), s from 0 to 1 along each axis."""

    amplitude: float = option(1.0, doc="amplitude")
    wave: int = option(1, minimum=1, doc="wave number along every axis")
    phase: float = option(0.0, unit="rad", doc="phase")

    def draw(self, key: Key, box: Box) -> FourierSeries:
        """The same function for every key. Raises `ConfigError` on a box with a bounded axis."""
        del key
        _refuse_bounded(box)
        cosine, sine = self.amplitude * jnp.sin(self.phase), self.amplitude * jnp.cos(self.phase)
        return FourierSeries(jnp.asarray(0.0), cosine[None], sine[None], ((self.wave,) * box.dim,), box)


@final
@register("field", "two_values")
@dataclass(frozen=True)
class TwoValuedField(RandomField):
    """Two values, told apart by the sign of a Gaussian field as `cosine_series` (Li et al., 2021, sec. 5.2)."""

    low: float = option(3.0, doc="value where the field is negative")
    high: float = option(12.0, doc="value where it is not")
    modes: int = option(16, minimum=2, doc="modes per axis of the Gaussian field")
    alpha: float = option(2.0, above=0.0, doc="smoothness exponent of the Gaussian field")
    tau: float = option(3.0, minimum=0.0, doc="its inverse correlation length, in units of the box")

    def draw(self, key: Key, box: Box) -> TwoValues:
        """The factor of the Gaussian field does not matter, its sign does."""
        series = RandomCosineSeries(modes=self.modes, alpha=self.alpha, tau=self.tau).draw(key, box)
        return TwoValues(series, jnp.asarray(self.low), jnp.asarray(self.high))


@final
@register("field", "sine_sum")
@dataclass(frozen=True)
class RandomSineSum(RandomField):
    """Sines of random wave number, amplitude (0 to 1) and phase; one in ten folded, one in ten cut (PDEBench, 2022)."""

    waves: int = option(2, minimum=1, doc="number of sines")
    highest: int = option(4, minimum=1, doc="highest wave number; each is drawn from 1 to this")
    normalized: bool = option(False, doc="scaled to values from 0 to 1, as for concentrations")

    def draw(self, key: Key, box: Box) -> SineSum:
        """Along the first axis. Raises `ConfigError` on a box with a bounded axis."""
        _refuse_bounded(box)
        keys = jax.random.split(key, 7)
        shape = (self.waves,)
        window = jnp.stack([jax.random.uniform(keys[6 - i], (), minval=a, maxval=b) for i, (a, b) in enumerate(WINDOW)])
        drawn = SineSum(
            jax.random.uniform(keys[0], shape),
            jax.random.randint(keys[1], shape, 1, self.highest + 1).astype(jnp.float64),
            jax.random.uniform(keys[2], shape, maxval=2 * jnp.pi),
            (jax.random.uniform(keys[3]) < ODDS).astype(jnp.float64),
            jnp.where(jax.random.bernoulli(jax.random.fold_in(keys[3], 1)), 1.0, -1.0),
            (jax.random.uniform(keys[4]) < ODDS).astype(jnp.float64),
            window,
            jnp.asarray([0.0, 1.0]),
            box,
        )
        if not self.normalized:
            return drawn
        values = jax.vmap(drawn.plain)(jnp.arange(SPAN_POINTS) / SPAN_POINTS)
        return SineSum(**{**vars(drawn), "span": jnp.stack([jnp.min(values), jnp.max(values)])})


@final
@register("field", "pulse")
@dataclass(frozen=True)
class RandomPulse(RandomField):
    """A square wave of random center, width and height along the first axis (Lu et al., 2022, advection case I)."""

    center: tuple[float, ...] = option((0.3, 0.7), doc="range of the center, in units of the box")
    width: tuple[float, ...] = option((0.3, 0.6), doc="range of the width, in units of the box")
    height: tuple[float, ...] = option((1.0, 2.0), doc="range of the height")

    def draw(self, key: Key, box: Box) -> Pulse:
        """Each uniform in its range."""
        ranges = (self.center, self.width, self.height)
        center, width, height = (
            jax.random.uniform(jax.random.fold_in(key, i), (), minval=low, maxval=high)
            for i, (low, high) in enumerate(ranges)
        )
        return Pulse(center, width, height, box)


@final
@register("field", "disc")
@dataclass(frozen=True)
class RandomDisc(RandomField):
    """One value in a disc (ball, interval) of random radius in the middle of the box, another outside: a dam break."""

    inside: float = option(2.0, doc="value inside")
    outside: float = option(1.0, doc="value outside")
    radius: tuple[float, ...] = option((0.3, 0.7), unit="m", doc="range of the radius")

    def draw(self, key: Key, box: Box) -> Disc:
        """The radius is uniform in its range."""
        radius = jax.random.uniform(key, (), minval=self.radius[0], maxval=self.radius[1])
        return Disc(radius, jnp.asarray(self.inside), jnp.asarray(self.outside), box)


def _refuse_bounded(box: Box) -> None:
    if not all(box.periodic):
        raise ConfigError(
            "this field needs a periodic domain",
            got=f"bounded faces {', '.join(box.faces)}",
            fix="{kind: cosine_series}, or periodic: true",
        )
