"""Exact solutions of the equations that have one, on the points of a grid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciml.domain import Grid
from sciml.equations.advection import Advection
from sciml.equations.burgers import Burgers
from sciml.equations.heat import Heat
from sciml.equations.maxwell import MaxwellTE, MaxwellTM
from sciml.equations.schroedinger import Schroedinger
from sciml.equations.wave import Wave
from sciml.functions import evaluate_on
from sciml.problem import Problem
from sciml.solvers import exact_waves
from sciml.types import Array

OVERSAMPLING = 4
QUADRATURE_POINTS = 8192
EXPONENT_RANGE = 40.0  # e^-40 is below rounding
ROUNDING = 1e-14  # of an exact solution, relative


@dataclass(frozen=True)
class ExactSolution:
    """Exact fields, name to values (T, *grid.shape) or (*grid.shape), and how far they may be off (relative L2)."""

    fields: Mapping[str, np.ndarray]
    error: float


def exact_solution(problem: Problem, grid: Grid, times: Any = None) -> ExactSolution | None:
    """The exact solution on `grid` at `times` (shape (T,), None if steady), or None where none is known.

    Known: problems that bring their own `exact`; heat, advection, wave, Maxwell and free Schroedinger on periodic
    boxes (Fourier coefficients of the initial field, exact for band-limited fields, else with the error that the tail
    of the spectrum tells); viscous Burgers on a periodic interval (Cole-Hopf). None on a grid of
    cells: averages are not values at points.
    """
    if grid.cells:
        return None
    if problem.exact and set(problem.exact) == set(problem.field_names):
        return ExactSolution(_own(problem, grid, times), ROUNDING)
    if problem.source or not all(grid.box.periodic) or times is None:
        return None
    return _known(problem.equation, problem, grid, np.atleast_1d(np.asarray(times, float)))


def _own(problem: Problem, grid: Grid, times: Any) -> dict[str, np.ndarray]:
    if times is None:
        return {name: np.asarray(v) for name, v in problem.exact_values(grid).items()}
    frames = [problem.exact_values(grid, t) for t in np.atleast_1d(np.asarray(times, float))]
    return {name: np.stack([np.asarray(frame[name]) for frame in frames]) for name in problem.exact}


@singledispatch
def _known(equation: Any, problem: Problem, grid: Grid, times: np.ndarray) -> ExactSolution | None:
    """No exact solution."""
    del equation, problem, grid, times
    return None


@_known.register
def _(equation: Heat, problem: Problem, grid: Grid, times: np.ndarray) -> ExactSolution | None:
    """Each mode decays as exp(-D |k|^2 t)."""
    return _linear(exact_waves.heat(equation), problem, grid, times)


@_known.register
def _(equation: Advection, problem: Problem, grid: Grid, times: np.ndarray) -> ExactSolution | None:
    """Each mode turns as exp(-i c (k_1 + ... + k_d) t)."""
    if np.ndim(equation.speed):
        return None
    return _linear(exact_waves.advection(equation), problem, grid, times)


@_known.register
def _(equation: Wave, problem: Problem, grid: Grid, times: np.ndarray) -> ExactSolution | None:
    """d'Alembert's solution, mode by mode."""
    return _linear(exact_waves.wave(equation), problem, grid, times)


@_known.register
def _(equation: MaxwellTM, problem: Problem, grid: Grid, times: np.ndarray) -> ExactSolution | None:
    """A wave for E, and H from it."""
    return _linear(exact_waves.maxwell_tm(equation), problem, grid, times)


@_known.register
def _(equation: MaxwellTE, problem: Problem, grid: Grid, times: np.ndarray) -> ExactSolution | None:
    """A wave for H, and E from it."""
    return _linear(exact_waves.maxwell_te(equation), problem, grid, times)


@_known.register
def _(equation: Schroedinger, problem: Problem, grid: Grid, times: np.ndarray) -> ExactSolution | None:
    """Without focusing every mode turns as exp(-i D |k|^2 t)."""
    if equation.focusing != 0:
        return None
    return _linear(exact_waves.schroedinger(equation), problem, grid, times)


def _linear(evolve: exact_waves.Evolve, problem: Problem, grid: Grid, times: np.ndarray) -> ExactSolution:
    fields, error = exact_waves.advanced_by_modes(problem, grid, times, evolve, OVERSAMPLING)
    return ExactSolution(fields, max(error, ROUNDING))


@_known.register
def _(equation: Burgers, problem: Problem, grid: Grid, times: np.ndarray) -> ExactSolution | None:
    """Cole-Hopf: u is an average of (x - y)/t with positive weights, so nothing cancels however small the viscosity.

    E. Hopf, Comm. Pure Appl. Math. 3 (1950) 201, eq. (7). The error is the change on halving the quadrature points.
    """
    if grid.dim != 1 or equation.viscosity == 0:
        return None
    full, half = (
        _cole_hopf(equation.viscosity, problem.initial["u"], grid, times, n)
        for n in (QUADRATURE_POINTS, QUADRATURE_POINTS // 2)
    )
    error = float(np.linalg.norm(full - half) / np.linalg.norm(full))
    return ExactSolution({"u": full}, max(error, ROUNDING))


def _cole_hopf(viscosity: Any, initial: Any, grid: Grid, times: np.ndarray, n: int) -> np.ndarray:
    line = Grid(grid.box, (n,))
    length, low, nu = grid.box.lengths[0], grid.box.lower[0], float(viscosity)
    u0 = evaluate_on(initial, jnp.asarray(line.points), 0.0)
    mean = float(jnp.mean(u0))
    potential = np.asarray(_antiderivative(u0 - mean, length)) / (2 * nu)
    spread = float(np.ptp(potential))
    y = low + length / n * np.arange(n)
    frames = []
    for t in times:
        if t == 0:
            frames.append(np.asarray(evaluate_on(initial, jnp.asarray(grid.points), 0.0)))
            continue
        x = grid.axes[0] - mean * t
        reach = int(np.ceil(np.sqrt(4 * nu * t * (spread + EXPONENT_RANGE)) / length)) + 1
        shift = np.floor((x - low) / length) * length
        images = shift[:, None, None] + length * np.arange(-reach, reach + 1)[:, None]
        frames.append(np.asarray(_average(x, y, images, potential, nu, t)) + mean)
    return np.stack(frames)


def _antiderivative(values: Array, length: float) -> Array:
    """The periodic antiderivative of a field of mean zero, shape (n,)."""
    coefficients = jnp.fft.rfft(values)
    k = 2 * np.pi * np.arange(coefficients.shape[0]) / length
    return jnp.fft.irfft(jnp.where(k == 0, 0.0, coefficients / (1j * np.where(k == 0, 1.0, k))), n=values.shape[0])


@jax.jit
def _average(x: Array, y: Array, images: Array, potential: Array, nu: Any, t: Any) -> Array:
    """The average of (x - y)/t, shape (n,), with weights exp(-(x-y)^2/(4 nu t) - potential(y)); one x at a time."""

    def at(point: tuple[Array, Array]) -> Array:
        place, copies = point
        distance = place - (y + copies)
        exponent = -(distance**2) / (4 * nu * t) - potential
        weight = jnp.exp(exponent - jnp.max(exponent))
        return jnp.sum(weight * distance) / (t * jnp.sum(weight))

    return jax.lax.map(at, (jnp.asarray(x), jnp.asarray(images)))
