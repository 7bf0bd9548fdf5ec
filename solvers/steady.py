"""Steady problems: one linear solve, or Newton's method, with derivatives by the implicit function theorem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from sciml.domain import Grid
from sciml.problem import Problem
from sciml.solvers.method import EllipticSolver, Matvec
from sciml.solvers.spaces import GridSpace
from sciml.solvers.stability import norm, rough_values
from sciml.solvers.status import Code, Status, status
from sciml.solvers.structure import is_linear, read_structure
from sciml.types import Array

NULL_SPACE = 1e-9  # |J 1| below this fraction of |J rough| means that constants are in the null space
ASYMMETRY = 1e-8
MOST_NEWTON_STEPS = 50
NEWTON_TOLERANCE = 1e-10
ROUNDING = 2.3e-16  # of J u, relative to |J| |u|


def solve_steady(problem: Problem, grid: Grid, method: EllipticSolver) -> tuple[Array, Status]:
    """The fields as grid values, shape (fields, *grid.shape), and how it went; differentiable, nothing is raised
    for numerical reasons."""
    names = problem.field_names
    space = GridSpace(grid, names, problem.boundary, method.difference_order)
    structure = read_structure(problem.residual, names, grid.dim)
    zero = jnp.zeros(space.shape)
    rough, other = (jnp.asarray(rough_values(2 * len(names), space.shape[1:])[i::2]) for i in range(2))
    at_zero, linearized = jax.linearize(lambda u: space.read(problem.residual, u, None), zero)
    scale = norm(linearized(rough)) / norm(rough)
    constant = jnp.ones_like(zero)
    is_null = norm(linearized(constant)) < NULL_SPACE * scale * norm(constant)
    periodic = all(grid.box.periodic)
    pin = jnp.where(is_null, scale, 0.0) if periodic else 0.0

    def residual(u: Array) -> Array:
        return space.read(problem.residual, u, None) + pin * _mean(u)

    inner = method.linear_solver(space, structure)
    goal = min(NEWTON_TOLERANCE, method.tolerance)
    u, iterations = _root(residual, zero, inner, None if is_linear(structure) else goal)
    size = jnp.where(norm(at_zero) > 0, norm(at_zero), 1.0)
    reached = norm(residual(u)) / size
    asymmetry = _asymmetry(linearized, rough, other) if method.needs_symmetry else jnp.zeros(())
    gave_up = is_linear(structure) & method.iterates & (iterations >= method.max_iterations)
    rounded = method.tolerance + ROUNDING * scale * norm(u) / size
    tolerance = jnp.where(gave_up, method.tolerance, rounded)
    checks = [
        (asymmetry > ASYMMETRY, Code.NOT_SYMMETRIC, asymmetry, ASYMMETRY),
        (_incompatible(is_null & periodic, at_zero), Code.INCOMPATIBLE, jnp.max(jnp.abs(_mean(at_zero))), 0.0),
        (is_null & (not periodic), Code.SINGULAR, 0.0, 0.0),
        (~jnp.all(jnp.isfinite(at_zero)), Code.BAD_START, 0.0, 0.0),
    ]
    lost = jnp.any(jnp.stack([failed for failed, *_ in checks])) | ~(reached <= rounded)
    checks = [(~(reached <= tolerance), Code.NOT_CONVERGED, reached, tolerance), *checks]
    outcome = status(Code.OK, measure=reached, limit=tolerance, steps=iterations)
    for failed, code, measure, limit in checks:
        worse = status(code, measure=measure, limit=limit, steps=iterations)
        outcome = jax.tree.map(lambda bad, good, failed=failed: jnp.where(failed, bad, good), worse, outcome)
    # not masked by the outcome: jax batches the iterations, and with them the values, in forward-mode Jacobians
    return jnp.where(lost, jnp.nan, space.decode(u, None)), outcome


def _root(residual: Callable[[Array], Array], start: Array, inner: Any, tolerance: float | None) -> tuple[Array, Array]:
    """u with residual(u) = 0 and the iterations of the inner solver (a float: jax gives integers no tangent here).

    One Newton step if `tolerance` is None (a linear residual), else until the residual has fallen by that factor.
    """

    def newton_step(f: Callable[[Array], Array], u: Array) -> tuple[Array, Array]:
        value, derivative = jax.linearize(f, u)
        change, iterations = inner(derivative, -value)
        return u + change, iterations

    def solve(f: Callable[[Array], Array], u: Array) -> tuple[Array, Array]:
        if tolerance is None:
            return newton_step(f, u)
        goal = tolerance * norm(f(u))

        def go_on(state: tuple[Array, Array, Array]) -> Array:
            return (state[1] < MOST_NEWTON_STEPS) & (norm(f(state[0])) > goal)

        def improve(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            v, spent = newton_step(f, state[0])
            return v, state[1] + 1, state[2] + spent

        start = (u, jnp.asarray(0, jnp.int32), jnp.asarray(0.0))
        u, _, iterations = jax.lax.while_loop(go_on, improve, start)
        return u, iterations

    def tangent_solve(g: Matvec, y: Array) -> Array:
        return inner(g, y)[0]

    return jax.lax.custom_root(residual, start, solve, tangent_solve, has_aux=True)


def _mean(u: Array) -> Array:
    """Mean over space, per field, keeping the rank."""
    return jnp.mean(u, axis=tuple(range(1, u.ndim)), keepdims=True)


def _incompatible(singular: Any, at_zero: Array) -> Array:
    return singular & jnp.any(jnp.abs(_mean(at_zero)) > 1e-8 * jnp.max(jnp.abs(at_zero)))


def _asymmetry(apply: Matvec, a: Array, b: Array) -> Array:
    """|<a, J b> - <b, J a>| relative to |a| |J b|."""
    forward, backward = jnp.sum(a * apply(b)), jnp.sum(b * apply(a))
    return jnp.abs(forward - backward) / (norm(a) * norm(apply(b)))
