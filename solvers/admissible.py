"""Coefficients inside the limits that their equation states, checked on the grid before anything is solved."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from jax.core import Tracer

from sciml.domain import Grid
from sciml.errors import ConfigError
from sciml.functions import evaluate_on, takes_time
from sciml.problem import Problem


def check_coefficients(problem: Problem, grid: Grid) -> None:
    """Raises `ConfigError`, with the point, for a coefficient outside of the limits of its `parameter`.

    Numbers, arrays and functions of space are checked; functions of time, and whatever is traced by jax, are not.
    """
    for declared in dataclasses.fields(problem.equation):
        limits = {key: declared.metadata.get(key) for key in ("minimum", "maximum", "above")}
        if any(limit is not None for limit in limits.values()):
            _check(declared.name, getattr(problem.equation, declared.name), limits, grid)


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
