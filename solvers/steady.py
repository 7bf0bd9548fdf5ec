"""Steady problems: one linear solve, or Newton's method, with derivatives by the implicit function theorem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sciml.domain import Grid
from sciml.problem import Problem
from sciml.solvers.method import EllipticSolver, Matvec
from sciml.solvers.spaces import GridSpace
from sciml.solvers.stability import norm, rough_values
from sciml.solvers.status import Code, Status, status
from sciml.solvers.structure import is_linear, read_structure
from sciml.solvers.system import LinearSystem, spectrum
from sciml.types import Array

NULL_SPACE = 1e-9  # |J 1| below this fraction of |J rough| means that constants are in the null space
ASYMMETRY = 1e-8
MOST_NEWTON_STEPS = 50
NEWTON_TOLERANCE = 1e-10
LEAST_BALANCE = 1e-8  # mean of the data over their mean size: rounding, also of a mean that the user subtracted
MOST_IMBALANCE = 0.5  # whatever the grid
ROUNDING = 2.3e-16  # of J u, relative to |J| |u|


def solve_steady(problem: Problem, grid: Grid, method: EllipticSolver) -> tuple[Array, Status]:
    """The fields as grid values, shape (fields, *grid.shape), and how it went; differentiable, nothing is raised
    for numerical reasons.

    Where the operator does not see constants (periodic, or Neumann conditions on all faces), the answer has mean
    zero, and data that the quadrature on the grid leaves slightly incompatible are balanced by a constant.
    """
    names = problem.field_names
    space = GridSpace(grid, names, problem.boundary, method.difference_order, differences=method.uses_differences)
    structure = read_structure(problem.residual, names, grid.dim)
    zero = jnp.zeros(space.shape)
    at_zero, linearized = jax.linearize(lambda u: space.read(problem.residual, u, None), zero)
    plain = LinearSystem(space, structure)
    null = _null_space(plain, linearized)
    system = LinearSystem(space, structure, jax.lax.stop_gradient(null.pin))
    excess = jnp.where(null.pin > 0, system.mean(at_zero), 0.0)

    def residual(u: Array) -> Array:
        return space.read(problem.residual, u, None) - excess + system.pin * system.mean(u)

    inner = method.linear_solver(system)
    goal = min(NEWTON_TOLERANCE, method.tolerance)
    u, iterations = _root(residual, zero, inner, None if is_linear(structure) else goal)
    size = jnp.where(norm(at_zero) > 0, norm(at_zero), 1.0)
    reached = norm(residual(u)) / size
    gave_up = is_linear(structure) & method.iterates & (iterations >= method.max_iterations)
    rounded = method.tolerance + ROUNDING * null.scale * norm(u) / size
    tolerance = jnp.where(gave_up, method.tolerance, rounded)
    imbalance, resolved = _balance(system, at_zero, excess)
    checks: list[Finding] = [
        *_operator_findings(system, method, linearized, null),
        (imbalance > resolved, Code.INCOMPATIBLE, imbalance, resolved),
        (null.is_null & ~(null.pin > 0), Code.SINGULAR, 0.0, 0.0),
        (~jnp.all(jnp.isfinite(at_zero)), Code.BAD_START, 0.0, 0.0),
    ]
    lost = jnp.any(jnp.stack([jnp.asarray(failed) for failed, *_ in checks])) | ~(reached <= rounded)
    checks = [(~(reached <= tolerance), Code.NOT_CONVERGED, reached, tolerance), *checks]
    outcome = status(Code.OK, measure=reached, limit=tolerance, steps=iterations)
    for failed, code, measure, limit in checks:
        worse = status(code, measure=measure, limit=limit, steps=iterations)
        outcome = jax.tree.map(lambda bad, good, failed=failed: jnp.where(failed, bad, good), worse, outcome)
    # not masked by the outcome: jax batches the iterations, and with them the values, in forward-mode Jacobians
    return jnp.where(lost, jnp.nan, space.decode(u, None)), outcome


Finding = tuple[Any, Code, Any, Any]
"""Whether it failed, what that is called, the measure and its limit."""


class _NullSpace(NamedTuple):
    """`is_null`: constants are in the null space; `pin`: positive where also the cells of the grid balance, so that a
    multiple of the mean fixes the level; `scale`: |J r| / |r| of a rough r. Shapes ()."""

    is_null: Array
    pin: Array
    scale: Array


def _rough(shape: tuple[int, ...]) -> list[Array]:
    """Two different rough states."""
    return [jnp.asarray(rough_values(2 * shape[0], shape[1:])[i::2]) for i in range(2)]


def _null_space(system: LinearSystem, linearized: Matvec) -> _NullSpace:
    rough = _rough(system.space.shape)[0]
    image, constant = linearized(rough), jnp.ones(system.space.shape)
    scale = norm(image) / norm(rough)
    is_null = norm(linearized(constant)) < NULL_SPACE * scale * norm(constant)
    balanced = jnp.max(jnp.abs(system.mean(image))) < NULL_SPACE * jnp.max(system.mean(jnp.abs(image)))
    return _NullSpace(is_null, jnp.where(is_null & balanced, scale, 0.0), scale)


def _operator_findings(
    system: LinearSystem, method: EllipticSolver, linearized: Matvec, null: _NullSpace
) -> list[Finding]:
    """Resonance, and for methods that need it, symmetry and one sign."""
    found: list[Finding] = []
    rough, other = _rough(system.space.shape)
    seen = spectrum(system, lambda u: linearized(u) + system.pin * system.mean(u), rough)
    if method.needs_symmetry:
        smooth = system.inverse_laplacian(jnp.ones_like(rough))
        forms = [system.inner(v, linearized(v)) for v in (rough, smooth)]
        opposite = (forms[0] * forms[1] < 0) & (jnp.abs(forms[1]) > ASYMMETRY * null.scale * norm(smooth) ** 2)
        indefinite = opposite if seen is None else opposite | seen.indefinite
        found.append((indefinite, Code.INDEFINITE, 0.0, 0.0))
    if seen is not None:
        found.append((seen.distance < seen.resolved, Code.RESONANT, seen.distance, seen.resolved))
    if method.needs_symmetry:
        image, backward = linearized(other), system.inner(other, linearized(rough))
        asymmetry = jnp.abs(system.inner(rough, image) - backward) / (norm(rough) * norm(image))
        found.append((asymmetry > ASYMMETRY, Code.NOT_SYMMETRIC, asymmetry, ASYMMETRY))
    return found


def _balance(system: LinearSystem, data: Array, excess: Any) -> tuple[Array, Array]:
    """The mean of the data, and how far from zero that of compatible data may be, relative to their mean size.

    On a periodic axis, rounding. Between faces, what the trapezoidal rule may be off by: h^2/12 of the second
    derivative or, at a jump inside of an interval, half of the jump times h. A fourth of the second differences covers
    both. They are taken where no face is involved, whose data contain flux / h, and continued to the faces.
    """
    uncertain = jnp.zeros(())
    for axis, periodic in enumerate(system.space.grid.box.periodic):
        if not periodic and data.shape[axis + 1] > 4:
            inner = jax.lax.slice_in_dim(data, 1, -1, axis=axis + 1)
            widths = [(2, 2) if a == axis + 1 else (0, 0) for a in range(data.ndim)]
            uncertain += system.mean(jnp.pad(jnp.abs(jnp.diff(inner, n=2, axis=axis + 1)), widths, mode="edge")) / 4
        elif not periodic:
            uncertain += MOST_IMBALANCE * system.mean(jnp.abs(data))
    size = system.mean(jnp.abs(data))
    size = jnp.maximum(size, LEAST_BALANCE * jnp.max(size) + jnp.finfo(size.dtype).tiny)
    limit = jnp.broadcast_to(jnp.minimum(LEAST_BALANCE + uncertain / size, MOST_IMBALANCE), size.shape).ravel()
    imbalance = jnp.broadcast_to(jnp.abs(excess) / size, size.shape).ravel()
    worst = jnp.argmax(imbalance / limit)
    return imbalance[worst], limit[worst]


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
