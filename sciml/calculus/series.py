"""A function of time on the points of a grid, by its values at Chebyshev nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np

from sciml.types import Array


def chebyshev_times(end: float, count: int) -> np.ndarray:
    """The extrema of a Chebyshev polynomial on [0, end], shape (count,), increasing."""
    return 0.5 * end * (1 - np.cos(np.pi * np.arange(count) / (count - 1)))


@jax.tree_util.register_dataclass
@final
@dataclass(frozen=True)
class GridSeries:
    """Values at `chebyshev_times(end, count)`, shape (count, *grid.shape), interpolated in time.

    Exact to rounding for a function that turns by less than about 2 count - 40 radians. J.-P. Berrut, L. N. Trefethen,
    SIAM Rev. 46 (2004) 501, eq. (5.4).
    """

    values: Array
    end: Any

    def at(self, t: Any) -> Array:
        """The values at time t (shape ()), shape (*grid.shape)."""
        count = self.values.shape[0]
        distance = t - self.end * jnp.asarray(chebyshev_times(1.0, count))
        signs = np.where(np.arange(count) % 2, -1.0, 1.0)
        signs[[0, -1]] /= 2
        # A product that XLA fuses with the difference is off by rounding.
        is_node = jnp.abs(distance) <= 4 * jnp.finfo(distance.dtype).eps * self.end
        weights = jnp.where(is_node, 0.0, signs / jnp.where(is_node, 1.0, distance))
        weights = jnp.where(jnp.any(is_node), is_node.astype(float), weights)
        return jnp.tensordot(weights / jnp.sum(weights), self.values, axes=1)
