"""Diffusion that finite volumes would lose is refused."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import pytest

from sciml.domain import Box, Grid
from sciml.equations import Field, equation
from sciml.equations.conservation import ConservationLaw
from sciml.errors import ConfigError
from sciml.problem import make_problem
from sciml.solvers import solve
from sciml.solvers.finite_volume.method import FiniteVolume

LINE = Box((0.0,), (1.0,), (True,))


@equation
class DiffusiveFlux(ConservationLaw):
    """Transport and diffusion in one flux, or in one divergence."""

    fields = (Field("u"),)
    in_flux: bool = dataclasses.field(default=True, metadata={"static": True})

    def flux(self, u, d):
        if not self.in_flux:
            return {}
        return {"u": tuple(0.5 * u.u * u.u - 0.1 * slope for slope in d.gradient(u.u))}

    def nonstiff(self, u, d):
        if self.in_flux:
            return {}
        return {"u": -d.divergence(tuple(0.5 * u.u * u.u - 0.1 * slope for slope in d.gradient(u.u)))}

    def max_speed(self, u, axis, d):
        return d.map(jnp.abs, u.u)


@pytest.mark.parametrize("in_flux", [True, False])
def test_diffusion_that_would_be_lost_is_refused(in_flux):
    start = {"u": lambda x: jnp.sin(2 * jnp.pi * x[0])}
    problem = make_problem(DiffusiveFlux(in_flux), LINE, initial=start, horizon=0.1)
    with pytest.raises(ConfigError, match="contains a derivative" if in_flux else "added to another"):
        solve(problem, Grid(LINE, (16,)), FiniteVolume(), times=[0.1])
