"""Evolutions on meshes: TR-BDF2 from one saved time to the next."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciml.functions import evaluate_on
from sciml.problem import Problem
from sciml.solvers.finite_element.methods import TrBdf2
from sciml.solvers.finite_element.root import Equations, find_root
from sciml.solvers.finite_element.space import Space, lift
from sciml.solvers.march import Schedule
from sciml.types import Array

GAMMA = 2 - np.sqrt(2)
DIAGONAL = GAMMA / 2
WEIGHT = np.sqrt(2) / 4


def march(space: Space, problem: Problem, method: TrBdf2, plan: Schedule, steps: Any) -> tuple[Array, Array]:
    """The saved states, shape (T, fields, nodes), and the largest relative residual of a stage.

    `steps` per saved time may be traced, where no reverse-mode derivative is taken.
    """
    u = _start(space, problem)
    slope = _first_slope(space, problem, u, method)

    def segment(carry: tuple[Array, ...], span: tuple[Array, Array]) -> tuple[tuple[Array, ...], Array]:
        start, gap = span
        h = gap / steps

        def one(i: Any, state: tuple[Array, ...]) -> tuple[Array, ...]:
            return _step(space, problem, method, state, start + i * h, h)

        carry = jax.lax.fori_loop(0, steps, one, carry)
        return carry, carry[0]

    spans = (jnp.asarray(plan.starts), jnp.asarray(plan.gaps))
    (_, _, worst), saved = jax.lax.scan(segment, (u, slope, jnp.asarray(0.0)), spans)
    if plan.saves_start:
        saved = jnp.concatenate([u[None], saved])
    return saved, worst


def _start(space: Space, problem: Problem) -> Array:
    """The initial fields at the nodes, with the values of Dirichlet conditions where there are any."""
    points = jnp.asarray(space.points)
    initial = jnp.stack([evaluate_on(problem.initial[name], points, 0.0) for name in space.names])
    return lift(space, problem, 0.0).ravel().at[space.free].set(initial.ravel()[space.free]).reshape(space.shape)


def _first_slope(space: Space, problem: Problem, u: Array, method: TrBdf2) -> Array:
    """The time derivative at the start: a mass matrix is solved for it."""
    known = jax.jvp(lambda t: lift(space, problem, t), (jnp.asarray(0.0),), (jnp.asarray(1.0),))[1]
    equations = Equations(problem, known, u, jnp.zeros_like(u), jnp.asarray(0.0), 0.0, 1.0)
    return find_root(space, equations, jnp.zeros_like(u), method).y


def _step(
    space: Space, problem: Problem, method: TrBdf2, state: tuple[Array, ...], t: Any, h: Any
) -> tuple[Array, ...]:
    """The trapezoidal rule to t + gamma h, then the second backward difference to t + h."""
    u, slope, worst = state
    middle, middle_slope, first = _stage(space, problem, method, u + DIAGONAL * h * slope, u, t + GAMMA * h, h)
    base = u + WEIGHT * h * (slope + middle_slope)
    u, slope, second = _stage(space, problem, method, base, middle, t + h, h)
    return u, slope, jnp.maximum(worst, jnp.maximum(first, second))


def _stage(
    space: Space, problem: Problem, method: TrBdf2, base: Array, guess: Array, t: Any, h: Any
) -> tuple[Array, Array, Array]:
    """y = base + diagonal h slope(y): (y, its slope, the relative residual)."""
    b = 1.0 / (DIAGONAL * h)
    equations = Equations(problem, lift(space, problem, t), jnp.zeros_like(base), -b * base, t, 1.0, b)
    root = find_root(space, equations, guess, method)
    return root.y, b * (root.y - base), root.reached
