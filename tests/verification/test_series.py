"""Functions of time by their values at Chebyshev nodes."""

from __future__ import annotations

import jax
import numpy as np

from sciml.calculus.series import GridSeries, chebyshev_times


def test_is_exact_between_the_nodes_and_within_rounding_of_them():
    """A time that is a node but for rounding must not divide by what a fused product makes zero."""
    end, count = 0.3, 24
    times = chebyshev_times(end, count)
    series = GridSeries(np.cos(9 * times)[:, None], end)
    near = np.concatenate([times * (1 + k * np.finfo(float).eps) for k in (-2, -1, 0, 1, 2)])
    asked = np.concatenate([near, np.linspace(0, end, 50)])
    found = jax.jit(jax.vmap(series.at))(asked)[:, 0]
    assert np.abs(found - np.cos(9 * asked)).max() < 1e-13
