"""Closed-form solutions with one profile that moves: solitons, fronts, plane waves, as functions of space and time.

Each function returns u(x, t) of one point x, shape (dim,), or such functions by field name, to be given to
`make_problem` as `initial` and `exact`. Profiles on the whole line serve on a periodic box of length `period` that is
so long that their tails are below rounding; they then come back at the other end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from sciml.types import Array

Solution = Callable[[Array, Any], Array]
"""The value at a point x, shape (dim,), and a time."""


def kdv_soliton(speed: float, *, center: float = 0.0, period: float | None = None) -> Solution:
    """u = c/2 sech^2(sqrt(c) (x - c t)/2) of u_t + 6 u u_x + u_xxx = 0.

    D. J. Korteweg, G. de Vries, Phil. Mag. 39 (1895) 422.
    """

    def solution(x: Array, t: Any) -> Array:
        distance = _nearest(x[0] - center - speed * t, period)
        return speed / 2 / jnp.cosh(np.sqrt(speed) / 2 * distance) ** 2

    return solution


def kdv_two_solitons(slow: float, fast: float, *, meeting: float = 0.0) -> Solution:
    """Two solitons of speeds k^2 that meet at x = 0 at the time `meeting`: u = 2 (log F)_xx.

    F = 1 + e^a + e^b + A e^{a+b}, a = k x - k^3 t. R. Hirota, Phys. Rev. Lett. 27 (1971) 1192, eq. (9).
    """
    k, q = float(np.sqrt(slow)), float(np.sqrt(fast))
    coupling = ((q - k) / (q + k)) ** 2
    shift = -0.5 * np.log(coupling)  # puts the meeting at the origin

    def solution(x: Array, t: Any) -> Array:
        time = t - meeting
        a, b = k * (x[0] - k**2 * time) + shift, q * (x[0] - q**2 * time) + shift
        exponents = jnp.stack([jnp.zeros_like(a), a, b, a + b + np.log(coupling)])
        weights = jnp.exp(exponents - jnp.max(exponents))
        weights = weights / jnp.sum(weights)
        slopes = jnp.asarray([0.0, k, q, k + q])
        mean = jnp.sum(weights * slopes)
        return 2 * jnp.sum(weights * (slopes - mean) ** 2)  # (log F)_xx is the variance of the slopes

    return solution


def fisher_front(diffusivity: float, rate: float, *, center: float = 0.0) -> Solution:
    """u = (1 + e^{z/sqrt 6})^-2, z = (x - center) sqrt(r/D) - 5/sqrt(6) r t: a front of speed 5 sqrt(r D/6).

    M. J. Ablowitz, A. Zeppetella, Bull. Math. Biol. 41 (1979) 835. It goes from 1 on the left to 0.
    """
    scale = np.sqrt(rate / diffusivity)

    def solution(x: Array, t: Any) -> Array:
        z = (x[0] - center) * scale - 5 / np.sqrt(6) * rate * t
        return 1 / (1 + jnp.exp(z / np.sqrt(6))) ** 2

    return solution


def allen_cahn_front(diffusivity: float, rate: float, *, center: float = 0.0) -> Solution:
    """The steady front u = tanh((x - center) sqrt(r/(2 D))) between -1 and +1.

    S. M. Allen, J. W. Cahn, Acta Metall. 27 (1979) 1085.
    """
    scale = np.sqrt(rate / (2 * diffusivity))
    return lambda x, t: jnp.tanh(scale * (x[0] - center)) + 0.0 * t


def bright_soliton(
    dispersion: float, focusing: float, *, amplitude: float = 1.0, speed: float = 0.0, period: float | None = None
) -> dict[str, Solution]:
    """p = A sech(A sqrt(g/(2 D)) (x - s t)) e^{i (s x/(2 D) + (g A^2/2 - s^2/(4 D)) t)} of `Schroedinger(D, g)`.

    V. E. Zakharov, A. B. Shabat, Sov. Phys. JETP 34 (1972) 62. With a `period` the speed must be a multiple of
    4 pi D/period, so that the phase fits.
    """
    width = amplitude * np.sqrt(focusing / (2 * dispersion))
    wave, turn = speed / (2 * dispersion), focusing * amplitude**2 / 2 - speed**2 / (4 * dispersion)

    def modulus(x: Array, t: Any) -> Array:
        return amplitude / jnp.cosh(width * _nearest(x[0] - speed * t, period))

    return {
        "real": lambda x, t: modulus(x, t) * jnp.cos(wave * x[0] + turn * t),
        "imaginary": lambda x, t: modulus(x, t) * jnp.sin(wave * x[0] + turn * t),
    }


def schroedinger_plane_wave(
    dispersion: float, focusing: float, *, amplitude: float, wave: float
) -> dict[str, Solution]:
    """p = A e^{i (k x + (g A^2 - D k^2) t)}."""
    return _turning(amplitude, wave, focusing * amplitude**2 - dispersion * wave**2)


def ginzburg_landau_plane_wave(equation: Any, wave: float) -> dict[str, Solution]:
    """A = a e^{i (k x - w t)}, a^2 = (m - D k^2)/g, w = D b k^2 + g c a^2; needs D k^2 < m.

    I. S. Aranson, L. Kramer, Rev. Mod. Phys. 74 (2002) 99, eq. (5). `equation` is a `GinzburgLandau`.
    """
    square = (equation.growth - equation.diffusivity * wave**2) / equation.saturation
    turn = equation.linear_dispersion * equation.diffusivity * wave**2
    turn = turn + equation.nonlinear_dispersion * equation.saturation * square
    return _turning(np.sqrt(square), wave, -turn)


def _turning(amplitude: Any, wave: float, turn: Any) -> dict[str, Solution]:
    return {
        "real": lambda x, t: amplitude * jnp.cos(wave * x[0] + turn * t),
        "imaginary": lambda x, t: amplitude * jnp.sin(wave * x[0] + turn * t),
    }


def _nearest(distance: Any, period: float | None) -> Any:
    """The distance to the nearest copy."""
    return distance if period is None else distance - period * jnp.round(distance / period)
