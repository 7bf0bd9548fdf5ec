"""Observed orders in space of evolutions: differences on bounded boxes, Fourier series on periodic ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciml.calculus.series import GridSeries, chebyshev_times
from sciml.domain import Grid
from sciml.equations.base import Evolution, field_names, remainder, stiff_part
from sciml.functions import evaluate_on
from sciml.problem import manufactured
from sciml.solvers.evolution import discretize
from sciml.solvers.order import POINTS, ObservedOrder, Rates
from sciml.solvers.rk4 import Rk4
from sciml.solvers.solve import sampled
from sciml.solvers.structure import derivatives, read_structure
from sciml.solvers.trial import PERIOD, QUICK, box, folded_fields, smooth_fields
from sciml.types import Array

HORIZON = 0.05
SPEED = 20.0  # radians per time, so that the boundary values move
INTERVALS = {1: (16, 24, 32, 48, 64), 2: (8, 12, 16, 20, 24), 3: (6, 8, 10, 12, 14)}
WAVES = {1: 4, 2: 2, 3: 2}  # per 2 pi, on the unit box
SERIES_POINTS = {1: (8, 12, 16, 24), 2: (8, 12, 16, 24), 3: (6, 8, 12, 16)}
NODES = 24
FEWEST_STEPS = 128
ROUGHER = 2.5  # of differences, whose modes are not cut by the 2/3 rule as those that `rates` are measured with
SECOND_ORDER = {"first", "second", "compact"}


@dataclass(frozen=True)
class SpectralDecay:
    """Errors (relative L2) of Fourier series on ever more points per axis, both shape (levels,)."""

    points: tuple[int, ...]
    errors: np.ndarray

    def holds(self) -> bool:
        """Whether the error falls faster and faster on a logarithmic scale, or to rounding: beyond any order."""
        return bool(self.errors[-1] < 1e-9 or np.log(self.errors[0] / self.errors[-1]) > self._order_eight)

    @property
    def _order_eight(self) -> float:
        return 8 * float(np.log(self.points[-1] / self.points[0]))


def has_bounded_form(equation: Evolution) -> bool:
    """Whether one condition per field and face makes the equation well posed: second derivatives and no higher ones,
    no auxiliary fields."""
    texts: tuple[Callable[..., Any], ...] = (
        lambda u, d: stiff_part(equation, u, d),
        lambda u, d: remainder(equation, u, d),
    )
    if equation.auxiliary:
        return False
    found: frozenset[str] = frozenset()
    for text in texts:
        found |= derivatives(read_structure(text, field_names(equation), min(equation.dims)))
    return found <= SECOND_ORDER and bool(found - {"first"})


def order_on_bounded_box(equation: Evolution, order: int, rates: Rates) -> ObservedOrder:
    """The order of the differences with Dirichlet conditions that move, on the unit box, from five grids."""
    dim = min(equation.dims)
    domain = box(dim, periodic=False)
    exact = smooth_fields(equation, dim, seed=5, highest=WAVES[dim], speed=SPEED)
    grids = [Grid(domain, (n + 1,) * dim) for n in INTERVALS[dim]]
    finer = PERIOD * INTERVALS[dim][-1] / POINTS[dim]  # mesh widths of the grid of `rates` in one of the finest
    errors = _errors(equation, exact, grids, Rk4(difference_order=order), ROUGHER * rates.whole * finer**2)
    sizes = 1.0 / np.asarray(INTERVALS[dim])
    return ObservedOrder("differences", order, sizes, errors, float(errors[-1]))


def decay_on_periodic_box(equation: Evolution, rates: Rates) -> SpectralDecay:
    """The error of Fourier series for an exact solution whose spectrum does not end."""
    dim = min(equation.dims)
    exact = folded_fields(equation, dim, seed=29, speed=SPEED)
    counts = SERIES_POINTS[dim]
    grids = [Grid(box(dim), (n,) * dim) for n in counts]
    errors = _errors(equation, exact, grids, Rk4(), ROUGHER * rates.whole * (counts[-1] / POINTS[dim]) ** 4)
    return SpectralDecay(counts, errors)


def _errors(equation: Evolution, exact: Any, grids: list[Grid], method: Rk4, fastest: float) -> np.ndarray:
    times = jnp.asarray(chebyshev_times(HORIZON, NODES))
    points = jnp.concatenate([jnp.asarray(grid.points).reshape(-1, grid.dim) for grid in grids])
    frames = _source_at(equation, exact, points, times, domain=grids[0].box)
    steps = max(FEWEST_STEPS, int(np.ceil(fastest * HORIZON / 2)))
    errors, start = [], 0
    for grid in grids:
        stop = start + int(np.prod(grid.shape))
        parts = {name: f[:, start:stop].reshape(NODES, *grid.shape) for name, f in frames.items()}
        sources = {name: GridSeries(values, HORIZON) for name, values in parts.items()}
        errors.append(float(_error(equation, exact, sources, steps, grid=grid, method=method)))
        start = stop
    return np.asarray(errors)


@partial(jax.jit, static_argnames=("domain",), compiler_options=QUICK)
def _source_at(equation: Any, exact: Any, points: Array, times: Array, *, domain: Any) -> dict[str, Array]:
    problem = manufactured(equation, domain, exact, horizon=HORIZON)
    return {name: jax.vmap(lambda t, f=f: evaluate_on(f, points, t))(times) for name, f in problem.source.items()}


@partial(jax.jit, static_argnames=("grid", "method"), compiler_options=QUICK)
def _error(equation: Any, exact: Any, sources: Any, steps: Any, *, grid: Grid, method: Rk4) -> Array:
    """The relative L2 error after classical Runge-Kutta steps, written as a loop over the stages: quick to compile."""
    problem = dataclasses.replace(manufactured(equation, grid.box, exact, horizon=HORIZON), source=sources)
    system = discretize(sampled(problem, grid), grid, method)
    h = HORIZON / steps

    def step(i: Any, y: Array) -> Array:
        def stage(carry: tuple[Array, Array], weights: tuple[Array, Array]) -> tuple[tuple[Array, Array], None]:
            slope, total = carry
            node, weight = weights
            slope = system.rate(y + h * node * slope, (i + node) * h)
            return (slope, total + weight * slope), None

        nodes, weights = jnp.asarray([0.0, 0.5, 0.5, 1.0]), jnp.asarray([1.0, 2.0, 2.0, 1.0]) / 6
        zero = jnp.zeros_like(y)
        return y + h * jax.lax.scan(stage, (zero, zero), (nodes, weights))[0][1]

    found = system.space.decode(jax.lax.fori_loop(0, steps, step, system.initial), HORIZON)
    truth = problem.exact_values(grid, HORIZON)
    exact_values = jnp.stack([truth[name] for name in problem.field_names])
    return jnp.linalg.norm(found - exact_values) / jnp.linalg.norm(exact_values)
