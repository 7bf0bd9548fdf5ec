"""Finite-difference weights and matrices on equally spaced and on arbitrary nodes."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
from jax import lax

from sciml.types import Array

FEW_POINTS = 96  # measured on CPU: below, one product with the whole matrix is not slower and compiles faster


def weights(target: float, nodes: np.ndarray, derivative: int) -> np.ndarray:
    """Weights w with sum_j w_j f(nodes_j) = f^(derivative)(target), exact for polynomials of degree len(nodes) - 1.

    Fornberg, Math. Comp. 51 (1988) 699, algorithm of section 2.
    """
    n = len(nodes)
    c = np.zeros((n, derivative + 1))
    c[0, 0] = 1.0
    c1, c4 = 1.0, nodes[0] - target
    for i in range(1, n):
        last = min(i, derivative)
        c2, c5, c4 = 1.0, c4, nodes[i] - target
        for j in range(i):
            c3 = nodes[i] - nodes[j]
            c2 *= c3
            if j == i - 1:
                for k in range(last, 0, -1):
                    c[i, k] = c1 * (k * c[i - 1, k - 1] - c5 * c[i - 1, k]) / c2
                c[i, 0] = -c1 * c5 * c[i - 1, 0] / c2
            for k in range(last, 0, -1):
                c[j, k] = (c4 * c[j, k] - k * c[j, k - 1]) / c3
            c[j, 0] = c4 * c[j, 0] / c3
        c1 = c2
    return c[:, derivative]


@lru_cache(maxsize=256)
def matrix(
    n_from: int,
    from_offset: float,
    n_to: int,
    to_offset: float,
    spacing: float,
    derivative: int,
    order: int,
    periodic: bool,
) -> np.ndarray:
    """The matrix (n_to, n_from) of a derivative of the given order of accuracy.

    Source nodes stand at (i + from_offset) * spacing, targets at (i + to_offset) * spacing. The stencil is
    centered where it fits (a symmetric one gains an order for free), one-sided near a bounded end.
    """
    rows = np.zeros((n_to, n_from))
    for row in range(n_to):
        center = row + to_offset - from_offset
        on_node = float(center).is_integer()
        count = order + (2 * ((derivative + 1) // 2) - 1 if on_node else 2 * (derivative // 2))
        first = int(np.ceil(center - (count - 1) / 2 - 1e-9))
        if not periodic and (first < 0 or first + count > n_from):
            count = min(order + derivative, n_from)
            first = int(np.clip(np.ceil(center - (count - 1) / 2), 0, n_from - count))
        columns = np.arange(first, first + count)
        rows[row, columns % n_from] += weights(center, columns.astype(float), derivative) / spacing**derivative
    return rows


@lru_cache(maxsize=64)
def nodes_matrix(nodes: tuple[float, ...], derivative: int, order: int) -> np.ndarray:
    """The differentiation matrix (n, n) on arbitrary increasing nodes, stencils of order + derivative nodes."""
    points = np.asarray(nodes)
    n, count = len(points), min(order + derivative, len(points))
    rows = np.zeros((n, n))
    for row in range(n):
        first = int(np.clip(row - count // 2, 0, n - count))
        stencil = slice(first, first + count)
        rows[row, stencil] = weights(points[row], points[stencil], derivative)
    return rows


Move = Literal["", "to_face", "to_node"]
"""Derivatives at the same points, from points to midpoints, or from midpoints to points."""


@lru_cache(maxsize=256)
def conservative_matrix(n: int, spacing: float, derivative: int, move: Move) -> np.ndarray:
    """Order 2 on a bounded axis: between n points and their n - 1 midpoints with the two ends before and after them.

    From the points, shape (n + 1, n): the value or slope at the lower end, the midpoints, the upper end. Back, shape
    (n, n + 1): means, or balances of the cells around the points, of which the first and the last are half as wide.
    """
    to_face, to_node = np.zeros((n + 1, n)), np.zeros((n, n + 1))
    inner = np.arange(n - 1)
    if derivative == 0:
        to_face[inner + 1, inner] = to_face[inner + 1, inner + 1] = 0.5
        to_face[0, 0] = to_face[-1, -1] = to_node[0, 0] = to_node[-1, -1] = 1.0
        to_node[inner[1:], inner[1:]] = to_node[inner[1:], inner[1:] + 1] = 0.5
    else:
        to_face[inner + 1, inner], to_face[inner + 1, inner + 1] = -1.0, 1.0
        to_face[0, :3], to_face[-1, -3:] = (-1.5, 2.0, -0.5), (0.5, -2.0, 1.5)
        rows = np.arange(n)
        to_node[rows, rows], to_node[rows, rows + 1] = -1.0, 1.0
        to_node[[0, -1]] *= 2.0
    return (to_face if move == "to_face" else to_node) / spacing**derivative


def multiply(rows: np.ndarray, values: Any, place: int, periodic: bool) -> Array:
    """A banded matrix (m, n), the same stencil in almost all rows, times `values` along the axis `place` < 0."""
    stencil = _stencil(rows.tobytes(), rows.shape, periodic) if max(rows.shape) >= FEW_POINTS else None
    if stencil is None:
        return jnp.moveaxis(jnp.tensordot(rows, values, axes=(1, jnp.ndim(values) + place)), 0, place)
    axis, values = jnp.ndim(values) + place, jnp.asarray(values)
    n, weights = rows.shape[1], stencil.weights
    if periodic:
        before, after = max(-stencil.offset, 0), max(len(weights) - 1 + stencil.offset, 0)
        ends = (lax.slice_in_dim(values, n - before, n, axis=axis), lax.slice_in_dim(values, 0, after, axis=axis))
        values = jnp.concatenate([ends[0], values, ends[1]], axis)
        return _convolved(values, weights, max(stencil.offset, 0), rows.shape[0], axis)
    first, last = stencil.first, stencil.last
    parts = [_convolved(values, weights, first + stencil.offset, last - first, axis)]
    if first:
        parts.insert(0, _dense(stencil.head, lax.slice_in_dim(values, 0, stencil.head.shape[1], axis=axis), axis))
    if last < rows.shape[0]:
        parts.append(_dense(stencil.tail, lax.slice_in_dim(values, n - stencil.tail.shape[1], n, axis=axis), axis))
    return jnp.concatenate(parts, axis)


def _convolved(values: Array, weights: np.ndarray, start: int, count: int, axis: int) -> Array:
    parts = [
        weight * lax.slice_in_dim(values, start + j, start + j + count, axis=axis)
        for j, weight in enumerate(weights)
        if weight
    ]
    return reduce(operator.add, parts)


def _dense(rows: np.ndarray, values: Array, axis: int) -> Array:
    return jnp.moveaxis(jnp.tensordot(rows, values, axes=(1, axis)), 0, axis)


@dataclass(frozen=True, eq=False)
class _Stencil:
    """Rows first ... last - 1 hold `weights` from column row + offset on; the others are in `head` and `tail`."""

    weights: np.ndarray
    offset: int
    first: int
    last: int
    head: np.ndarray
    tail: np.ndarray


@lru_cache(maxsize=256)
def _stencil(data: bytes, shape: tuple[int, int], periodic: bool) -> _Stencil | None:
    rows = np.frombuffer(data).reshape(shape)
    middle = shape[0] // 2
    columns = np.flatnonzero(rows[middle])
    offset, weights = int(columns[0]) - middle, rows[middle, columns[0] : columns[-1] + 1]
    if periodic:
        return _Stencil(weights, offset, 0, shape[0], rows[:0], rows[:0])
    fits = np.zeros(shape[0], bool)
    for row in range(max(0, -offset), min(shape[0], shape[1] - offset - len(weights) + 1)):
        expected = np.zeros(shape[1])
        expected[row + offset : row + offset + len(weights)] = weights
        fits[row] = np.allclose(rows[row], expected, rtol=1e-12, atol=1e-13 * np.abs(weights).max())
    good = np.flatnonzero(fits)
    first, last = int(good[0]), int(good[-1]) + 1
    if not fits[first:last].all():
        return None
    head, tail = rows[:first], rows[last:]
    reach = [np.flatnonzero(np.abs(part).max(axis=0, initial=0)) for part in (head, tail)]
    return _Stencil(
        weights, offset, first, last,
        head[:, : int(reach[0][-1]) + 1] if first else head,
        tail[:, int(reach[1][0]) :] if last < shape[0] else tail,
    )  # fmt: skip
