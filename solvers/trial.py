"""Smooth fields to try an equation on: sums of a few harmonics, as PyTrees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np

from sciml.domain import Box
from sciml.equations.base import Equation, unknown_names
from sciml.types import Array

PERIOD = 2 * np.pi
# Small programs that run for a moment: compiling them takes longest.
QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
TYPICAL = (1.0, 0.6)  # mean and amplitude of a field that its equation says nothing about


@jax.tree_util.register_dataclass
@final
@dataclass(frozen=True)
class Harmonics:
    """mean + sum_m a_m cos(k_m x + w_m t + p_m); amplitudes, speeds, phases of shape (m,), waves of (m, dim)."""

    mean: Array
    amplitudes: Array
    waves: Array
    speeds: Array
    phases: Array

    def __call__(self, x: Array, t: Any) -> Array:
        """The value at one point x, shape (dim,), and time t."""
        return self.mean + jnp.sum(self.amplitudes * jnp.cos(self.waves @ x + self.speeds * t + self.phases))

    def at_start(self, x: Array) -> Array:
        """The value at time zero."""
        return self(x, 0.0)


def harmonics(
    dim: int, seed: int, *, highest: int = 2, speed: float = 1.0, mean: float = 1.0, amplitude: float = 0.6
) -> Harmonics:
    """A random field of period 2 pi between mean -+ amplitude, with wave numbers up to `highest` and angular speeds
    near `speed`."""
    random = np.random.default_rng(seed)
    count = 3
    waves = random.integers(-highest, highest + 1, (count, dim)).astype(float)
    waves[0], waves[1] = 1.0, highest
    return Harmonics(
        mean=jnp.asarray(float(mean)),
        amplitudes=jnp.asarray(amplitude * random.uniform(0.5, 1.0, count) / count),
        waves=jnp.asarray(waves),
        speeds=jnp.asarray(speed * random.uniform(0.7, 1.3, count)),
        phases=jnp.asarray(random.uniform(0, PERIOD, count)),
    )


@jax.tree_util.register_dataclass
@final
@dataclass(frozen=True)
class Folded:
    """mean + amplitude sin(phase), with a phase in radians that is itself a sum of harmonics: analytic in space, with
    a spectrum that falls faster than any power but never ends."""

    mean: Array
    amplitude: Array
    phase: Harmonics

    def __call__(self, x: Array, t: Any) -> Array:
        """The value at one point x, shape (dim,), and time t."""
        return self.mean + self.amplitude * jnp.sin(self.phase(x, t))


def box(dim: int, *, periodic: bool = True) -> Box:
    """[0, 2 pi]^dim, or the unit box if bounded."""
    return Box((0.0,) * dim, (PERIOD if periodic else 1.0,) * dim, (periodic,) * dim)


def smooth_fields(equation: Equation, dim: int, *, seed: int, highest: int = 2, speed: float = 1.0) -> dict[str, Any]:
    """One smooth random field per unknown, auxiliary ones included, within what the equation calls typical."""
    fields = {}
    for i, name in enumerate(unknown_names(equation)):
        mean, amplitude = equation.typical.get(name, TYPICAL)
        fields[name] = harmonics(dim, seed + i, highest=highest, speed=speed, mean=mean, amplitude=amplitude)
    return fields


def folded_fields(equation: Equation, dim: int, *, seed: int, speed: float = 1.0) -> dict[str, Any]:
    """As `smooth_fields`, with fields that no number of Fourier modes holds."""
    fields = {}
    for i, name in enumerate(unknown_names(equation)):
        mean, amplitude = equation.typical.get(name, TYPICAL)
        phase = harmonics(dim, seed + i, highest=1, speed=speed, mean=0.3, amplitude=1.5)
        fields[name] = Folded(jnp.asarray(float(mean)), jnp.asarray(float(amplitude)), phase)
    return fields
