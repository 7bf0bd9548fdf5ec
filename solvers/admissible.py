"""A look at the grid before anything is solved: limits of coefficients, and whether the start fits the faces."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import numpy as np
from jax.core import Tracer

from sciml.boundary import Condition, conditions_for
from sciml.domain import Grid
from sciml.errors import ConfigError
from sciml.functions import evaluate_on, takes_time
from sciml.problem import Problem

MISFIT = 1e-2  # of the largest value, between the start and the conditions on the faces


def check_coefficients(problem: Problem, grid: Grid) -> None:
    """Raises `ConfigError`, with the point, for a coefficient outside of the limits of its `parameter`.

    Numbers, arrays and functions of space are checked; functions of time, and whatever is traced by jax, are not.
    """
    for declared in dataclasses.fields(problem.equation):
        limits = {key: declared.metadata.get(key) for key in ("minimum", "maximum", "above")}
        if any(limit is not None for limit in limits.values()):
            _check(declared.name, getattr(problem.equation, declared.name), limits, grid)


def warn_of_a_misfit(problem: Problem, grid: Grid) -> None:
    """Warns where an evolution starts with other values on a face than its Dirichlet condition demands at time zero.

    The solution then has a layer that no grid resolves at first, and every method loses its order for a while.
    """
    if not grid.box.faces or grid.cells:
        return
    start = problem.initial_values(grid)
    for name, values in start.items():
        for face, condition in conditions_for(problem.boundary, name).items():
            if condition.beta == 0 and not isinstance(values, Tracer):
                _compare(name, face, np.asarray(values), condition, grid)


def _compare(name: str, face: str, values: np.ndarray, condition: Condition, grid: Grid) -> None:
    axis, end = "xyz".index(face[0]), 0 if face[1] == "-" else -1
    points, here = np.take(grid.points, end, axis=axis), np.take(values, end, axis=axis)
    value = condition.value
    demanded = evaluate_on(value, points, 0.0) if callable(value) else value
    if isinstance(demanded, Tracer):
        return
    there = np.broadcast_to(np.asarray(demanded) / condition.alpha, here.shape)
    worst = np.unravel_index(int(np.abs(here - there).argmax()), here.shape)
    if np.abs(here - there)[worst] > MISFIT * max(np.abs(values).max(), np.abs(there).max()):
        warnings.warn(
            f"{name} starts with {here[worst]:.4g} on face {face} where its condition demands {there[worst]:.4g}: "
            "the solution begins with a layer that no grid resolves",
            stacklevel=4,
        )


def _check(name: str, coefficient: Any, limits: dict[str, Any], grid: Grid) -> None:
    if isinstance(coefficient, Tracer) or (callable(coefficient) and takes_time(coefficient)):
        return
    values = evaluate_on(coefficient, grid.points) if callable(coefficient) else coefficient
    if isinstance(values, Tracer):
        return
    values = np.asarray(values, float)
    lowest, highest = np.nanmin(values), np.nanmax(values)
    above, minimum, maximum = limits["above"], limits["minimum"], limits["maximum"]
    if above is not None and lowest <= above:
        _refuse(name, values, int(np.nanargmin(values)), f"above {above:g} everywhere", grid)
    if minimum is not None and lowest < minimum:
        _refuse(name, values, int(np.nanargmin(values)), f"at least {minimum:g} everywhere", grid)
    if maximum is not None and highest > maximum:
        _refuse(name, values, int(np.nanargmax(values)), f"at most {maximum:g} everywhere", grid)


def _refuse(name: str, values: np.ndarray, worst: int, expected: str, grid: Grid) -> None:
    place = ""
    if values.shape == grid.shape:
        point = grid.points.reshape(-1, grid.dim)[worst]
        place = " at " + ", ".join(f"{axis} = {x:.4g}" for axis, x in zip(grid.box.names, point, strict=True))
    changes_sign = values.size > 1 and np.nanmin(values) < 0 < np.nanmax(values)
    raise ConfigError(
        f"the coefficient {name!r} " + ("changes sign" if changes_sign else "is not admissible"),
        expected=expected,
        got=f"{values.ravel()[worst]:.6g}{place}",
        reason="outside of its limits the equation is of another type, or has no unique solution",
        fix=f"{name}: lambda x: jnp.exp(...), or another parametrization that keeps the limits",
    )
