"""Gradients through a solve, and families of problems under vmap."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciml.domain import Grid
from sciml.equations.base import Equation, Evolution, field_names
from sciml.problem import Problem, make_problem, manufactured
from sciml.solvers.method import Method
from sciml.solvers.order import trial_fields
from sciml.solvers.solve import integrate
from sciml.solvers.trial import QUICK, box, smooth_fields
from sciml.types import Array

TIME = 0.2
RELATIVE_STEP = 1e-4


def coefficients_of(equation: Any) -> dict[str, float]:
    """The coefficients that are numbers."""
    values = {f.name: getattr(equation, f.name) for f in dataclasses.fields(equation)}
    return {name: float(v) for name, v in values.items() if not callable(v) and np.ndim(v) == 0}


def response(equation: Any, method: Method) -> Callable[[dict[str, Any]], Array]:
    """Coefficients -> a weighted sum of the solution (shape ()), with everything else fixed."""
    dim = min(equation.dims)
    periodic = isinstance(equation, Evolution)
    grid = Grid(box(dim, periodic=periodic), (12,) * dim)
    weights = np.random.default_rng(4).standard_normal(grid.shape)
    trial = smooth_fields(equation, dim, seed=23, highest=1)
    start = {name: trial[name].at_start for name in field_names(equation)}
    fixed = trial_fields(equation, dim, speed=0.0)
    source = None if periodic else manufactured(equation, grid.box, {n: f.at_start for n, f in fixed.items()})

    def problem_of(coefficients: dict[str, Any]) -> Problem:
        changed: Any = dataclasses.replace(equation, **coefficients)
        if source is not None:
            return dataclasses.replace(source, equation=changed)
        return make_problem(changed, grid.box, initial=start, horizon=TIME)

    def value(coefficients: dict[str, Any]) -> Array:
        fields = integrate(problem_of(coefficients), grid, method, [TIME] if periodic else None)
        return sum((jnp.sum(weights * field) for field in fields.values()), jnp.zeros(()))

    return value


def gradient_error(equation: Equation, method: Method) -> dict[str, float]:
    """Reverse-mode derivative against a central difference, by coefficient, relative to the larger of the two."""
    coefficients = coefficients_of(equation)
    if not coefficients:
        return {}
    value = jax.jit(response(equation, method), compiler_options=QUICK)
    exact = jax.jit(jax.grad(response(equation, method)), compiler_options=QUICK)(coefficients)
    errors = {}
    for name, number in coefficients.items():
        step = RELATIVE_STEP * max(abs(number), 1e-2)
        up, down = (float(value({**coefficients, name: number + sign * step})) for sign in (1, -1))
        estimate, derivative = (up - down) / (2 * step), float(exact[name])
        noise = 1e-13 * max(abs(up), 1.0) / step
        scale = max(abs(estimate), abs(derivative), noise * 1e4)
        errors[name] = abs(estimate - derivative) / scale
    return errors


def family_difference(equation: Equation, method: Method) -> float:
    """vmap over two problems against two calls, relative."""
    value = response(equation, method)
    coefficients = coefficients_of(equation)
    if not coefficients:
        return 0.0
    pair = {name: jnp.asarray([number, 1.1 * number]) for name, number in coefficients.items()}
    together = np.asarray(jax.jit(jax.vmap(value), compiler_options=QUICK)(pair))
    one = jax.jit(value, compiler_options=QUICK)
    alone = np.asarray([float(one({name: number[i] for name, number in pair.items()})) for i in range(2)])
    return float(np.abs(together - alone).max() / max(np.abs(alone).max(), 1e-300))
