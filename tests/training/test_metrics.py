"""Errors and spectra."""

from __future__ import annotations

import numpy as np
import pytest
from comparison import assert_close

from sciml.errors import DataError
from sciml.metrics import radial_spectrum, relative_l2, sample_errors, spread


def test_relative_error_of_a_scaled_field():
    truth = np.random.default_rng(0).normal(size=(5, 8, 8))
    assert_close(sample_errors(1.01 * truth, truth), np.full(5, 0.01), rtol=1e-12)
    assert_close(np.asarray(relative_l2(0.9 * truth, truth)), np.asarray(0.1), rtol=1e-12)


def test_a_zero_truth_gives_the_absolute_error():
    assert_close(sample_errors(np.ones((1, 4)), np.zeros((1, 4))), np.asarray([2.0]), rtol=1e-15)


def test_unequal_shapes_are_refused():
    with pytest.raises(DataError, match="differ in shape"):
        sample_errors(np.zeros((2, 3)), np.zeros((2, 4)))


def test_spread_orders_its_numbers():
    facts = spread(np.linspace(0.0, 1.0, 101))
    assert facts["median"] == pytest.approx(0.5) and facts["median"] < facts["p95"] < facts["max"]


def test_a_single_wave_stands_in_its_shell():
    x = np.arange(32) / 32 * 2.0
    field = 3.0 * np.sin(2 * np.pi * 4 * x / 2.0)[:, None] * np.ones(16)
    k, density = radial_spectrum(field, (2.0, 1.0))
    assert np.argmax(density) == 4
    assert k[4] == pytest.approx(2 * np.pi * 4 / 2.0)
    assert density[4] == pytest.approx(4.5)


@pytest.mark.parametrize("shape", [(64,), (16, 24), (8, 8, 8)])
def test_no_energy_is_lost(shape):
    field = np.random.default_rng(0).normal(size=(3, *shape))
    _, density = radial_spectrum(field, (1.0,) * len(shape))
    assert density.sum() == pytest.approx(np.mean(field**2))
