"""Random fields have the spread and the spectrum they state."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_close

from sciml.domain import Box
from sciml.sampling import LogNormalField, RandomCosineSeries

DRAWS = 4000


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("kind", [RandomCosineSeries, LogNormalField])
def test_cosine_series_have_their_standard_deviation_and_spectrum(kind, dim):
    """Orthonormal modes prod_i sqrt(2) cos(pi w_i s_i), variances ~ (pi^2 |w|^2 + tau^2)^-alpha.

    A variance from 4000 draws is off by sqrt(2/4000) = 2.2 %, a ratio of two by 3.2 %: the limits are five times that.
    """
    config = kind(modes=3, alpha=2.0, tau=3.0, amplitude=0.7)
    box = Box((0.0,) * dim, (1.0,) * dim, (False,) * dim)
    keys = jax.random.split(jax.random.key(5), DRAWS)
    amplitudes = np.asarray(jax.vmap(lambda key: config.draw(key, box).coefficients)(keys))
    waves = np.asarray(config.draw(keys[0], box).waves)
    variances = amplitudes.var(axis=0) * 0.5 ** (waves > 0).sum(axis=1)  # of the coefficients of orthonormal modes
    assert_close(np.sqrt(variances.sum()), 0.7, rtol=0.05, dtype=False)
    expected = (np.pi**2 * (waves**2).sum(axis=1) + 9.0) ** -2.0
    assert_close(variances / variances[0], expected / expected[0], rtol=0.16)


def test_the_standard_deviation_is_that_of_the_values_on_the_square():
    """Mean square over the midpoints of 16 x 16 cells, which is exact for these waves; 5 times 1/sqrt(4000) apart."""
    config, box = RandomCosineSeries(modes=3, amplitude=0.7, mean=0.2), Box((0.0, 0.0), (2.0, 1.0), (False, False))
    s = (np.arange(16) + 0.5) / 16
    points = jnp.asarray(np.stack(np.meshgrid(2 * s, s, indexing="ij"), axis=-1).reshape(-1, 2))
    keys = jax.random.split(jax.random.key(6), DRAWS)
    values = np.asarray(jax.jit(jax.vmap(lambda key: jax.vmap(config.draw(key, box))(points)))(keys))
    assert_close(np.sqrt(np.mean((values - 0.2) ** 2)), 0.7, rtol=0.08, dtype=False)
