"""Preconditioned Krylov iterations for one linear system, with the iterations counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from sciml.solvers.direct import matching_modes
from sciml.solvers.method import Matvec
from sciml.solvers.modes import FourierModes, Modes, conditions_of, difference_modes
from sciml.solvers.spaces import GridSpace
from sciml.solvers.stability import norm
from sciml.solvers.structure import Structure
from sciml.types import Array

Iteration = Callable[[Matvec, Matvec, Array, float, int], tuple[Array, Array]]


def krylov_solver(
    iteration: Iteration, space: GridSpace, structure: Structure, tolerance: float, most: int, symmetric: bool
) -> Callable[[Matvec, Array], tuple[Array, Array]]:
    """(matvec, b) -> (x, iterations), preconditioned by the inverse Laplacian, with a transposable derivative."""
    precondition = inverse_laplacian(preconditioning_modes(space, structure))

    def solve(matvec: Matvec, b: Array) -> tuple[Array, Array]:
        return iteration(matvec, precondition, b, tolerance, most)

    def solver(matvec: Matvec, b: Array) -> tuple[Array, Array]:
        return jax.lax.custom_linear_solve(matvec, b, solve, solve, symmetric=symmetric, has_aux=True)

    return solver


def preconditioning_modes(space: GridSpace, structure: Structure) -> Modes:
    """Modes of the Laplacian on the same grid with the same kind of conditions."""
    exact = matching_modes(space, structure)
    if exact is not None:
        return exact
    if all(space.grid.box.periodic):
        return FourierModes(space.grid)
    return difference_modes(space.grid, conditions_of(dict(space.boundary)), space.order, "compact")


def inverse_laplacian(modes: Modes) -> Matvec:
    """v -> (-Laplacian)^{-1} v, the null mode (if any) scaled like the slowest other one."""
    size = -modes.eigenvalues
    smallest = jnp.min(jnp.where(jnp.abs(size) > 1e-10 * jnp.max(jnp.abs(size)), jnp.abs(size), jnp.inf))
    safe = jnp.where(jnp.abs(size) > 1e-10 * jnp.max(jnp.abs(size)), size, smallest)
    return lambda v: modes.backward(modes.forward(v) / safe)


def conjugate_gradients(
    matvec: Matvec, precondition: Matvec, b: Array, tolerance: float, most: int
) -> tuple[Array, Array]:
    """Y. Saad, Iterative Methods for Sparse Linear Systems (2003), algorithm 9.1."""
    goal = tolerance * norm(b)

    def go_on(state: tuple[Any, ...]) -> Array:
        return (norm(state[1]) > goal) & (state[4] < most)

    def improve(state: tuple[Any, ...]) -> tuple[Any, ...]:
        x, r, p, rz, count = state
        image = matvec(p)
        alpha = _ratio(rz, jnp.sum(p * image))
        x, r = x + alpha * p, r - alpha * image
        z = precondition(r)
        new = jnp.sum(r * z)
        return x, r, z + _ratio(new, rz) * p, new, count + 1

    z = precondition(b)
    state = (jnp.zeros_like(b), b, z, jnp.sum(b * z), jnp.asarray(0, jnp.int32))
    x, _, _, _, count = jax.lax.while_loop(go_on, improve, state)
    return x, count.astype(float)


def stabilized_biconjugate_gradients(
    matvec: Matvec, precondition: Matvec, b: Array, tolerance: float, most: int
) -> tuple[Array, Array]:
    """H. A. van der Vorst, SIAM J. Sci. Stat. Comput. 13 (1992) 631, right-preconditioned."""
    goal = tolerance * norm(b)

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
    return final[0], final[7].astype(float)


def _ratio(a: Array, b: Array) -> Array:
    return a / jnp.where(b == 0, 1.0, b)
