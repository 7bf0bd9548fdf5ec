"""Riemann problems, dam breaks and shock speeds, computed by finite volumes: parts of certificates."""

from __future__ import annotations

from collections.abc import Iterator

import jax.numpy as jnp
import numpy as np

from sciml.boundary import neumann
from sciml.domain import Box, Grid
from sciml.equations.burgers import Burgers
from sciml.equations.inviscid_burgers import InviscidBurgers
from sciml.problem import make_problem
from sciml.solvers.finite_volume.exact_riemann import DamBreak, gas_star
from sciml.solvers.finite_volume.method import FiniteVolume
from sciml.solvers.finite_volume.riemann_problems import (
    CASES,
    TIME,
    UNIT,
    Jump,
    dam_exact,
    dam_solution,
    gas_exact,
    gas_solutions,
    spread,
)
from sciml.solvers.published import Row, limit, published
from sciml.solvers.solve import solve

CELLS = 100
TORO = {
    "sod": (0.30313, 0.92745, 0.42632, 0.26557),
    "123": (0.00189, 0.0, 0.02185, 0.02185),
    "left blast": (460.894, 19.5975, 0.57506, 5.99924),
}
"""Pressure, velocity and densities of the star region: Toro (2009), table 4.3."""
TUBES = ("sod", "lax", "123", "left blast", "collision")
PLATEAU = 0.01  # of the jump beside it: how far the state between two waves may be off


@published("euler_1d")
def star_regions() -> Iterator[Row]:
    """The exact solver against the printed digits."""
    for name, values in TORO.items():
        star = gas_star(CASES[name].left, CASES[name].right)
        for what, found, expected in zip(("p*", "u*", "left rho*", "right rho*"), star, values, strict=True):
            printed = 0.5 * 10.0 ** (np.floor(np.log10(max(abs(expected), 0.1))) - 4)
            yield Row(f"{what} of {name}, exact solver (Toro 2009, table 4.3)", float(found), expected, 1.01 * printed)


@published("euler_1d")
def shock_tubes() -> Iterator[Row]:
    """Six Riemann problems on 100 cells: no wave is wider than four cells, and a contact at rest is sharp."""
    found = gas_solutions([*TUBES, "stationary contact"], CELLS, FiniteVolume())
    for name, values in found.items():
        exact = gas_exact(name, CELLS)[0]
        most = spread(exact) if name in TUBES else 1e-12
        error = float(np.abs(values[0] - exact).mean())
        yield Row(f"mean error of the density, {name}, {CELLS} cells", error, 0.0, most)
    contact = 0.5 + TORO["sod"][1] * TIME
    behind = int((contact - 0.06) * CELLS), int((contact + 0.09) * CELLS)
    density, velocity, pressure = found["sod"]
    star, (_, right) = TORO["sod"], CASES["sod"].states
    yield Row("p* of sod, computed", float(pressure[behind[0]]), star[0], PLATEAU * (star[0] - right.pressure))
    yield Row("u* of sod, computed", float(velocity[behind[0]]), star[1], PLATEAU * star[1])
    for side, place, expected in zip(("left", "right"), behind, star[2:], strict=True):
        yield Row(f"{side} rho* of sod, computed", float(density[place]), expected, PLATEAU * (star[2] - star[3]))


@published("shallow_water_1d")
def dam_break() -> Iterator[Row]:
    """Stoker's dam break: 1 m against 0.1 m of water."""
    dam = DamBreak(1.0, 0.1)
    depth, discharge = dam_solution(dam, CELLS, FiniteVolume())
    exact = dam_exact(dam, CELLS)[0]
    middle, speed = dam.star
    tail = speed - (dam.gravity * middle) ** 0.5
    place = int((0.5 + 0.25 * (dam.front + tail) * TIME) * CELLS)
    yield Row("depth behind the bore (Stoker 1957, sec. 10.8)", float(depth[place]), middle, PLATEAU * (middle - 0.1))
    yield Row("velocity behind the bore", float(discharge[place] / depth[place]), speed, PLATEAU * speed)
    yield Row("mean error of the depth", float(np.abs(depth - exact).mean()), 0.0, spread(exact))
    rounding = 3e3 * np.finfo(float).eps  # a few times per stage of some hundred steps
    yield Row("change of the mass", float(depth.mean() - 0.55), 0.0, rounding)


@published("inviscid_burgers")
def shock_speed() -> Iterator[Row]:
    """A shock between 1 and 0 moves at 1/2 (Rankine-Hugoniot)."""
    faces = {face: neumann() for face in UNIT.faces}
    problem = make_problem(InviscidBurgers(1.0), UNIT, initial={"u": Jump(1.0, 0.0, 0.25)}, boundary=faces, horizon=1.0)
    grid = Grid(UNIT, (64,), cells=True)
    found = solve(problem, grid, FiniteVolume(), times=[0.2, 1.0])
    where = [float(np.interp(-0.5, -np.asarray(u), grid.axes[0])) for u in found.fields["u"]]
    fifth = 0.2 * grid.spacing[0] / 0.8  # each place is known to a tenth of a cell
    yield Row("speed of a shock between 1 and 0", (where[1] - where[0]) / 0.8, 0.5, fifth)
    behind = np.asarray(found.fields["u"]).mean(axis=1)
    yield Row("the same by conservation: growth of the mean", float(behind[1] - behind[0]) / 0.8, 0.5, 1e-13)


@limit("inviscid_burgers")
def without_viscosity() -> Iterator[Row]:
    """Viscous Burgers with nu = 0 is the same problem; with nu = 0.001 it is near."""
    box = Box((0.0,), (1.0,), (True,))
    grid = Grid(box, (64,))

    def end(equation: InviscidBurgers | Burgers) -> np.ndarray:
        problem = make_problem(equation, box, initial={"u": lambda x: jnp.sin(2 * jnp.pi * x[0])}, horizon=0.3)
        return np.asarray(solve(problem, grid, FiniteVolume(), times=[0.3]).fields["u"][0])

    inviscid = end(InviscidBurgers(1.0))
    apart = [float(np.abs(end(Burgers(nu)) - inviscid).mean()) for nu in (0.0, 1e-3)]
    yield Row("mean difference to burgers with nu = 0", apart[0], 0.0, 1e-13)
    yield Row("mean difference to burgers with nu = 0.001", apart[1], 0.0, 1e-2)
