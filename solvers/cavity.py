"""The lid-driven cavity: steady flow between walls, from the vorticity text with a wall vorticity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciml.boundary import dirichlet
from sciml.calculus import FiniteDifference
from sciml.calculus.finite_difference import GridField
from sciml.domain import Box, Grid
from sciml.equations.base import FieldSet, add, remainder, stiff_part
from sciml.equations.navier_stokes_vorticity import NavierStokesVorticity
from sciml.errors import ConfigError, NumericalError
from sciml.solvers.modes import DifferenceModes, conditions_of
from sciml.types import Array

LONGEST = 200.0  # in lid lengths over lid speed
STEADY = 1e-7  # largest rate of the vorticity, relative to its largest value, that counts as steady
PER_CHECK = 200  # steps between two looks at the rate


@dataclass(frozen=True, eq=False)
class Cavity:
    """Steady flow in the unit square below a lid that moves to the right with speed 1, at a Reynolds number.

    `stream`, `vorticity`, `velocity` (two components): shapes (n, n), on `grid`; the velocity is (psi_y, -psi_x), the
    vorticity v_x - u_y, so the main vortex turns clockwise and has negative psi. `time`: at which it was steady.
    """

    grid: Grid
    stream: np.ndarray
    vorticity: np.ndarray
    velocity: tuple[np.ndarray, np.ndarray]
    time: float


def lid_driven_cavity(reynolds: float, n: int) -> Cavity:
    """The flow on n x n points, order 2, marched from rest until it is steady.

    `NavierStokesVorticity` is read by finite differences inside; the stream function follows from the vorticity by
    fast transforms with psi = 0 on the walls, and the vorticity on the walls from the stream function, so that they
    move as they should. A. Thom, Proc. R. Soc. A 141 (1933) 651; U. Ghia, K. N. Ghia, C. T. Shin, J. Comput. Phys. 48
    (1982) 387. SSP-RK3, step limited by diffusion and by the lid. Raises `ConfigError` for fewer than 9 points or a
    Reynolds number that is not positive, `NumericalError` when the flow does not become steady (above about 8000).
    """
    if n < 9 or reynolds <= 0:
        raise ConfigError("a cavity needs 9 points per axis and a positive Reynolds number", got=f"{n}, {reynolds}")
    flow = _Walls(n)
    dt = min(0.18 * reynolds * flow.step**2, 0.5 * flow.step)
    checks = int(np.ceil(LONGEST / (dt * PER_CHECK)))
    omega, count, rate = _march(flow, jnp.asarray(1.0 / reynolds), jnp.asarray(dt), checks)
    if not rate <= STEADY:
        raise NumericalError(
            f"the flow in the cavity at Reynolds number {reynolds:g} did not become steady",
            expected=f"a relative rate of the vorticity below {STEADY:g} before time {LONGEST:g}",
            got=f"{float(rate):.3g}",
            reason="too few points for the boundary layers, or a flow that oscillates (above about 8000)",
            fix=f"lid_driven_cavity({reynolds:g}, {2 * n - 1})",
        )
    vorticity, stream = flow.complete(omega)
    velocity = tuple(np.asarray(part) for part in flow.velocity(stream))
    time = float(count) * PER_CHECK * dt
    return Cavity(flow.grid, np.asarray(stream), np.asarray(vorticity), (velocity[0], velocity[1]), time)


class _Walls:
    """The unit square with three walls at rest and one that moves: from interior vorticity to all fields."""

    def __init__(self, n: int) -> None:
        box = Box((0.0, 0.0), (1.0, 1.0), (False, False))
        self.grid, self.step = Grid(box, (n, n)), 1.0 / (n - 1)
        boundary = {face: dirichlet(0.0) for face in box.faces}
        self.modes = DifferenceModes(self.grid, conditions_of(boundary), 2, "second")
        self.reading = FiniteDifference(self.grid, boundary, 2)
        still = jnp.zeros(n)
        self.slopes = {"x-": still, "x+": still, "y-": still, "y+": still + 1.0}  # d psi/dn; psi_y is the lid's speed

    def complete(self, omega: Array) -> tuple[Array, Array]:
        """Vorticity and stream function with the walls, shapes (n, n); the lid meets the corners at rest."""
        psi = jnp.pad(self.modes.backward(self.modes.forward(-omega) / self.modes.eigenvalues), 1)
        factor = -2.0 / self.step**2
        full = jnp.pad(omega, 1)
        full = full.at[:, -1].set(factor * (psi[:, -2] + self.step)).at[:, 0].set(factor * psi[:, 1])
        return full.at[0, :].set(factor * psi[1, :]).at[-1, :].set(factor * psi[-2, :]), psi

    def stream_field(self, psi: Array) -> GridField:
        """The stream function as a field whose slopes at the walls are known."""
        return GridField(self.reading.stencils, psi, slopes=self.slopes)

    def velocity(self, psi: Array) -> tuple[Array, Array]:
        """(psi_y, -psi_x)."""
        d, field = self.reading, self.stream_field(psi)
        return d.partial(field, 1).raw, -d.partial(field, 0).raw

    def rate(self, omega: Array, viscosity: Array) -> Array:
        """The rate of the interior vorticity, from the text of the equation."""
        full, psi = self.complete(omega)
        make: Any = NavierStokesVorticity
        fields = FieldSet({"omega": self.reading.field(full), "psi": self.stream_field(psi)})
        terms = add(stiff_part(make(viscosity), fields, self.reading), remainder(make(viscosity), fields, self.reading))
        return self.reading.values(terms["omega"])[1:-1, 1:-1]


def _march(flow: _Walls, viscosity: Array, dt: Array, checks: int) -> tuple[Array, Array, Array]:
    """Steady interior vorticity, the number of checks, and the relative rate reached."""

    def step(_: Any, w: Array) -> Array:
        first = w + dt * flow.rate(w, viscosity)
        second = 0.75 * w + 0.25 * (first + dt * flow.rate(first, viscosity))
        return w / 3 + 2 / 3 * (second + dt * flow.rate(second, viscosity))

    def go_on(state: tuple[Array, Array, Array]) -> Array:
        return (state[1] < checks) & (state[2] > STEADY)

    def advance(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        w = jax.lax.fori_loop(0, PER_CHECK, step, state[0])
        return w, state[1] + 1, jnp.max(jnp.abs(flow.rate(w, viscosity))) / jnp.max(jnp.abs(w))

    start = (jnp.zeros((flow.grid.shape[0] - 2,) * 2), jnp.asarray(0), jnp.asarray(jnp.inf))
    return jax.jit(lambda: jax.lax.while_loop(go_on, advance, start))()
