"""Values at the two ends of every cell from the averages over it and its neighbors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from sciml.types import Array

Limiter = Callable[[Array, Array], Array]
"""(difference to the left neighbor, to the right neighbor) -> difference over the cell."""
ROUNDINGS = 50  # of the averages: smaller variations are noise, and are not limited


def window(values: Any, axis: int, first: int, count: int) -> Array:
    """`count` entries along an axis from `first` on."""
    return jax.lax.slice_in_dim(values, first, first + count, axis=axis)


def minmod(a: Array, b: Array) -> Array:
    """The smaller of two differences of equal sign, else zero."""
    return jnp.where(a * b > 0, jnp.where(jnp.abs(a) < jnp.abs(b), a, b), 0.0)


def mc(a: Array, b: Array) -> Array:
    """Monotonized central: the mean, at most twice the smaller one. B. van Leer, J. Comput. Phys. 23 (1977) 276."""
    return minmod(2 * minmod(a, b), 0.5 * (a + b))


def van_leer(a: Array, b: Array) -> Array:
    """The harmonic mean, smooth where both have one sign. B. van Leer, J. Comput. Phys. 14 (1974) 361."""
    product = a * b
    return jnp.where(product > 0, 2 * product / jnp.where(product > 0, a + b, 1.0), 0.0)


LIMITERS: dict[str, Limiter] = {"minmod": minmod, "mc": mc, "van_leer": van_leer}


def muscl(averages: Array, axis: int, limiter: Limiter) -> tuple[Array, Array]:
    """(lower end, upper end) of all cells but the first and last along an axis; order 2.

    B. van Leer, J. Comput. Phys. 32 (1979) 101.
    """
    n = averages.shape[axis] - 2
    before, here, after = (window(averages, axis, k, n) for k in range(3))
    half = 0.5 * limiter(here - before, after - here)
    return here - half, here + half


def weno5(averages: Array, axis: int, limiter: Limiter) -> tuple[Array, Array]:
    """(lower end, upper end) of all cells but two at either side along an axis; order 5, 3 at points where slope and
    curvature vanish together. `limiter` is not used.

    A jump is kept as sharp on top of a large mean as without it, down to rounding. Weights of R. Borges et al.,
    J. Comput. Phys. 227 (2008) 3191, eq. (28) with p = 2, stencils of G.-S. Jiang, C.-W. Shu, J. Comput. Phys. 126
    (1996) 202.
    """
    del limiter
    n = averages.shape[axis] - 4
    stencil = tuple(window(averages, axis, k, n) for k in range(5))
    return _weno_end(stencil[::-1]), _weno_end(stencil)


def _weno_end(v: tuple[Array, ...]) -> Array:
    """The value at the upper end of the middle one of five cells."""
    a, b, c, d, e = v
    noise = _squared_noise(a * a + b * b + c * c + d * d + e * e)
    rough = (
        13 / 12 * (a - 2 * b + c) ** 2 + 0.25 * (a - 4 * b + 3 * c) ** 2,
        13 / 12 * (b - 2 * c + d) ** 2 + 0.25 * (b - d) ** 2,
        13 / 12 * (c - 2 * d + e) ** 2 + 0.25 * (3 * c - 4 * d + e) ** 2,
    )
    ends = (2 * a - 7 * b + 11 * c, -b + 5 * c + 2 * d, 2 * c + 5 * d - e)
    difference = rough[0] - rough[2]
    weights = [ideal * (1 + (difference / (r + noise)) ** 2) for ideal, r in zip((0.1, 0.6, 0.3), rough, strict=True)]
    mean = sum((w * end for w, end in zip(weights, ends, strict=True)), jnp.zeros_like(a))
    return mean / (6 * (weights[0] + weights[1] + weights[2]))


def _squared_noise(squares: Array) -> Array:
    """What rounding makes of the squared variations of five averages, from the sum of their squares; never zero."""
    numbers = jnp.finfo(squares.dtype)
    return (ROUNDINGS * numbers.eps) ** 2 / 5 * squares + float(numbers.tiny) ** 0.4


RECONSTRUCTIONS: dict[str, tuple[Callable[[Array, int, Limiter], tuple[Array, Array]], int]] = {
    "muscl": (muscl, 2),
    "weno5": (weno5, 5),
}
"""Name to (function, order)."""
GHOSTS = {"muscl": 2, "weno5": 3}
"""Layers of ghost cells that the ends of the cells next to the box need."""


def at_centers(means: Array, axis: int) -> Array:
    """Point values in the middle from averages along an axis, two entries fewer at either side; order 6."""
    second, fourth = _even_differences(means, axis)
    n = means.shape[axis] - 4
    return window(means, axis, 2, n) - second / 24 + 3 / 640 * fourth


def averaged(points: Array, axis: int) -> Array:
    """Averages from point values in the middle, two entries fewer at either side; order 6.

    P. Buchmueller, C. Helzel, J. Sci. Comput. 61 (2014) 343, sec. 3: with both steps the flux through a face is of high
    order in more than one dimension, too.
    """
    second, fourth = _even_differences(points, axis)
    n = points.shape[axis] - 4
    return window(points, axis, 2, n) + second / 24 - 17 / 5760 * fourth


def _even_differences(v: Array, axis: int) -> tuple[Array, Array]:
    n = v.shape[axis] - 4
    a, b, c, d, e = (window(v, axis, k, n) for k in range(5))
    return b - 2 * c + d, a - 4 * b + 6 * c - 4 * d + e
