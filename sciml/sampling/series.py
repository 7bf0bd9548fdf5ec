"""Trigonometric series as functions of a point: smooth, differentiable, the same at points and on any grid."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import final

import jax
import jax.numpy as jnp
import numpy as np

from sciml.domain import Box
from sciml.types import Array, Float, Scalar

Waves = tuple[tuple[int, ...], ...]


@final
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FourierSeries:
    """f(x) = mean + sum_m cosine_m cos(w_m.s) + sine_m sin(w_m.s), with s = 2 pi (x - lower)/length.

    `cosine` and `sine` have shape (modes,); `waves` holds the integer wave vectors, shape (modes, dim).
    """

    mean: Scalar
    cosine: Float[Array, " modes"]
    sine: Float[Array, " modes"]
    waves: Waves = field(metadata={"static": True})
    box: Box = field(metadata={"static": True})

    def __call__(self, x: Float[Array, " dim"]) -> Scalar:
        """The value at one point."""
        phase = 2 * jnp.pi * _vectors(self.waves) @ _unit(self.box, x)
        return self.mean + self.cosine @ jnp.cos(phase) + self.sine @ jnp.sin(phase)

    @property
    def coefficients(self) -> Float[Array, " n"]:
        """All numbers that define the function: cosine then sine amplitudes, shape (2 modes,)."""
        return jnp.concatenate([self.cosine, self.sine])

    def damped(self, factors: Float[Array, " modes"]) -> FourierSeries:
        """The series with every mode multiplied by a factor."""
        return FourierSeries(self.mean, self.cosine * factors, self.sine * factors, self.waves, self.box)

    @cached_property
    def wavenumbers(self) -> np.ndarray:
        """Wave vectors in rad per length, shape (modes, dim)."""
        return 2 * np.pi * np.asarray(self.waves) / np.asarray(self.box.lengths)


@final
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class CosineSeries:
    """f(x) = mean + sum_m amplitude_m prod_i cos(pi w_mi s_i), with s = (x - lower)/length; if `positive`, its exp.

    The natural basis of a field on a bounded box with zero normal slope.
    """

    mean: Scalar
    amplitude: Float[Array, " modes"]
    waves: Waves = field(metadata={"static": True})
    box: Box = field(metadata={"static": True})
    positive: bool = field(default=False, metadata={"static": True})

    def __call__(self, x: Float[Array, " dim"]) -> Scalar:
        """The value at one point."""
        modes = jnp.prod(jnp.cos(jnp.pi * _vectors(self.waves) * _unit(self.box, x)), axis=-1)
        value = self.mean + self.amplitude @ modes
        return jnp.exp(value) if self.positive else value

    @property
    def coefficients(self) -> Float[Array, " n"]:
        """The amplitudes, shape (modes,)."""
        return self.amplitude


def half_space(modes: int, dim: int) -> Waves:
    """Integer wave vectors with entries up to `modes`, one of each pair +-w, without zero, lowest first."""
    vectors = itertools.product(range(-modes, modes + 1), repeat=dim)
    return _by_length(w for w in vectors if next((k for k in w if k != 0), 0) > 0)


def quadrant(modes: int, dim: int) -> Waves:
    """Non-negative integer wave vectors with entries below `modes`, without zero, lowest first."""
    return _by_length(w for w in itertools.product(range(modes), repeat=dim) if any(w))


def _by_length(vectors: Iterable[tuple[int, ...]]) -> Waves:
    return tuple(sorted(vectors, key=lambda w: (sum(k * k for k in w), w)))


def _vectors(waves: Waves) -> Array:
    return jnp.asarray(waves, dtype=jnp.float64)


def _unit(box: Box, x: Array) -> Array:
    return (x - jnp.asarray(box.lower)) / jnp.asarray(box.lengths)


@final
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SineProduct:
    """f(x) = amplitude prod_i sin(pi halves s_i + phase), with s = (x - lower)/length."""

    amplitude: Scalar
    phase: Scalar
    halves: int = field(metadata={"static": True})
    box: Box = field(metadata={"static": True})

    def __call__(self, x: Float[Array, " dim"]) -> Scalar:
        """The value at one point."""
        return self.amplitude * jnp.prod(jnp.sin(jnp.pi * self.halves * _unit(self.box, x) + self.phase))

    @property
    def coefficients(self) -> Float[Array, " n"]:
        """None: every draw is the same."""
        return jnp.zeros(0)


@final
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Constant:
    """f(x) = value."""

    value: Scalar

    def __call__(self, x: Float[Array, " dim"]) -> Scalar:
        """The value at one point."""
        del x
        return self.value

    @property
    def coefficients(self) -> Float[Array, " n"]:
        """None: every draw is the same."""
        return jnp.zeros(0)
