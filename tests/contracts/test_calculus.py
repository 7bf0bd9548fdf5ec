"""Every reading of the calculus: arithmetic with reflected operators, identities of vector analysis, clear errors."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_close

from sciml.boundary import dirichlet, neumann, robin
from sciml.calculus import FiniteDifference, Pointwise, Spectral, Symbol
from sciml.domain import Box, Grid
from sciml.equations import Evolution, Field, equation
from sciml.equations.base import stiff_part
from sciml.errors import ConfigError

BOX = Box((0.0, 0.0), (2 * np.pi, 2 * np.pi), (True, True))
GRID = Grid(BOX, (24, 20))
POINTS = GRID.points.reshape(-1, 2)


def wave(x):
    return 1.5 + jnp.sin(x[0]) * jnp.cos(x[1])


class OnGrid:
    """A grid reading behind the interface of the tests: functions in, values at all points out."""

    def __init__(self, calculus):
        self.d = calculus

    def field(self, function):
        return self.d.sample(function)

    def at_points(self, u):
        return np.asarray(self.d.values(u)).ravel()


class AtPoints:
    """The pointwise reading behind the same interface."""

    d = Pointwise(2, has_time=False)

    def field(self, function):
        return self.d.sample(function)

    def at_points(self, u):
        return np.asarray(jax.vmap(self.d.values(u))(jnp.asarray(POINTS)))


READINGS = {
    "spectral": (OnGrid(Spectral(GRID)), 1e-12),
    "differences of order 4": (OnGrid(FiniteDifference(GRID, {}, 4)), 5e-3),  # (2 pi/20)^4 / 30 and a margin
    "pointwise": (AtPoints(), 1e-13),
}
readings = pytest.mark.parametrize("name", READINGS)


@readings
def test_arithmetic_with_reflected_operators(name):
    reading, _ = READINGS[name]
    u, values = reading.field(wave), np.asarray(jax.vmap(wave)(jnp.asarray(POINTS)))
    number, u_over_u = np.float64(0.5), np.ones_like(values)
    cases = [
        (2.0 + u, 2 + values), (u + 2.0, values + 2), (2.0 - u, 2 - values), (u - 2.0, values - 2), (-u, -values),
        (3.0 * u, 3 * values), (u / 4.0, values / 4), (1.0 / u, 1 / values), (u * u, values**2), (u / u, u_over_u),
        (u**3, values**3), (number * u, values / 2), (u * number, values / 2), (+u, values), (u - u, 0 * values),
        (jnp.asarray(2.0) * u, 2 * values), (reading.d.map(jnp.exp, u), np.exp(values)),
    ]  # fmt: skip
    for found, expected in cases:
        assert_close(reading.at_points(found), expected, rtol=1e-12, atol=1e-12)


@readings
def test_derivatives_and_identities(name):
    """Against the derivatives of sin(x) cos(y) by hand; div grad = laplacian; mixed derivatives commute."""
    reading, tolerance = READINGS[name]
    u, d, (x, y) = reading.field(wave), reading.d, POINTS.T
    by_hand = {
        "x": (d.partial(u, 0), np.cos(x) * np.cos(y)),
        "yy": (d.partial(u, 1, 2), -np.sin(x) * np.cos(y)),
        "xxx": (d.partial(u, 0, 3), -np.cos(x) * np.cos(y)),
        "lap": (d.laplacian(u), -2 * np.sin(x) * np.cos(y)),
        "div grad": (d.divergence(d.gradient(u)), -2 * np.sin(x) * np.cos(y)),
        "xy": (d.partial(d.partial(u, 0), 1), -np.cos(x) * np.sin(y)),
        "yx": (d.partial(d.partial(u, 1), 0), -np.cos(x) * np.sin(y)),
    }
    for what, (found, expected) in by_hand.items():
        assert np.abs(reading.at_points(found) - expected).max() < 10 * tolerance, what


def test_inverse_laplacian():
    """Of a wave by hand; the mean is left out; the symbol is the same factor; points cannot supply it."""
    d, u = Spectral(GRID), Spectral(GRID).sample(wave)
    p, (x, y) = d.inverse_laplacian(u), POINTS.T
    assert_close(np.asarray(p.values).ravel(), -np.sin(x) * np.cos(y) / 2, rtol=1e-12, atol=1e-14)
    symbol = Symbol(GRID)
    factor = symbol.values(symbol.inverse_laplacian(symbol.laplacian(symbol.field(1.0))))
    assert factor[0, 0] == 0 and np.abs(factor.ravel()[1:] - 1).max() < 1e-14
    with pytest.raises(ConfigError, match="cannot invert the Laplacian"):
        AtPoints.d.inverse_laplacian(AtPoints().field(wave))


@readings
def test_coordinates_and_varying_coefficients(name):
    reading, tolerance = READINGS[name]
    u, d, (x, y) = reading.field(wave), reading.d, POINTS.T
    assert_close(reading.at_points(d.coordinates[1]), y, rtol=1e-14)
    a = d.sample(lambda p: 2.0 + jnp.cos(p[0]))
    flux = d.divergence(tuple(a * slope for slope in d.gradient(u)))
    expected = -np.sin(x) * np.cos(x) * np.cos(y) - 2 * (2 + np.cos(x)) * np.sin(x) * np.cos(y)
    assert np.abs(reading.at_points(flux) - expected).max() < 10 * tolerance
    assert d.sample(3.0) == 3.0


def test_symbol_is_the_factor_of_each_mode():
    d, spectral = Symbol(GRID), Spectral(GRID)
    one = d.field(1.0)
    operator = 0.3 * d.laplacian(one) - 2.0 * d.partial(one, 0) + one / 2.0 + 0
    u = spectral.sample(wave)
    applied = 0.3 * spectral.laplacian(u) - 2.0 * spectral.partial(u, 0) + u / 2.0
    assert_close(d.values(operator) * u.coefficients, applied.coefficients, rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize(
    "text",
    [
        lambda u, d: u * u,
        lambda u, d: u + 1.0,
        lambda u, d: d.map(jnp.sin, u),
        lambda u, d: u * d.sample(wave),
        lambda u, d: u * d.coordinates[0],
        lambda u, d: d.dt(u),
    ],
    ids=["product", "constant", "map", "varying coefficient", "coordinate", "time derivative"],
)
def test_symbol_refuses_what_is_not_linear_with_constant_coefficients(text):
    d = Symbol(GRID)
    with pytest.raises(ConfigError, match="linear with constant coefficients"):
        text(d.field(1.0), d)


def test_spectral_time_derivative_over_saved_times():
    """Order 6 in the spacing 0.05: 0.05^6 times the seventh derivative of the exponential."""
    times = np.linspace(0.0, 0.5, 11)
    d = Spectral(GRID, times=times)
    values = np.exp(-times)[:, None, None] * np.asarray(Spectral(GRID).sample(wave).values)
    assert_close(d.values(d.dt(d.field(values))), -values, rtol=1e-7, dtype=False)
    with pytest.raises(ConfigError, match="no time derivative"):
        Spectral(GRID).dt(Spectral(GRID).sample(wave))


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("kind", ["dirichlet", "neumann", "robin"])
def test_faces_are_filled_from_the_conditions(kind, order):
    """A polynomial of the degree the stencils are exact for is reproduced on the faces to rounding."""
    grid = Grid(Box((0.0,), (2.0,), (False,)), (12,))
    x = grid.axes[0]
    u, slope = x**order - x, order * x ** (order - 1) - 1
    faces = {"x-": (0, -1.0), "x+": (-1, 1.0)}
    make = {
        "dirichlet": lambda i, n: dirichlet(float(u[i])),
        "neumann": lambda i, n: neumann(float(n * slope[i])),
        "robin": lambda i, n: robin(2.0, 0.5, float(2 * u[i] + 0.5 * n * slope[i])),
    }[kind]
    boundary = {face: make(i, normal) for face, (i, normal) in faces.items()}
    d = FiniteDifference(grid, boundary, order)
    state = d.embed(jnp.asarray(u[d.interior]))
    assert_close(state.raw, u, rtol=1e-11, atol=1e-11, dtype=False)
    assert_close(d.partial(state, 0).raw, slope, rtol=1e-10, atol=1e-10, dtype=False)
    assert (d.interior == (slice(0, None),)) == (order == 2 and kind != "dirichlet")


def test_wrong_use_is_answered_with_the_line_to_write():
    @equation
    class Wrong(Evolution):
        """Calls a jax function on a field."""

        fields = (Field("u"),)

        def stiff(self, u, d):
            return {"u": jnp.sin(u.u)}

    d = Spectral(GRID)
    with pytest.raises(TypeError) as caught:
        stiff_part(Wrong(), {"u": d.sample(wave)}, d)
    assert any("d.map(jnp.sin, u.u)" in note for note in caught.value.__notes__)


def test_readings_refuse_what_they_cannot_represent():
    bounded = Grid(Box((0.0,), (1.0,), (False,)), (16,))
    with pytest.raises(ConfigError, match="every axis to be periodic"):
        Spectral(bounded)
    with pytest.raises(ConfigError, match="order 2 or 4"):
        FiniteDifference(bounded, {"x-": dirichlet(), "x+": dirichlet()}, 3)
    with pytest.raises(ConfigError, match="do not match the bounded faces"):
        FiniteDifference(bounded, {"x-": dirichlet()}, 2)
    with pytest.raises(ConfigError, match="stand on the grid"):
        Spectral(GRID).sample(np.ones((3, 3)))
    with pytest.raises(ConfigError, match="between the grid points"):
        Pointwise(2, has_time=False).sample(np.ones((3, 3)))
