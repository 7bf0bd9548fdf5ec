"""Collocation points: even coverage of the box by a sequence, shifted at random."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from sciml.domain import Box
from sciml.problem import Problem
from sciml.types import Array, Float, Key


def spread_points(key: Key, problem: Problem, count: int, early: float = 0.0) -> Float[Array, "count n"]:
    """Points that fill the box evenly, shifted at random, with a time in [0, horizon] last for an evolution.

    With `early` > 0 the values log(1 + early t/horizon) are even instead of the times. The points are a rank-one
    sequence whose steps are powers of the generalized golden ratio: M. Roberts, "The unreasonable effectiveness of
    quasirandom sequences" (2018).
    """
    box: Box = problem.domain
    lower, lengths = [*box.lower], [*box.lengths]
    if problem.is_evolution:
        lower, lengths = [*lower, 0.0], [*lengths, float(problem.horizon)]
    ratio = 2.0
    for _ in range(60):
        ratio = (1.0 + ratio) ** (1.0 / (len(lower) + 1))
    steps = jnp.asarray([ratio ** -(axis + 1) for axis in range(len(lower))])
    shift = jax.random.uniform(key, (len(lower),), dtype=jnp.float64)
    unit = (shift + jnp.arange(count, dtype=jnp.float64)[:, None] * steps) % 1.0
    if problem.is_evolution and early > 0:
        unit = unit.at[:, -1].set(jnp.expm1(unit[:, -1] * math.log1p(early)) / early)
    return jnp.asarray(lower) + unit * jnp.asarray(lengths)
