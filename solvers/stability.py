"""How large a time step the explicitly treated part of an evolution allows, estimated at the initial state."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sciml.solvers.method import TimeStepper
from sciml.types import Array

ITERATIONS = 24
AVERAGED = 8
SAFETY = 0.9  # power iteration approaches the spectral radius from below
MOST_DOUBLINGS = 14
ROUGH = 20  # the seed of the state that the iteration starts from
MOST_GROWTH = 2.0  # over all steps, of a method that is unstable on the whole imaginary axis


Total = Callable[[Array], Array]
"""What the sum over a part of a state makes with those over the other parts."""


def itself(value: Array) -> Array:
    """The total where there is one part."""
    return value


class Stability(NamedTuple):
    """`doublings`: how often the step must be halved; `ratio`: of the step to the largest stable one."""

    doublings: Array
    ratio: Array


def estimate(
    method: TimeStepper,
    linear: Any,
    jacobian: Callable[[Array], Array],
    start: Array,
    step: Any,
    duration: Any,
    total: Total = itself,
) -> Stability:
    """Halve `step` until the linearized explicit part, damped by L, lies in the method's region of stability.

    `jacobian` is the derivative of the explicit part, `start` a rough state (complex states are Fourier or
    modal coefficients), `duration` that of the whole run; `total` adds what parts
    of a state on several ranks contribute to a sum. Shapes () of the result.
    """

    def ratio(doublings: Array) -> Array:
        h = step / 2.0**doublings
        damping = method.damping(linear, h)
        eigenvalue = _dominant(lambda v: h * damping(jacobian(v)), start, total)
        turn = _turn(method, jnp.abs(eigenvalue.imag), duration / h)
        return jnp.hypot(eigenvalue.real / method.real_limit, turn) / SAFETY

    def too_large(state: tuple[Array, Array, Array]) -> Array:
        doublings, current, _ = state
        return (current > 1) & (doublings < MOST_DOUBLINGS)

    def halve(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        doublings, _, first = state
        current = ratio(doublings + 1)
        return doublings + 1, current, jnp.where(doublings < 0, current, first)

    before = (jnp.asarray(-1, jnp.int32), jnp.asarray(jnp.inf), jnp.asarray(jnp.inf))  # one copy of `ratio` to compile
    doublings, last, first = jax.lax.while_loop(too_large, halve, before)
    unsolved = (doublings == MOST_DOUBLINGS) & (last > 1)
    return Stability(jnp.where(unsolved, MOST_DOUBLINGS + 1, doublings), first)


def _turn(method: TimeStepper, angle: Array, steps: Any) -> Array:
    """The angle z that a mode turns in a step, in parts of the largest allowed one; proportional to the step.

    Without a limit, growth by c z^4 in each of n steps, in all exp(c n z^4) <= `MOST_GROWTH`: n z is fixed, so the cube
    root of c n z^4 is proportional to z.
    """
    if method.imaginary_limit:
        return angle / method.imaginary_limit
    return jnp.cbrt(method.imaginary_growth * steps * angle**4 / np.log(MOST_GROWTH))


def _dominant(apply: Callable[[Array], Array], start: Array, total: Total) -> Array:
    """The eigenvalue of largest modulus, shape (), complex: modulus by growth, direction by a fit of two steps."""

    def advance(v: Array, _: Any) -> tuple[Array, Array]:
        image = apply(v)
        size = norm(image, total)
        return image / jnp.where(size > 0, size, 1.0), size

    v, growth = jax.lax.scan(advance, start / norm(start, total), length=ITERATIONS)
    tail = growth[-AVERAGED:]
    modulus = jnp.where(jnp.all(tail > 0), jnp.exp(jnp.mean(jnp.log(jnp.where(tail > 0, tail, 1.0)))), 0.0)
    return modulus * _direction(v, apply, total)


def _direction(v: Array, apply: Callable[[Array], Array], total: Total) -> Array:
    """Of the dominant pair of eigenvalues: the root of x^2 = a x + b that fits A^2 v = a A v + b v best."""
    first = apply(v)
    second = apply(first)
    size = norm(first, total)
    scale = jnp.where(size > 0, size, 1.0)
    first, second = first / scale, second / scale**2
    pairs = ((first, first), (first, v), (v, v), (first, second), (v, second))
    ff, fv, vv, fs, vs = total(jnp.stack([_dot(a, b) for a, b in pairs]))
    ff, vv = ff + 1e-12, vv + 1e-12
    determinant = ff * vv - fv * fv
    a, b = (vv * fs - fv * vs) / determinant, (ff * vs - fv * fs) / determinant
    root = jnp.sqrt((a * a / 4 + b).astype(complex))
    candidates = jnp.stack([a / 2 + root, a / 2 - root])
    chosen = candidates[jnp.argmax(jnp.abs(candidates))]
    size = jnp.abs(chosen)
    return jnp.where(size > 0, chosen / jnp.where(size > 0, size, 1.0), 1.0)


def _dot(a: Array, b: Array) -> Array:
    return jnp.sum((jnp.conj(a) * b).real)


def norm(a: Array, total: Total = itself) -> Array:
    """Euclidean norm, shape ()."""
    return jnp.sqrt(total(_dot(a, a)))


@singledispatch
def rough_on(grid: Any, fields: int) -> Array:
    """Values (fields, *grid.shape) that excite every mode, always the same."""
    return jnp.asarray(rough_values(fields, grid.shape))


def rough_values(fields: int, shape: tuple[int, ...]) -> np.ndarray:
    """Grid values (fields, *shape) that excite every mode, always the same."""
    return np.random.default_rng(ROUGH).standard_normal((fields, *shape))
