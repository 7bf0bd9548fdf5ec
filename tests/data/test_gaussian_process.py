"""The Gaussian process: its covariance is the kernel, on bounded and periodic axes."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from sciml.domain import Box
from sciml.sampling.gaussian_process import GaussianProcess

LENGTH = 0.2


def covariance(box: Box, points: np.ndarray, length: float = LENGTH) -> np.ndarray:
    """Of the values at some points, exact: the amplitudes are independent normal numbers."""
    process = GaussianProcess(length=length, amplitude=3.0)
    drawn = process.draw(jax.random.key(0), box)
    numbers = np.asarray(jax.random.normal(jax.random.key(0), (2, len(drawn.waves))))
    spread = np.asarray(drawn.cosine) / numbers[0]
    phases = 2 * np.pi * ((points - box.lower) / drawn.period) @ np.asarray(drawn.waves, float).T
    modes = np.concatenate([spread * np.cos(phases), spread[1:] * np.sin(phases[:, 1:])], axis=1)
    values = np.asarray(jax.vmap(drawn)(points))
    expected = np.cos(phases) @ np.asarray(drawn.cosine) + np.sin(phases) @ np.asarray(drawn.sine)
    np.testing.assert_allclose(values, expected, atol=1e-12)
    return modes @ modes.T


@pytest.mark.parametrize(("lower", "upper"), [((0.0,), (1.0,)), ((-1.0, 0.0), (3.0, 0.5))])
def test_on_bounded_axes(lower, upper):
    box = Box(lower, upper, (False,) * len(lower))
    points = np.random.default_rng(1).uniform(lower, upper, size=(7, len(lower)))
    distances = (points[:, None] - points) / np.asarray(box.lengths)
    kernel = 9.0 * np.exp(-np.sum(distances**2, axis=-1) / (2 * LENGTH**2))
    np.testing.assert_allclose(covariance(box, points), kernel, atol=1e-11)


def test_on_a_periodic_axis():
    box = Box((0.0,), (2.0,), (True,))
    points = np.linspace(0.0, 2.0, 5)[:, None]
    found = covariance(box, points, length=0.1)
    images = sum(np.exp(-(((points - points.T) / 2.0 + k) ** 2) / (2 * 0.1**2)) for k in range(-2, 3))
    np.testing.assert_allclose(found, 9.0 * images, atol=1e-11)


def test_coefficients_tell_draws_apart():
    box = Box((0.0,), (1.0,), (False,))
    first, second = (GaussianProcess().draw(jax.random.key(k), box) for k in range(2))
    assert first.coefficients.shape == (2 * len(first.waves) - 1,)
    assert np.all(np.asarray(first.coefficients) != np.asarray(second.coefficients))
