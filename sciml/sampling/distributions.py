"""Distributions of a number, such as a coefficient that differs from sample to sample."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import final

import jax
import jax.numpy as jnp

from sciml.registry import option, register
from sciml.types import Key, Scalar


class Distribution(abc.ABC):
    """Something a number can be drawn from."""

    @abc.abstractmethod
    def draw(self, key: Key) -> Scalar:
        """One number, the same for the same key."""


@final
@register("distribution", "uniform")
@dataclass(frozen=True)
class Uniform(Distribution):
    """Uniform between low and high."""

    low: float = option(doc="lower end")
    high: float = option(doc="upper end")

    def draw(self, key: Key) -> Scalar:
        """One number in [low, high)."""
        return jax.random.uniform(key, minval=self.low, maxval=self.high)


@final
@register("distribution", "log_uniform")
@dataclass(frozen=True)
class LogUniform(Distribution):
    """Uniform in the logarithm between two positive ends."""

    low: float = option(above=0.0, doc="lower end")
    high: float = option(above=0.0, doc="upper end")

    def draw(self, key: Key) -> Scalar:
        """One number in [low, high)."""
        return jnp.exp(jax.random.uniform(key, minval=jnp.log(self.low), maxval=jnp.log(self.high)))


@final
@register("distribution", "normal")
@dataclass(frozen=True)
class Normal(Distribution):
    """Gaussian with a mean and a standard deviation."""

    mean: float = option(0.0, doc="mean")
    std: float = option(1.0, minimum=0.0, doc="standard deviation")

    def draw(self, key: Key) -> Scalar:
        """One number."""
        return self.mean + self.std * jax.random.normal(key)
