"""Fields of published data sets have the values, ranges and spectra of their recipes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_close

from sciml.domain import Box
from sciml.errors import ConfigError
from sciml.sampling.published import (
    PeriodicGaussian,
    PlaneWave,
    RandomDisc,
    RandomPulse,
    RandomSineSum,
    TwoValuedField,
)

LINE = Box((0.0,), (1.0,), (True,))
SQUARE = Box((0.0, 0.0), (1.0, 1.0), (False, False))
KEYS = jax.random.split(jax.random.key(1), 2000)
S = (jnp.arange(64) + 0.5) / 64


def values(config, keys=KEYS) -> np.ndarray:
    """(draws, 64) values on the unit line."""
    return np.asarray(jax.jit(jax.vmap(lambda key: jax.vmap(config.draw(key, LINE))(S[:, None])))(keys))


def test_periodic_gaussian_has_the_covariance_of_li_s_burgers():
    """625 (4 pi^2 k^2 + 25)^-2 is the variance of the amplitude of sqrt(2) cos(2 pi k x): 2.2 % off, times five."""
    found = values(PeriodicGaussian(alpha=2.0, tau=5.0, sigma=25.0, modes=8))
    for k in (1, 2, 5):
        amplitude = found @ np.asarray(jnp.sqrt(2) * jnp.cos(2 * jnp.pi * k * S)) / 64
        expected = 625 * (4 * np.pi**2 * k**2 + 25) ** -2.0
        np.testing.assert_allclose(amplitude.var(), expected, rtol=5 * np.sqrt(2 / len(KEYS)))
    assert_close(found.mean(axis=1), np.zeros(len(KEYS)), rtol=0.0, atol=1e-12)


def test_plane_wave_is_li_s_forcing():
    """0.1 (sin + cos)(2 pi (x + y)) as one sine."""
    box = Box((0.0, 0.0), (1.0, 1.0), (True, True))
    force = PlaneWave(amplitude=0.1 * 2**0.5, phase=np.pi / 4).draw(KEYS[0], box)
    x, y = 0.3, 0.45
    theta = 2 * np.pi * (x + y)
    np.testing.assert_allclose(force(jnp.array([x, y])), 0.1 * (np.sin(theta) + np.cos(theta)), rtol=1e-12)


def test_two_values_and_both_in_equal_parts():
    points = jnp.stack(jnp.meshgrid(S[::4], S[::4], indexing="ij"), axis=-1).reshape(-1, 2)
    draw = jax.jit(jax.vmap(lambda key: jax.vmap(TwoValuedField(modes=6).draw(key, SQUARE))(points)))
    found = np.asarray(draw(KEYS[:400]))
    assert set(np.unique(found)) == {3.0, 12.0}
    assert abs((found == 12.0).mean() - 0.5) < 0.1  # 400 fields of about one sign change each


def test_sine_sums_have_their_share_of_folds_and_cuts():
    drawn = jax.vmap(lambda key: RandomSineSum().draw(key, LINE))(KEYS)
    for share in (drawn.folded, drawn.cut):
        assert abs(float(share.mean()) - 0.1) < 5 * np.sqrt(0.09 / len(KEYS))
    assert set(np.unique(drawn.wave)) == {1.0, 2.0, 3.0, 4.0}
    found = values(RandomSineSum())
    folded = np.asarray(drawn.folded) > 0
    one_sign = (found >= 0).all(axis=1) | (found <= 0).all(axis=1)
    assert one_sign[folded].all() and one_sign[~folded].mean() < 0.1
    plain = ~folded & (np.asarray(drawn.cut) == 0)
    assert_close(found[plain].mean(axis=1), np.zeros(plain.sum()), rtol=0.0, atol=1e-12)
    cut = np.asarray(drawn.cut) > 0
    assert np.abs(found[cut][:, :3]).max() < 1e-2  # the window begins at 0.1 at the earliest


def test_normalized_sine_sums_fill_the_range():
    found = values(RandomSineSum(normalized=True), KEYS[:200])
    assert found.min() > -1e-3 and found.max() < 1 + 1e-3
    assert found.min(axis=1).max() < 0.1 and found.max(axis=1).min() > 0.9  # folds end between the 64 points


def test_pulses_and_discs():
    found = values(RandomPulse())
    heights = found.max(axis=1)
    assert heights.min() >= 1.0 and heights.max() <= 2.0 and heights.std() > 0.2
    widths = (found > 0).mean(axis=1)
    assert widths.min() > 0.28 and widths.max() < 0.62
    discs = values(RandomDisc(radius=(0.1, 0.4)))
    assert set(np.unique(discs)) == {1.0, 2.0}
    assert (discs == 2.0).mean(axis=1).min() > 0.18 and (discs == 2.0).mean(axis=1).max() < 0.82


@pytest.mark.parametrize("config", [PeriodicGaussian(), PlaneWave(), RandomSineSum()])
def test_periodic_fields_refuse_a_bounded_box(config):
    with pytest.raises(ConfigError, match="needs a periodic domain"):
        config.draw(KEYS[0], SQUARE)
