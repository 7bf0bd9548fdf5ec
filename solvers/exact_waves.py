"""Exact solutions of linear evolutions on periodic boxes: every mode decays or turns by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from sciml.calculus import FourierBasis
from sciml.domain import Grid
from sciml.equations.advection import Advection
from sciml.equations.heat import Heat
from sciml.equations.maxwell import MaxwellTE, MaxwellTM
from sciml.equations.schroedinger import Schroedinger
from sciml.equations.wave import Wave
from sciml.functions import evaluate_on
from sciml.problem import Problem

Spectra = Mapping[str, Any]
"""Field name to Fourier coefficients on a grid."""

Evolve = Callable[[Spectra, FourierBasis, float], Spectra]
"""(coefficients at time 0, basis, time) -> coefficients then."""


class ByModes(NamedTuple):
    """Fields of shape (T, *grid.shape) by name, and a bound of their relative error."""

    fields: dict[str, np.ndarray]
    error: float


def advanced_by_modes(problem: Problem, grid: Grid, times: np.ndarray, evolve: Evolve, oversampling: int) -> ByModes:
    """Fourier coefficients on a grid `oversampling` times finer, advanced in time; no mode may grow.

    What the finer grid cannot hold is at most what it holds in the upper half of its wave numbers, for coefficients
    that fall at least as 1/|k| (a jump does), and it is neither damped nor lost: it appears as other modes.
    """
    fine = grid.refined(oversampling)
    basis = FourierBasis(fine)
    points = jnp.asarray(fine.points)
    spectra = {name: basis.forward(evaluate_on(f, points, 0.0)) for name, f in problem.initial.items()}
    high = [abs(k) * 4 >= n for k, n in zip(basis.orders, fine.shape, strict=True)]
    is_high = np.logical_or.reduce(np.broadcast_arrays(*high))
    every = (slice(None, None, oversampling),) * grid.dim
    spread = np.sqrt(len(times))
    frames = [evolve(spectra, basis, float(t)) for t in times]
    fields, error = {}, 0.0
    for name in problem.field_names:
        values = np.stack([np.asarray(basis.backward(frame[name])) for frame in frames])
        tail = np.stack([np.asarray(basis.backward(jnp.where(is_high, frame[name], 0.0))) for frame in frames])
        first = np.linalg.norm(np.asarray(basis.backward(jnp.where(is_high, spectra[name], 0.0))))
        largest = max(float(np.linalg.norm(tail)), float(spread * first))
        error = max(error, largest / float(np.linalg.norm(values) or 1.0))
        fields[name] = values[:, *every]
    return ByModes(fields, error)


def heat(equation: Heat) -> Evolve:
    """u decays as exp(-D |k|^2 t)."""

    def evolve(start: Spectra, basis: FourierBasis, t: float) -> dict[str, Any]:
        return {"u": jnp.exp(equation.diffusivity * basis.laplacian * t) * start["u"]}

    return evolve


def advection(equation: Advection) -> Evolve:
    """u turns as exp(-i c (k_1 + ... + k_d) t)."""

    def evolve(start: Spectra, basis: FourierBasis, t: float) -> dict[str, Any]:
        orders = zip(basis.orders, basis.grid.box.lengths, strict=True)
        angle = equation.speed * t * sum(2 * np.pi * k / length for k, length in orders)
        return {"u": jnp.exp(-1j * angle) * start["u"]}

    return evolve


def wave(equation: Wave) -> Evolve:
    """u = cos(c|k|t) u_0 + sin(c|k|t)/(c|k|) v_0, and v its derivative in time: d'Alembert's solution, by modes."""

    def evolve(start: Spectra, basis: FourierBasis, t: float) -> dict[str, Any]:
        cosine, sine, _ = _turns(equation.speed, basis, t)
        pull = equation.speed**2 * basis.laplacian
        return {
            "u": cosine * start["u"] + sine * start["v"],
            "v": cosine * start["v"] + pull * sine * start["u"],
        }

    return evolve


def schroedinger(equation: Schroedinger) -> Evolve:
    """Without focusing p turns as exp(-i D |k|^2 t)."""

    def evolve(start: Spectra, basis: FourierBasis, t: float) -> dict[str, Any]:
        angle = equation.dispersion * basis.laplacian * t
        cosine, sine = jnp.cos(angle), jnp.sin(angle)
        real, imaginary = start["real"], start["imaginary"]
        return {"real": cosine * real - sine * imaginary, "imaginary": cosine * imaginary + sine * real}

    return evolve


def maxwell_tm(equation: MaxwellTM) -> Evolve:
    """E obeys the wave equation; H is its initial value plus the time integral of curl E."""
    inverse = 1 / equation.permeability

    def evolve(start: Spectra, basis: FourierBasis, t: float) -> dict[str, Any]:
        dx, dy = basis.multiplier(0, 1), basis.multiplier(1, 1)
        rate = (dx * start["hy"] - dy * start["hx"]) / equation.permittivity
        now, integral = _driven(start["ez"], rate, basis, _light(equation), t)
        return {
            "ez": now,
            "hx": start["hx"] - inverse * dy * integral,
            "hy": start["hy"] + inverse * dx * integral,
        }

    return evolve


def maxwell_te(equation: MaxwellTE) -> Evolve:
    """H obeys the wave equation; E is its initial value plus the time integral of curl H."""
    inverse = 1 / equation.permittivity

    def evolve(start: Spectra, basis: FourierBasis, t: float) -> dict[str, Any]:
        dx, dy = basis.multiplier(0, 1), basis.multiplier(1, 1)
        rate = (dy * start["ex"] - dx * start["ey"]) / equation.permeability
        now, integral = _driven(start["hz"], rate, basis, _light(equation), t)
        return {
            "hz": now,
            "ex": start["ex"] + inverse * dy * integral,
            "ey": start["ey"] - inverse * dx * integral,
        }

    return evolve


def _light(equation: Any) -> Any:
    return 1 / np.sqrt(equation.permittivity * equation.permeability)


def _driven(start: Any, rate: Any, basis: FourierBasis, speed: Any, t: float) -> tuple[Any, Any]:
    """A solution of the wave equation and its integral over time, from its value and its rate at the start."""
    cosine, sine, versed = _turns(speed, basis, t)
    return cosine * start + sine * rate, sine * start + versed * rate


def _turns(speed: Any, basis: FourierBasis, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """cos(w t), sin(w t)/w and (1 - cos(w t))/w^2 per mode, w = speed |k|."""
    angle = np.sqrt(-np.asarray(basis.laplacian)) * float(speed) * t
    half = np.sinc(angle / (2 * np.pi))
    return np.cos(angle), t * np.sinc(angle / np.pi), 0.5 * t**2 * half**2
