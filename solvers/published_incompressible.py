"""What the literature says about incompressible flow, and its limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np

from sciml.domain import Box, Grid
from sciml.equations.navier_stokes import NavierStokes2D, NavierStokes3D
from sciml.equations.navier_stokes_vorticity import NavierStokesVorticity
from sciml.problem import make_problem
from sciml.solvers.etdrk4 import Etdrk4
from sciml.solvers.invariants import measure_drift
from sciml.solvers.published import Row, limit, published
from sciml.solvers.solve import solve

VISCOSITY, TIME = 0.05, 1.0
EXACT = 1e-11
DRIFT = 1e-8


def _periodic(dim: int, points: int) -> Grid:
    return Grid(Box((0.0,) * dim, (2 * np.pi,) * dim, (True,) * dim), (points,) * dim)


def _error(equation: Any, grid: Grid, start: dict[str, Any], factor: float) -> float:
    """Largest error where the exact solution is the initial one times a factor, over the largest value."""
    problem = make_problem(equation, grid.box, initial=start, horizon=TIME)
    fields = solve(problem, grid, Etdrk4(dt=0.1), times=[0.0, TIME]).fields
    frames = jnp.stack([fields[name] for name in start], axis=1)
    return float(jnp.max(jnp.abs(frames[1] - factor * frames[0])) / jnp.max(jnp.abs(frames[0])))


@published("navier_stokes_vorticity")
def vortices_in_the_plane() -> Iterator[Row]:
    """G. I. Taylor, Phil. Mag. 46 (1923) 671: vortices that decay without moving."""
    start = {"omega": lambda x: 2 * jnp.cos(x[0]) * jnp.cos(x[1])}
    found = _error(NavierStokesVorticity(VISCOSITY, 0.0), _periodic(2, 16), start, float(np.exp(-2 * VISCOSITY * TIME)))
    yield Row("decay of vortices (Taylor 1923), error", found, 0.0, EXACT)


@published("navier_stokes_2d")
def velocity_in_the_plane() -> Iterator[Row]:
    """The same in velocities."""
    start = {"u": lambda x: jnp.cos(x[0]) * jnp.sin(x[1]), "v": lambda x: -jnp.sin(x[0]) * jnp.cos(x[1])}
    found = _error(NavierStokes2D(VISCOSITY, 0.0), _periodic(2, 16), start, float(np.exp(-2 * VISCOSITY * TIME)))
    yield Row("decay of vortices (Taylor 1923), error", found, 0.0, EXACT)


@published("navier_stokes_3d")
def beltrami_flow() -> Iterator[Row]:
    """T. Dombre et al., J. Fluid Mech. 167 (1986) 353, eq. (1.1): a flow that is its own curl."""
    start = {
        "u": lambda x: jnp.sin(x[2]) + 0.4 * jnp.cos(x[1]),
        "v": lambda x: 0.7 * jnp.sin(x[0]) + jnp.cos(x[2]),
        "w": lambda x: 0.4 * jnp.sin(x[1]) + 0.7 * jnp.cos(x[0]),
    }
    found = _error(NavierStokes3D(VISCOSITY, 0.0), _periodic(3, 8), start, float(np.exp(-VISCOSITY * TIME)))
    yield Row("decay of an ABC flow (Dombre et al. 1986), error", found, 0.0, EXACT)


@limit("navier_stokes_vorticity")
def euler_equation_for_vorticity() -> Iterator[Row]:
    """Without viscosity and drag energy and enstrophy stay."""
    for name, drift in measure_drift(NavierStokesVorticity(0.0, 0.0), Etdrk4()).drifts.items():
        yield Row(f"nu = mu = 0 is the Euler equation: drift of {name}", drift, 0.0, DRIFT)


@limit("navier_stokes_2d")
def euler_equation_in_the_plane() -> Iterator[Row]:
    """Without viscosity and drag the energy stays."""
    drifts = measure_drift(NavierStokes2D(0.0, 0.0), Etdrk4()).drifts
    yield Row("nu = mu = 0 is the Euler equation: drift of energy", drifts["energy"], 0.0, DRIFT)


@limit("navier_stokes_3d", long=True)
def euler_equation_in_space() -> Iterator[Row]:
    """Without viscosity and drag the energy stays."""
    drifts = measure_drift(NavierStokes3D(0.0, 0.0), Etdrk4()).drifts
    yield Row("nu = mu = 0 is the Euler equation: drift of energy", drifts["energy"], 0.0, DRIFT)
