"""Quantities of interest against values known in closed form."""

from __future__ import annotations

import numpy as np
import pytest
from comparison import assert_close

from sciml import registry
from sciml.data.quantities import HalfAmplitudeTime, Quantity
from sciml.errors import DataError

NAMES = registry.names("quantity")
X = np.arange(64) / 64
TIMES = np.linspace(0.1, 1.0, 10)
RATE = 2.0
MODE = np.sin(2 * np.pi * X)
DECAY = {"u": np.exp(-RATE * TIMES)[:, None] * MODE}
GRID = {"time": TIMES, "x": X}


def value(name, fields=DECAY, coordinates=GRID, initial=None, **options):
    periodic = options.pop("periodic", ("x",))
    return registry.load("quantity", name)(**options)(fields, coordinates, initial, periodic=periodic)


@pytest.mark.parametrize("name", NAMES)
def test_contract(name):
    """Every registered quantity: a float, the same for float32 arrays, unaffected by another field; a unit."""
    quantity = registry.load("quantity", name)()
    assert isinstance(quantity, Quantity)
    result = quantity(DECAY, GRID, {"u": MODE}, periodic=("x",))
    assert type(result) is float
    assert np.isfinite(result)
    single = {"u": DECAY["u"].astype(np.float32)}
    assert_close(quantity(single, GRID, {"u": MODE}, periodic=("x",)), result, rtol=1e-5, atol=1e-7)  # float32 data
    both = {"other": DECAY["u"] + 1, **DECAY}
    chosen = registry.load("quantity", name)(field="u")
    assert chosen(both, GRID, {"u": MODE}, periodic=("x",)) == result
    with pytest.raises(DataError, match="which field"):
        quantity(both, GRID, {"u": MODE})
    assert quantity.unit("K", {"time": "s", "x": "m"}) in ("K", "K^2", "K/m", "s")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("final_energy", 0.5 * np.exp(-2 * RATE)),
        ("half_amplitude_time", np.log(2) / RATE),
        ("maximum", np.exp(-RATE)),
        ("minimum", -np.exp(-RATE)),
        ("total_variation", 4 * np.exp(-RATE)),
        ("final_maximum_gradient", 64 * np.sin(2 * np.pi / 64) * np.exp(-RATE)),
    ],
)
def test_one_decaying_mode(name, expected):
    assert_close(value(name, initial={"u": MODE}), expected, rtol=1e-12)  # rounding


def test_mean_and_extremes_over_all_times():
    shifted = {"u": DECAY["u"] + 3.0}
    assert_close(value("mean", shifted), 3.0, rtol=1e-14)
    assert_close(value("maximum", shifted, when="all"), 3 + np.exp(-RATE * 0.1), rtol=1e-14)


def test_bounded_axes_use_the_trapezoidal_rule():
    x, y = np.linspace(0, 1, 5), np.linspace(0, 2, 4)
    linear = {"u": x[:, None] + 0 * y}
    assert_close(value("mean", linear, {"x": x, "y": y}, periodic=()), 0.5, rtol=1e-14)
    assert_close(value("total_variation", linear, {"x": x, "y": y}, periodic=()), 1.0, rtol=1e-14)
    sloped = {"u": 3 * x[:, None] + 4 * y}
    assert_close(value("final_maximum_gradient", sloped, {"x": x, "y": y}, periodic=()), 5.0, rtol=1e-13)


def test_half_amplitude_time_about_the_mean():
    offset = {"u": DECAY["u"] + 3.0}
    half = value("half_amplitude_time", offset, initial={"u": MODE + 3.0}, about="mean")
    assert_close(half, np.log(2) / RATE, rtol=1e-12)


def test_half_amplitude_not_reached_is_the_last_time():
    slow = {"u": np.exp(-0.1 * TIMES)[:, None] * MODE}
    assert value("half_amplitude_time", slow, initial={"u": MODE}) == TIMES[-1]


def test_half_amplitude_of_two_modes():
    """Interpolation error between ten saved times of a decay that is not a single exponential."""

    def amplitude(t):
        return np.sqrt(0.5 * (np.exp(-2 * RATE * t) + np.exp(-8 * RATE * t)))

    def state(t):
        return np.exp(-RATE * t) * MODE + np.exp(-4 * RATE * t) * np.sin(4 * np.pi * X)

    times = np.linspace(0, 1, 200_001)
    exact = times[np.argmax(amplitude(times) <= amplitude(0) / 2)]
    half = value("half_amplitude_time", {"u": np.stack([state(t) for t in TIMES])}, initial={"u": state(0)})
    assert_close(half, exact, rtol=2e-3)


def test_half_amplitude_needs_a_start():
    with pytest.raises(DataError, match="does not start at time 0"):
        value("half_amplitude_time")
    with pytest.raises(DataError, match="no amplitude at time 0"):
        value("half_amplitude_time", initial={"u": 0 * MODE})
    assert HalfAmplitudeTime()({"u": np.stack([MODE, 0.25 * MODE])}, {"time": np.array([0.0, 1.0]), "x": X}) == 0.5
