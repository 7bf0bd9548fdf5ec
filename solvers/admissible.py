"""A look at the grid before anything is solved: limits of coefficients, and whether the start fits the faces."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from sciml.boundary import Condition, conditions_for
from sciml.domain import AXIS_NAMES, Grid
from sciml.errors import ConfigError, SciMLError
from sciml.functions import evaluate_on, is_sampled, takes_time
from sciml.problem import Problem

LIMITS = ("above", "minimum", "maximum")
COARSE = 1e-2  # of a field without its mean, beyond 2/3 of the wave numbers
REFINEMENTS = (2, 4, 8)
MOST_POINTS = 2**22  # of a grid that is tried for the sake of a warning
MISFIT = 1e-2  # of the largest value, between the start and the conditions on the faces


class Extremes(NamedTuple):
    """Of a coefficient on a grid: its least and largest finite values and where they are, as a place in the flattened
    grid, and where it is not finite first (-1: nowhere). Shapes ()."""

    lowest: Any
    lowest_at: Any
    highest: Any
    highest_at: Any
    undefined_at: Any


def check_coefficients(problem: Problem, grid: Any) -> None:
    """Raises `ConfigError`, with the point of the grid or node of the elements, for a coefficient outside of the limits
    of its `parameter`, or NaN.

    Numbers, arrays and functions of space are checked; functions of time, and whatever is traced by jax, are not.
    """
    error = inadmissible(problem.equation, extremes(problem, grid), grid, ConfigError)
    if error is not None:
        raise error


def extremes(problem: Problem, grid: Any) -> dict[str, Extremes]:
    """The extreme values of every coefficient with limits; works inside of jit, too."""
    found = {}
    for name in _limits(problem.equation):
        coefficient = getattr(problem.equation, name)
        if callable(coefficient) and takes_time(coefficient):
            continue
        values = evaluate_on(coefficient, grid.points) if callable(coefficient) else coefficient
        values = jnp.ravel(jnp.asarray(values, float))
        finite = jnp.isfinite(values)
        low, high = jnp.where(finite, values, jnp.inf), jnp.where(finite, values, -jnp.inf)
        undefined = jnp.where(jnp.all(finite), -1, jnp.argmin(finite))
        found[name] = Extremes(jnp.min(low), jnp.argmin(low), jnp.max(high), jnp.argmax(high), undefined)
    return found


def inadmissible(
    equation: Any, found: Mapping[str, Extremes], grid: Any, kind: type[SciMLError], who: str = ""
) -> SciMLError | None:
    """The error that names the first coefficient outside of its limits, `who` has it, and where; None if all are fit.

    Extremes that are traced by jax are passed over.
    """
    for name, extreme in found.items():
        if any(isinstance(entry, Tracer) for entry in extreme):
            continue
        at = _violation(extreme, _limits(equation)[name])
        if at is not None:
            what, place, value, expected = at
            return kind(
                f"the coefficient {name!r} {who}{what}",
                expected=expected,
                got=f"{value:.6g}{_point(int(place), extreme, grid)}",
                reason="outside of its limits the equation is of another type, or has no unique solution",
                fix=f"{name}: lambda x: jnp.exp(...), or another parametrization that keeps the limits",
            )
    return None


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


def warn_of_a_coarse_grid(problem: Problem, grid: Grid) -> None:
    """Warns where a grid on a periodic box holds too little of an initial field, with the shape that would do.

    A Fourier series drops what lies beyond 2/3 of its wave numbers; that may be `COARSE` of the field (L2).
    """
    if grid.box.faces or grid.cells:
        return
    for name, start in problem.initial.items():
        lost = _lost(start, grid)
        if lost is None or not lost > COARSE:
            continue
        finer = (grid.refined(factor) for factor in REFINEMENTS if not is_sampled(start))
        fits = next((g for g in finer if np.prod(g.shape) < MOST_POINTS and (_lost(start, g) or 0.0) <= COARSE), None)
        advice = f"a grid of shape {fits.shape} holds it" if fits else "it has jumps, or waves that no finer one holds"
        warnings.warn(
            f"the grid of shape {grid.shape} is too coarse for the start of {name}: {100 * lost:.2g} % of it lie in "
            f"waves that the series drops; {advice}",
            stacklevel=_levels_inside(),
        )


def _levels_inside() -> int:
    """How many frames from the caller on are our own, and one more: the line of the user that led here."""
    frames = [frame.frame.f_globals.get("__name__", "") for frame in inspect.stack(context=0)[1:]]
    inside = itertools.takewhile(lambda name: name.split(".")[0] == "sciml", frames)
    return len(list(inside)) + 1


def _lost(start: Any, grid: Grid) -> float | None:
    """Which part of an initial field (L2, without its mean) lies beyond 2/3 of the wave numbers; None if traced."""
    values = evaluate_on(start, grid.points, 0.0)
    if isinstance(values, Tracer):
        return None
    sizes = np.abs(np.fft.fftn(np.asarray(values))) ** 2
    sizes.flat[0] = 0.0
    orders = np.meshgrid(*(np.abs(np.fft.fftfreq(n)) for n in grid.shape), indexing="ij")
    total = sizes.sum()
    is_rounding = not total > (1e-12 * np.abs(values).max() * sizes.size) ** 2
    return 0.0 if is_rounding else float(np.sqrt(sizes[np.max(orders, axis=0) > 1 / 3].sum() / total))


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


def _limits(equation: Any) -> dict[str, dict[str, Any]]:
    """Name of a coefficient to its limits, for those that have some."""
    declared = {f.name: {key: f.metadata.get(key) for key in LIMITS} for f in dataclasses.fields(equation)}
    return {name: limits for name, limits in declared.items() if any(v is not None for v in limits.values())}


def _violation(extreme: Extremes, limits: dict[str, Any]) -> tuple[str, Any, Any, str] | None:
    """(what is wrong, where, the value there, what is expected), None if nothing is."""
    lowest, low_at, highest, high_at, undefined = extreme
    above, minimum, maximum = (limits[key] for key in LIMITS)
    what = "changes sign" if lowest < 0 < highest else "is not admissible"
    if undefined >= 0:
        return "is not finite", undefined, np.nan, "finite values everywhere"
    if above is not None and lowest <= above:
        return what, low_at, lowest, f"above {above:g} everywhere"
    if minimum is not None and lowest < minimum:
        return what, low_at, lowest, f"at least {minimum:g} everywhere"
    if maximum is not None and highest > maximum:
        return what, high_at, highest, f"at most {maximum:g} everywhere"
    return None


def _point(place: int, extreme: Extremes, grid: Any) -> str:
    """The coordinates of a place, "" for a coefficient that is a number."""
    if int(extreme.lowest_at) == int(extreme.highest_at) == 0 and place == 0 and extreme.lowest == extreme.highest:
        return ""
    point = grid.points.reshape(-1, grid.points.shape[-1])[place]
    return " at " + ", ".join(f"{axis} = {x:.4g}" for axis, x in zip(AXIS_NAMES, point, strict=False))
