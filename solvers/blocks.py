"""A stiff linear part that couples the fields: one small matrix per mode, and its exponential functions."""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial
from typing import Any, final

import jax
import jax.numpy as jnp

from sciml.types import Array

MOST_DOUBLINGS = 44  # of the argument: covers |step L| up to 1e13
TAYLOR_TERMS = 16  # at a norm of at most 1/2 the next term is below rounding
SWEEPS = 4  # of the balancing; three are enough for the matrices of a wave


@jax.tree_util.register_dataclass
@final
@dataclass(frozen=True)
class Blocks:
    """L as a matrix per mode, shape (fields, fields, *modes), real or complex; states are (fields, *modes).

    The wave equation u_t = v, v_t = c^2 lap u is the block [[0, 1], [-c^2 |k|^2, 0]]. Functions of L have the
    same shape as L.
    """

    matrix: Array

    def act(self, function: Array, y: Array) -> Array:
        """A function of L applied to a state."""
        return jnp.sum(function * y[None], axis=1)

    def apply(self, y: Array) -> Array:
        """L y."""
        return self.act(self.matrix, y)

    def phi(self, step: Any) -> tuple[Array, ...]:
        """phi_0 ... phi_3 of step L, by Taylor series of a halved argument and doubling.

        B. Skaflestad, W. M. Wright, Appl. Numer. Math. 59 (2009) 783, eqs. (11)-(12). Each mode is doubled as often as
        its own norm asks, so that slow modes keep all digits, after balancing (fields of different units).
        """
        z = step * self.matrix
        scale = balance(jax.lax.stop_gradient(z))
        row = scale[:, None] / scale[None]
        z = z / row
        norm = jnp.max(jnp.sum(jnp.abs(jax.lax.stop_gradient(z)), axis=1), axis=0)
        doublings = jnp.ceil(jnp.log2(jnp.maximum(2 * norm, 1.0)))
        start = _taylor(z / 2.0**doublings)

        def double(index: Any, current: tuple[Array, ...]) -> tuple[Array, ...]:
            return tuple(
                jnp.where(index < doublings, new, old) for new, old in zip(_doubled(*current), current, strict=True)
            )

        return tuple(row * value for value in jax.lax.fori_loop(0, MOST_DOUBLINGS, double, start))

    def exponential(self, step: Any) -> Array:
        """e^{step L}."""
        return self.phi(step)[0]

    def shifted_inverse(self, shift: Any) -> Array:
        """(1 - shift L)^{-1}."""
        count = self.matrix.shape[0]
        last = jnp.moveaxis(self.matrix, (0, 1), (-2, -1))
        return jnp.moveaxis(jnp.linalg.inv(jnp.eye(count) - shift * last), (-2, -1), (0, 1))


def balance(matrix: Array) -> Array:
    """Scales d, shape (fields, *modes), with rows and columns of D^-1 matrix D of about the same size.

    E. E. Osborne, J. ACM 7 (1960) 338.
    """
    count = matrix.shape[0]
    size = jnp.abs(matrix) * (1 - jnp.eye(count)).reshape(count, count, *(1,) * (matrix.ndim - 2))

    def one(index: Any, scale: Array) -> Array:
        i = index % count
        row = jnp.sum(size[i] * scale, axis=0) / scale[i]
        column = jnp.sum(size[:, i] / scale, axis=0) * scale[i]
        both = (row > 0) & (column > 0)
        factor = jnp.sqrt(jnp.where(both, row, 1.0) / jnp.where(both, column, 1.0))
        return scale.at[i].multiply(factor)

    return jax.lax.fori_loop(0, SWEEPS * count, one, jnp.ones(matrix.shape[1:]))


def product(a: Array, b: Array) -> Array:
    """The product of two matrices per mode."""
    return jnp.sum(a[:, :, None] * b[None], axis=1)


def _taylor(z: Array) -> tuple[Array, ...]:
    """phi_0 ... phi_3 of a small argument."""
    one = jnp.eye(z.shape[0], dtype=z.dtype).reshape(z.shape[0], z.shape[0], *(1,) * (z.ndim - 2))
    weights = jnp.asarray([1 / factorial(power + 3) for power in reversed(range(TAYLOR_TERMS))])
    start = one / factorial(TAYLOR_TERMS + 3) * jnp.ones_like(z)
    third, _ = jax.lax.scan(lambda sum_, weight: (one * weight + product(z, sum_), None), start, weights)
    second = one / 2 + product(z, third)
    first = one + product(z, second)
    return one + product(z, first), first, second, third


def _doubled(zero: Array, one: Array, two: Array, three: Array) -> tuple[Array, ...]:
    """phi_0 ... phi_3 of 2 z from those of z."""
    return (
        product(zero, zero),
        (product(zero, one) + one) / 2,
        (product(one, one) + 2 * two) / 4,
        (product(one, two) + 2 * three + two) / 8,
    )
