"""How large fields and residuals of a problem are before anything is solved: what makes rows of order one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from sciml.calculus.pointwise import Pointwise
from sciml.calculus.spectral import Spectral
from sciml.domain import Grid
from sciml.pinn.sampling import spread_points
from sciml.problem import Problem
from sciml.types import Array

SAMPLES = 256
GRID_POINTS = 32


def residual_sizes(problem: Problem, fields: Mapping[str, float]) -> dict[str, float]:
    """Size of each residual where the fields have the given sizes, in the units of the residual.

    Of an evolution: field over horizon, the size of u_t, and for an auxiliary field its Laplacian at the start. Of a
    steady problem: the larger of what is left of the residual without any field (the forcing) and of what one half
    wave of that size across the box adds to it.
    """
    if problem.is_evolution:
        rates = {name: size / float(problem.horizon) for name, size in fields.items()}
        return rates | {name: laplacian for name, (_, laplacian) in _auxiliary_sizes(problem).items()}
    forcing, operator = _forcing(problem), _operator(problem, fields)
    return {name: max(forcing[name], operator[name]) or 1.0 for name in forcing}


def auxiliary_scales(problem: Problem) -> dict[str, tuple[float, float]]:
    """(0, size) of each auxiliary field at the start; `ConfigError` unless every axis is periodic."""
    return {name: (0.0, size) for name, (size, _) in _auxiliary_sizes(problem).items()}


def _auxiliary_sizes(problem: Problem) -> dict[str, tuple[float, float]]:
    """Sizes at the start of each auxiliary field and of its Laplacian."""
    names = problem.unknown_names[len(problem.field_names) :]
    if not names:
        return {}
    grid = Grid(problem.domain, (GRID_POINTS,) * problem.domain.dim)
    d = Spectral(grid, time=0.0)
    fields = problem.fields({name: d.field(u) for name, u in problem.initial_values(grid).items()}, d)
    sizes = {name: (_size(fields[name].values), _size(d.values(d.laplacian(fields[name])))) for name in names}
    return {name: (size or 1.0, laplacian or 1.0) for name, (size, laplacian) in sizes.items()}


def steady_field_sizes(problem: Problem) -> dict[str, float]:
    """Size of the fields of a steady problem: where one half wave across the box balances the forcing.

    1 where there is no forcing, that is where the faces drive the fields.
    """
    forcing = _forcing(problem)
    operator = _operator(problem, dict.fromkeys(problem.field_names, 1.0))
    balanced = [forcing[name] / operator[name] for name in forcing if operator[name] > 0.0]
    return dict.fromkeys(problem.field_names, max(balanced, default=0.0) or 1.0)


def _forcing(problem: Problem) -> dict[str, float]:
    still = _residuals(problem, dict.fromkeys(problem.field_names, 0.0))
    return {name: _size(values) for name, values in still.items()}


def _operator(problem: Problem, fields: Mapping[str, float]) -> dict[str, float]:
    still = _residuals(problem, dict.fromkeys(fields, 0.0))
    return {name: _size(values - still[name]) for name, values in _residuals(problem, fields).items()}


def _residuals(problem: Problem, amplitudes: Mapping[str, float]) -> dict[str, Array]:
    """Residuals of half waves of these amplitudes at some points, shape (SAMPLES,) each."""
    d = Pointwise(problem.domain.dim, has_time=False)
    lower, lengths = jnp.asarray(problem.domain.lower), jnp.asarray(problem.domain.lengths)

    def half_wave(z: Array) -> Array:
        return jnp.prod(jnp.sin(jnp.pi * (z - lower) / lengths))

    fields: dict[str, Any] = {n: d.field(lambda z, a=a: a * half_wave(z)) for n, a in amplitudes.items()}
    points = spread_points(jax.random.key(0), problem, SAMPLES)
    return {n: jax.vmap(d.values(term))(points) for n, term in problem.residual(fields, d).items()}


def _size(values: Array) -> float:
    return float(jnp.sqrt(jnp.mean(values**2)))
