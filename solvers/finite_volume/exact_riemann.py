"""Exact solutions of Riemann problems: an ideal gas, and shallow water on a wet or dry bed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

ROUNDING = 1e-15


class Gas(NamedTuple):
    """A state of an ideal gas in one dimension: kg/m^3, m/s, Pa."""

    density: float
    velocity: float
    pressure: float


class Star(NamedTuple):
    """Between the two outer waves: one pressure and velocity, a density at either side of the contact."""

    pressure: float
    velocity: float
    density_left: float
    density_right: float


def gas_star(left: Gas, right: Gas, gamma: float = 1.4) -> Star:
    """The star region; raises `ValueError` where a vacuum opens.

    E. F. Toro, Riemann Solvers and Numerical Methods for Fluid Dynamics (2009), sec. 4.2.
    """

    def excess(pressure: float) -> float:
        return sum(_velocity_drop(pressure, s, gamma) for s in (left, right)) + right.velocity - left.velocity

    top = max(left.pressure, right.pressure)
    while excess(top) < 0:
        top *= 4
    pressure = _root(excess, 0.0, top, ROUNDING * top)
    drop = _velocity_drop(pressure, right, gamma) - _velocity_drop(pressure, left, gamma)
    velocity = 0.5 * (left.velocity + right.velocity) + 0.5 * drop
    return Star(pressure, velocity, *(_density(pressure, s, gamma) for s in (left, right)))


def _root(function: Callable[[float], float], low: float, high: float, tolerance: float) -> float:
    root: Any = brentq(function, low, high, xtol=tolerance, rtol=4 * np.finfo(float).eps)
    return float(root)


def _velocity_drop(pressure: float, state: Gas, gamma: float) -> float:
    """Toro (4.6)-(4.7): change of velocity through the wave that leads from a state to a pressure."""
    if pressure > state.pressure:
        a, b = 2 / ((gamma + 1) * state.density), (gamma - 1) / (gamma + 1) * state.pressure
        return (pressure - state.pressure) * np.sqrt(a / (pressure + b))
    sound = np.sqrt(gamma * state.pressure / state.density)
    return 2 * sound / (gamma - 1) * ((pressure / state.pressure) ** ((gamma - 1) / (2 * gamma)) - 1)


def _density(pressure: float, state: Gas, gamma: float) -> float:
    ratio, g = pressure / state.pressure, (gamma - 1) / (gamma + 1)
    return state.density * ((ratio + g) / (g * ratio + 1) if ratio > 1 else ratio ** (1 / gamma))


def gas_profile(left: Gas, right: Gas, speeds: np.ndarray, gamma: float = 1.4) -> np.ndarray:
    """(density, velocity, pressure) at x/t = speeds, shape (3, n). Toro, sec. 4.5."""
    star = gas_star(left, right, gamma)
    speeds = np.asarray(speeds, float)
    from_left = _half(left, star.pressure, star.velocity, star.density_left, speeds, gamma)
    mirrored = Gas(right.density, -right.velocity, right.pressure)
    from_right = _half(mirrored, star.pressure, -star.velocity, star.density_right, -speeds, gamma)
    from_right[1] *= -1
    return np.where(speeds < star.velocity, from_left, from_right)


def _half(s: Gas, pressure: float, velocity: float, density: float, speeds: np.ndarray, gamma: float) -> np.ndarray:
    """Everything left of the contact."""
    sound = np.sqrt(gamma * s.pressure / s.density)
    outer, inner = np.asarray(s)[:, None], np.asarray([density, velocity, pressure])[:, None]
    if pressure > s.pressure:
        ratio = pressure / s.pressure
        shock = s.velocity - sound * np.sqrt((gamma + 1) / (2 * gamma) * ratio + (gamma - 1) / (2 * gamma))
        return np.where(speeds < shock, outer, inner)
    head, tail = s.velocity - sound, velocity - sound * (pressure / s.pressure) ** ((gamma - 1) / (2 * gamma))
    local = 2 / (gamma + 1) + (gamma - 1) / ((gamma + 1) * sound) * (s.velocity - speeds)
    local = np.maximum(local, 0.0)  # not used where negative
    fan = np.stack([
        s.density * local ** (2 / (gamma - 1)),
        2 / (gamma + 1) * (sound + (gamma - 1) / 2 * s.velocity + speeds),
        s.pressure * local ** (2 * gamma / (gamma - 1)),
    ])  # fmt: skip
    return np.where(speeds < head, outer, np.where(speeds > tail, inner, fan))


@dataclass(frozen=True)
class DamBreak:
    """Still water of two depths (m), the left one larger; the right one may be zero. `gravity` in m/s^2."""

    left: float
    right: float
    gravity: float = 9.81

    @property
    def star(self) -> tuple[float, float]:
        """(depth, velocity) between fan and bore; J. J. Stoker, Water Waves (1957), sec. 10.8."""

        def excess(depth: float) -> float:
            fan = 2 * (np.sqrt(self.gravity * self.left) - np.sqrt(self.gravity * depth))
            jump = np.sqrt(0.5 * self.gravity * (depth + self.right) / (depth * self.right))
            return fan - (depth - self.right) * jump

        depth = _root(excess, self.right, self.left, ROUNDING)
        return depth, 2 * float(np.sqrt(self.gravity * self.left) - np.sqrt(self.gravity * depth))

    @property
    def front(self) -> float:
        """Speed of the bore, or of the edge of the water on a dry bed (A. Ritter, 1892), in m/s."""
        if self.right == 0:
            return 2 * float(np.sqrt(self.gravity * self.left))
        depth, velocity = self.star
        return depth * velocity / (depth - self.right)

    def profile(self, speeds: np.ndarray) -> np.ndarray:
        """(depth, velocity) at x/t = speeds, shape (2, n)."""
        speeds, wave = np.asarray(speeds, float), np.sqrt(self.gravity * self.left)
        fan = np.stack([(2 * wave - speeds) ** 2 / (9 * self.gravity), 2 / 3 * (speeds + wave)])
        before, after = np.asarray([[self.left], [0.0]]), np.asarray([[self.right], [0.0]])
        if self.right == 0:
            inside = np.where(speeds < 2 * wave, fan, after)
        else:
            depth, velocity = self.star
            flat = np.asarray([[depth], [velocity]])
            tail = velocity - np.sqrt(self.gravity * depth)
            inside = np.where(speeds < tail, fan, np.where(speeds < self.front, flat, after))
        return np.where(speeds < -wave, before, inside)
