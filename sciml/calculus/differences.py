"""Finite-difference weights and matrices on equally spaced and on arbitrary nodes."""

from __future__ import annotations

from functools import lru_cache

import numpy as np


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
    n_from: int, from_offset: float, n_to: int, to_offset: float, spacing: float, derivative: int, order: int,
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
