"""Roots of weak residuals, differentiable by the implicit function theorem."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sciml.problem import Problem
from sciml.solvers.finite_element.linear import solve_linear
from sciml.solvers.finite_element.methods import Galerkin, TrBdf2
from sciml.solvers.finite_element.space import Space, matrix, residual
from sciml.solvers.structure import is_linear, read_structure
from sciml.types import Array


class Equations(NamedTuple):
    """r(a y + u, b y + rate, t) = 0 in a state y whose fixed values are those of `known`.

    A steady problem has (a, b) = (1, 0) and `rate` None; (1, 1/h) is a stage of a time step, (0, 1) the rate at the
    start.
    """

    problem: Problem
    known: Array
    u: Any
    rate: Any
    t: Any
    a: float
    b: Any

    def residual(self, space: Space, y: Array) -> Array:
        """Shape (unknowns,)."""
        return residual(space, self.problem, *self._states(y), self.t)

    def matrix(self, space: Space, y: Array) -> Array:
        """The entries of its derivative."""
        return matrix(space, self.problem, *self._states(y), self.t, (self.a, self.b))

    def _states(self, y: Array) -> tuple[Array, Array | None]:
        return self.a * y + self.u, None if self.rate is None else self.b * y + self.rate


class Root(NamedTuple):
    """The solution, shape (fields, nodes), its residual relative to the size of its terms, and Newton's steps."""

    y: Array
    reached: Array
    steps: Array


def find_root(space: Space, equations: Equations, guess: Array, method: Galerkin | TrBdf2) -> Root:
    """Newton's method from a guess, whose fixed values are replaced; one step if the equations are linear.

    All derivatives of a linear problem are right, the first ones of a nonlinear problem.
    """
    start = _with_free(space, equations.known, guess)
    linear = is_linear(read_structure(equations.problem.residual, space.names, space.cells.points.shape[-1]))
    if linear:
        y, _, left = _newton_step(space, equations, start, method)
        return Root(y, left, jnp.asarray(1))
    start, steps = _iterate(space, *jax.lax.stop_gradient((equations, start)), method)
    start = _with_free(space, equations.known, jax.lax.stop_gradient(start))
    y, before, left = _newton_step(space, equations, start, method)
    return Root(y, before + left, steps)


def _with_free(space: Space, fixed: Array, free: Array) -> Array:
    return fixed.ravel().at[space.free].set(free.ravel()[space.free]).reshape(space.shape)


def _newton_step(space: Space, equations: Equations, y: Array, method: Galerkin | TrBdf2) -> tuple[Array, Array, Array]:
    """The next iterate; the residual before, and what the linear solver left of it, over the size of its terms."""
    data, before = equations.matrix(space, y), equations.residual(space, y)
    change = solve_linear(method.linear_solver, space.pattern, data, before)
    left = before - space.pattern.multiply(data, change)
    y = y.ravel().at[space.free].add(-change).reshape(space.shape)
    size = jnp.linalg.norm(space.pattern.multiply(jnp.abs(data), jnp.abs(y.ravel()[space.free])))
    scale = size + jnp.where(size > 0, 0.0, 1.0)
    return y, jnp.linalg.norm(before) / scale, jnp.linalg.norm(left) / scale


def _iterate(space: Space, equations: Equations, start: Array, method: Galerkin | TrBdf2) -> tuple[Array, Array]:
    """Newton's method until the residual is small against its terms; the last step only makes it smaller."""

    def go_on(state: tuple[Array, Array, Array]) -> Array:
        return (state[2] < method.max_newton_steps) & (state[1] > method.tolerance)

    def improve(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        y, before, _ = _newton_step(space, equations, state[0], method)
        return y, before, state[2] + 1

    y, _, steps = jax.lax.while_loop(go_on, improve, (start, jnp.asarray(jnp.inf), jnp.asarray(0)))
    return y, steps
