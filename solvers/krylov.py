"""Preconditioned Krylov iterations for one linear system, with the iterations counted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from sciml.solvers.method import Matvec
from sciml.solvers.stability import norm
from sciml.types import Array

Inner = Callable[[Array, Array], Array]
LinearSolver = Callable[[Matvec, Array], tuple[Array, Array]]


def transposable(solve: LinearSolver, weights: Array) -> LinearSolver:
    """The solver with a derivative that jax can transpose, for a matrix A with W A symmetric (W = diag(weights)).

    The transposed system A^T y = b is the same one again: A (W^-1 y) = W^-1 b.
    """

    def transposed(vecmat: Matvec, b: Array) -> tuple[Array, Array]:
        z, iterations = solve(lambda v: vecmat(weights * v) / weights, b / weights)
        return weights * z, iterations

    def solver(matvec: Matvec, b: Array) -> tuple[Array, Array]:
        return jax.lax.custom_linear_solve(matvec, b, solve, transposed, has_aux=True)

    return solver


def bicgstab_solver(
    precondition: Matvec, tolerance: float, most: int, inverse: Callable[[Matvec, Array], Array] | None
) -> LinearSolver:
    """(matvec, b) -> (x, iterations) by BiCGStab, for any matrix and its transpose.

    `inverse`, where there is one, takes the place of `precondition` for the matrix itself.
    """

    def solve(matvec: Matvec, b: Array) -> tuple[Array, Array]:
        near = precondition if inverse is None else partial(inverse, matvec)
        return stabilized_biconjugate_gradients(matvec, near, b, tolerance, most)

    def transposed(vecmat: Matvec, b: Array) -> tuple[Array, Array]:
        return stabilized_biconjugate_gradients(vecmat, precondition, b, tolerance, most)

    return lambda matvec, b: jax.lax.custom_linear_solve(matvec, b, solve, transposed, has_aux=True)


def conjugate_gradients(
    matvec: Matvec, precondition: Matvec, b: Array, tolerance: float, most: int, inner: Inner
) -> tuple[Array, Array]:
    """Y. Saad, Iterative Methods for Sparse Linear Systems (2003), algorithm 9.1, in the inner product given."""
    goal = tolerance * norm(b)

    def go_on(state: tuple[Any, ...]) -> Array:
        return (norm(state[1]) > goal) & (state[4] < most)

    def improve(state: tuple[Any, ...]) -> tuple[Any, ...]:
        x, r, p, rz, count = state
        image = matvec(p)
        alpha = _ratio(rz, inner(p, image))
        x, r = x + alpha * p, r - alpha * image
        z = precondition(r)
        new = inner(r, z)
        return x, r, z + _ratio(new, rz) * p, new, count + 1

    z = precondition(b)
    state = (jnp.zeros_like(b), b, z, inner(b, z), jnp.asarray(0, jnp.int32))
    x, _, _, _, count = jax.lax.while_loop(go_on, improve, state)
    return x, count.astype(float)


def stabilized_biconjugate_gradients(
    matvec: Matvec, precondition: Matvec, b: Array, tolerance: float, most: int
) -> tuple[Array, Array]:
    """H. A. van der Vorst, SIAM J. Sci. Stat. Comput. 13 (1992) 631, right-preconditioned.

    After hundreds of iterations the residual of the recurrence is not that of the answer any more: then they start
    again from there, until the true residual is small.
    """
    goal = tolerance * norm(b)

    def go_on(state: tuple[Array, Array, Array]) -> Array:
        return (norm(state[1]) > goal) & (state[2] < most)

    def improve(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        x, r, count = state
        change, spent = _stabilized(matvec, precondition, r, goal, most - count)
        x = x + change
        return x, b - matvec(x), count + spent

    x, _, count = jax.lax.while_loop(go_on, improve, (jnp.zeros_like(b), b, jnp.asarray(0, jnp.int32)))
    return x, count.astype(float)


def _stabilized(matvec: Matvec, precondition: Matvec, b: Array, goal: Array, most: Array) -> tuple[Array, Array]:
    """The iterations themselves: solution and their number, as an integer."""

    def go_on(state: tuple[Any, ...]) -> Array:
        return (norm(state[1]) > goal) & (state[7] < most)

    def improve(state: tuple[Any, ...]) -> tuple[Any, ...]:
        x, r, p, v, rho, alpha, omega, count = state
        new = jnp.sum(b * r)
        beta = _ratio(new, rho) * _ratio(alpha, omega)
        p = r + beta * (p - omega * v)
        direction = precondition(p)
        v = matvec(direction)
        alpha = _ratio(new, jnp.sum(b * v))
        s = r - alpha * v
        correction = precondition(s)
        image = matvec(correction)
        omega = _ratio(jnp.sum(image * s), jnp.sum(image * image))
        x = x + alpha * direction + omega * correction
        return x, s - omega * image, p, v, new, alpha, omega, count + 1

    zero, one = jnp.zeros_like(b), jnp.asarray(1.0, b.dtype)
    state = (zero, b, zero, zero, one, one, one, jnp.asarray(0, jnp.int32))
    final = jax.lax.while_loop(go_on, improve, state)
    return final[0], final[7]


def _ratio(a: Array, b: Array) -> Array:
    return a / jnp.where(b == 0, 1.0, b)
