"""Problems with one jump whose exact solutions are known, as problems on the unit interval up to t = 0.2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np

from sciml.boundary import neumann
from sciml.domain import Box, Grid
from sciml.equations.euler import Euler1D
from sciml.equations.shallow_water import ShallowWater1D
from sciml.problem import Problem, make_problem
from sciml.solvers.batch import solve_batch, stack
from sciml.solvers.finite_volume.exact_riemann import DamBreak, Gas, gas_profile
from sciml.solvers.finite_volume.method import FiniteVolume
from sciml.types import Array

GAMMA = 1.4
TIME = 0.2
UNIT = Box((0.0,), (1.0,), (False,))
SAMPLES = 16  # per cell, of the exact average


@jax.tree_util.register_dataclass
@final
@dataclass(frozen=True)
class Jump:
    """A function of the first coordinate with two values; all entries have shape ()."""

    below: Any
    above: Any
    place: Any

    def __call__(self, x: Array) -> Array:
        """The value at a point."""
        return jnp.where(x[0] < self.place, self.below, self.above)


class Case(NamedTuple):
    """A Riemann problem of an ideal gas with gamma = 1.4: states, and the time at which it is looked at.

    The unit of time is chosen such that this time is 0.2: velocities and pressures are those of the source, scaled.
    """

    left: Gas
    right: Gas
    time: float
    place: float = 0.5

    @property
    def scale(self) -> float:
        """The factor of velocities; pressures have its square."""
        return self.time / TIME

    @property
    def states(self) -> tuple[Gas, Gas]:
        """The scaled states."""
        scale = self.scale
        left, right = (Gas(s.density, s.velocity * scale, s.pressure * scale**2) for s in (self.left, self.right))
        return left, right


CASES: Mapping[str, Case] = {
    "sod": Case(Gas(1.0, 0.0, 1.0), Gas(0.125, 0.0, 0.1), 0.2),
    "lax": Case(Gas(0.445, 0.698, 3.528), Gas(0.5, 0.0, 0.571), 0.14),
    "123": Case(Gas(1.0, -2.0, 0.4), Gas(1.0, 2.0, 0.4), 0.15),
    "left blast": Case(Gas(1.0, 0.0, 1000.0), Gas(1.0, 0.0, 0.01), 0.012),
    "collision": Case(Gas(5.99924, 19.5975, 460.894), Gas(5.99242, -6.19633, 46.0950), 0.035, 0.4),
    "stationary contact": Case(Gas(1.4, 0.0, 1.0), Gas(1.0, 0.0, 1.0), 2.0),
}
"""G. A. Sod, J. Comput. Phys. 27 (1978) 1; P. D. Lax, CPAM 7 (1954) 159; others: Toro (2009), tables 4.1 and 10.1."""


def gas_problem(case: Case, box: Box = UNIT) -> Problem:
    """The problem of a case, with outflow at both ends; x is the first axis."""
    equation = Euler1D(GAMMA)
    left, right = case.states
    below, above = (
        {
            "density": s.density,
            "momentum_x": s.density * s.velocity,
            "energy": s.pressure / (GAMMA - 1) + 0.5 * s.density * s.velocity**2,
        }
        for s in (left, right)
    )
    initial = {
        name: Jump(jnp.asarray(below[name]), jnp.asarray(above[name]), jnp.asarray(case.place)) for name in below
    }
    return make_problem(equation, box, initial=initial, boundary={f: neumann() for f in box.faces}, horizon=TIME)


def gas_solutions(names: Sequence[str], cells: int, method: FiniteVolume) -> dict[str, np.ndarray]:
    """Case name to (density, velocity, pressure) at t = 0.2, shape (3, cells); raises what made one fail."""
    problems = stack([gas_problem(CASES[name]) for name in names])
    found = solve_batch(problems, Grid(UNIT, (cells,), cells=True), method, times=[TIME])
    for error in found.failures.values():
        raise error
    density, momentum, energy = (found.fields[name][:, 0] for name in ("density", "momentum_x", "energy"))
    velocity = momentum / density
    pressure = (GAMMA - 1) * (energy - 0.5 * momentum * velocity)
    return {name: np.stack([density[i], velocity[i], pressure[i]]) for i, name in enumerate(names)}


def gas_exact(name: str, cells: int) -> np.ndarray:
    """Exact averages over the cells, shape (3, cells)."""
    case = CASES[name]
    x = (np.arange(cells * SAMPLES) + 0.5) / (cells * SAMPLES)
    return gas_profile(*case.states, (x - case.place) / TIME, GAMMA).reshape(3, cells, SAMPLES).mean(axis=2)


def spread(exact: np.ndarray) -> float:
    """What a mean error may be at most where waves are smeared over four cells, from the exact averages, shape (n,).

    A jump J that becomes a line over four cells is off by J h in the integral, half of it at either side; so the bound
    is the total variation of the exact solution times h, over the length of the box.
    """
    return float(np.abs(np.diff(exact)).sum() / len(exact))


def dam_solution(dam: DamBreak, cells: int, method: FiniteVolume) -> np.ndarray:
    """(depth, discharge) at t = 0.2 of a dam that breaks in the middle of 2 m, shape (2, cells)."""
    box = Box((-1.0,), (1.0,), (False,))
    initial = {"depth": Jump(dam.left, dam.right, 0.0), "discharge_x": lambda x: 0.0 * x[0]}
    equation = ShallowWater1D(dam.gravity)
    problem = make_problem(equation, box, initial=initial, boundary={f: neumann() for f in box.faces}, horizon=TIME)
    found = solve_batch(stack([problem]), Grid(box, (cells,), cells=True), method, times=[TIME])
    for error in found.failures.values():
        raise error
    return np.stack([found.fields[name][0, 0] for name in ("depth", "discharge_x")])


def dam_exact(dam: DamBreak, cells: int) -> np.ndarray:
    """Exact averages of (depth, discharge), shape (2, cells)."""
    x = 2 * (np.arange(cells * SAMPLES) + 0.5) / (cells * SAMPLES) - 1
    depth, velocity = dam.profile(x / TIME)
    return np.stack([depth, depth * velocity]).reshape(2, cells, SAMPLES).mean(axis=2)
