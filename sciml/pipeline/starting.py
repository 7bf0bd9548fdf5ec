"""What a numerical method starts from: what a surrogate must be given to learn the right map."""

from __future__ import annotations

import jax.numpy as jnp

from sciml.domain import Grid
from sciml.errors import ConfigError
from sciml.problem import Problem
from sciml.solvers.evolution import discretize
from sciml.solvers.finite_volume.cells import cell_averages
from sciml.solvers.method import Method, Scheme, TimeStepper
from sciml.solvers.solve import sampled
from sciml.types import Array


def starting_fields(problem: Problem, grid: Grid, method: Method) -> dict[str, Array]:
    """The fields at time zero as `solve` would save them, name -> (*grid.shape), in the units of the equation.

    Averages over the cells for finite volumes; else values at the points, with the constraints of the equation
    fulfilled, the waves that the method does not carry left out, and the conditions on the faces. Traceable. Raises
    ConfigError for a method of steady problems.
    """
    names = problem.field_names
    if isinstance(method, Scheme):
        return {name: cell_averages(problem.initial[name], grid, 0.0) for name in names}
    if not isinstance(method, TimeStepper):
        raise ConfigError("a steady problem has no start", got=type(method).__name__, expected="a time stepper")
    system = discretize(sampled(problem, grid), grid, method)
    values = system.space.decode(system.initial, jnp.asarray(0.0))
    return dict(zip(names, values, strict=True))


def known_source(problem: Problem, name: str, grid: Grid, method: Method) -> Array | None:
    """The source of a field as averages over the cells where the method works with them, else None."""
    return cell_averages(problem.source[name], grid, 0.0) if isinstance(method, Scheme) else None
