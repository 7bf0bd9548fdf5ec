"""Fields for initial conditions, coefficients and sources: drawn by a key, given as functions of a point."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any, final

import jax
import jax.numpy as jnp

from sciml.domain import Box
from sciml.errors import ConfigError
from sciml.registry import option, register
from sciml.sampling.series import Constant, CosineSeries, FourierSeries, SineProduct, half_space, quadrant
from sciml.types import Key


class RandomField(abc.ABC):
    """Something a function of space can be drawn from."""

    @abc.abstractmethod
    def draw(self, key: Key, box: Box) -> Any:
        """A function f(x) of one point, a PyTree, the same for the same key.

        Its `coefficients`, shape (n,), are the numbers that tell one draw from another.
        """


@final
@register("field", "fourier_series")
@dataclass(frozen=True)
class RandomFourierSeries(RandomField):
    """Random smooth periodic field: Fourier modes with Gaussian amplitudes that fall as a power of |k|."""

    modes: int = option(6, minimum=1, doc="highest wave number per axis")
    decay: float = option(1.0, minimum=0.0, doc="amplitudes fall as |k|^-decay")
    amplitude: float = option(1.0, above=0.0, doc="root mean square of the field")
    mean: float = option(0.0, doc="mean of the field")

    def draw(self, key: Key, box: Box) -> FourierSeries:
        """Raises `ConfigError` on a box with a bounded axis."""
        if not all(box.periodic):
            raise ConfigError(
                "a Fourier series needs a periodic domain",
                got=f"bounded faces {', '.join(box.faces)}",
                fix="{kind: cosine_series} or {kind: sine}",
            )
        waves = half_space(self.modes, box.dim)
        length = jnp.sqrt(jnp.sum(jnp.asarray(waves, dtype=float) ** 2, axis=1))
        spectrum = length**-self.decay
        scale = self.amplitude / jnp.sqrt(jnp.sum(spectrum**2))
        cosine, sine = scale * spectrum * jax.random.normal(key, (2, len(waves)))
        return FourierSeries(jnp.asarray(self.mean), cosine, sine, waves, box)


@final
@register("field", "cosine_series")
@dataclass(frozen=True)
class RandomCosineSeries(RandomField):
    """Random smooth field on a bounded box: Gaussian, covariance ~ (-lap + tau^2)^-alpha, zero normal slope."""

    modes: int = option(8, minimum=2, doc="modes per axis")
    alpha: float = option(2.0, above=0.0, doc="smoothness exponent")
    tau: float = option(3.0, minimum=0.0, doc="inverse correlation length, in units of the box")
    amplitude: float = option(1.0, above=0.0, doc="standard deviation, root mean square over the box")
    mean: float = option(0.0, doc="mean of the field")

    def draw(self, key: Key, box: Box) -> CosineSeries:
        """A cosine series."""
        return _cosine_series(self, key, box, positive=False)


@final
@register("field", "lognormal")
@dataclass(frozen=True)
class LogNormalField(RandomField):
    """Random positive field on a bounded box: the exponential of a smooth Gaussian field, for permeabilities."""

    modes: int = option(6, minimum=2, doc="modes per axis")
    alpha: float = option(2.0, above=0.0, doc="smoothness exponent")
    tau: float = option(3.0, minimum=0.0, doc="inverse correlation length, in units of the box")
    amplitude: float = option(0.5, above=0.0, doc="standard deviation of the logarithm, root mean square over the box")
    mean: float = option(0.0, doc="mean of the logarithm")

    def draw(self, key: Key, box: Box) -> CosineSeries:
        """The exponential of a cosine series."""
        return _cosine_series(self, key, box, positive=True)


@final
@register("field", "sine")
@dataclass(frozen=True)
class SineWave(RandomField):
    """A fixed product of sines, amplitude prod_i sin(pi halves s_i + phase), s from 0 to 1 along each axis."""

    amplitude: float = option(1.0, doc="amplitude")
    halves: int = option(2, minimum=1, doc="half wavelengths per axis; an even number is periodic")
    phase: float = option(0.0, unit="rad", doc="phase")

    def draw(self, key: Key, box: Box) -> SineProduct:
        """The same function for every key."""
        del key
        return SineProduct(jnp.asarray(self.amplitude), jnp.asarray(self.phase), self.halves, box)


@final
@register("field", "constant")
@dataclass(frozen=True)
class ConstantField(RandomField):
    """The same number everywhere."""

    value: float = option(doc="the value")

    def draw(self, key: Key, box: Box) -> Constant:
        """The same function for every key."""
        del key, box
        return Constant(jnp.asarray(float(self.value)))


def _cosine_series(config: RandomCosineSeries | LogNormalField, key: Key, box: Box, *, positive: bool) -> CosineSeries:
    """Karhunen-Loeve series: independent amplitudes of orthonormal modes, with the eigenvalues of the covariance."""
    waves = quadrant(config.modes, box.dim)
    squares = jnp.sum((jnp.pi * jnp.asarray(waves, dtype=float)) ** 2, axis=1)
    spectrum = (squares + config.tau**2) ** (-config.alpha / 2)
    axes_used = jnp.sum(jnp.asarray(waves) > 0, axis=1)
    scale = config.amplitude / jnp.sqrt(jnp.sum(spectrum**2))
    normalized = 2 ** (axes_used / 2)  # the mean square of each cosine is 1/2
    amplitude = scale * spectrum * normalized * jax.random.normal(key, (len(waves),))
    return CosineSeries(jnp.asarray(config.mean), amplitude, waves, box, positive)
