"""Regions of stability that the methods declare, and the guard that keeps steps inside of them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciml import registry
from sciml.domain import Box, Grid
from sciml.equations import Evolution, Field, equation, parameter
from sciml.errors import NumericalError
from sciml.problem import make_problem
from sciml.solvers import Etdrk2, solve
from sciml.solvers.linear import Diagonal
from sciml.solvers.method import TimeStepper
from sciml.solvers.stability import MOST_GROWTH, SAFETY

METHODS = [registry.load("method", name) for name in registry.names("method")]
STEPPERS = [cls for cls in METHODS if issubclass(cls, TimeStepper)]


@equation
class Carried(Evolution):
    """u_t = -c u_x, treated explicitly by every method."""

    fields = (Field("u"),)
    speed: float = parameter(1.0)

    def nonstiff(self, u, d):
        return {"u": -self.speed * d.partial(u.u, 0)}


def growth(cls, z):
    """|y| after one step of y' = z y from 1."""
    method, z = cls(), jnp.asarray(z)
    linear = Diagonal(jnp.zeros_like(z)) if method.treats_linear_part else None
    prepared = jax.jit(method.prepare)(linear, 1.0)
    return np.abs(np.asarray(method.step(prepared, linear, lambda y, t: z * y, jnp.ones_like(z), 0.0, 1.0)))


@pytest.mark.parametrize("cls", STEPPERS)
def test_nothing_grows_inside_the_declared_region(cls):
    """On the ellipse, shrunk as the guard does; just beyond the half axes it does grow."""
    angles = np.linspace(np.pi / 2, np.pi, 91)
    edge = SAFETY * (cls.real_limit * np.cos(angles) + 1j * cls.imaginary_limit * np.sin(angles))
    assert growth(cls, edge).max() < 1 + 1e-12
    assert growth(cls, -1.1 * cls.real_limit + 0j) > 1
    if cls.imaginary_limit:
        assert growth(cls, 1.1j * cls.imaginary_limit) > 1
    else:
        z = np.asarray([0.05, 0.1, 0.2])
        assert np.abs((growth(cls, 1j * z) - 1) / (cls.imaginary_growth * z**4) - 1).max() < 0.02


BOX = Box((0.0,), (2 * np.pi,), (True,))
GRID = Grid(BOX, (32,))


def rough(x):
    waves = jnp.arange(1.0, 16.0)
    return jnp.sum(jnp.cos(waves * x[0] + waves**2))


def carried(horizon):
    return make_problem(Carried(1.0), BOX, initial={"u": rough}, horizon=horizon)


def after(dt, horizon):
    """Size of what noise has become, relative to the start."""
    found = solve(carried(horizon), GRID, Etdrk2(dt=dt, unstable="refuse"), times=[0.0, horizon])
    before, now = jnp.linalg.norm(found.fields["u"], axis=1)
    return float(now / before)


def test_without_a_limit_on_the_imaginary_axis_the_duration_counts():
    """RK2 that turns the fastest mode by 0.47 per step makes it exp(0.47^4/8 n) as large: 400-fold in 1000 steps."""
    step = 0.5 / 16
    assert after(step, 4 * step) < 1.01
    with pytest.raises(NumericalError, match="time step is unstable") as caught:
        after(step, 1000 * step)
    dt = float(str(caught.value.fix).split("dt: ")[1].split(",")[0])
    assert step / 4 < dt < step / 2
    assert after(dt, 1000 * step) < MOST_GROWTH
