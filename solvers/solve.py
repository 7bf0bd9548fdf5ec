"""The entry points: `solve` checks and explains, `integrate` is the plain differentiable core."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciml import registry
from sciml.domain import Grid
from sciml.equations.base import add, field_names, read, remainder, stiff_part
from sciml.equations.conservation import ConservationLaw
from sciml.errors import ConfigError
from sciml.functions import evaluate_on, takes_time
from sciml.geometry.mesh import Mesh
from sciml.problem import Problem
from sciml.solvers.admissible import check_coefficients, warn_of_a_coarse_grid, warn_of_a_misfit
from sciml.solvers.evolution import cuts_waves, discretize
from sciml.solvers.finite_element.elements import Elements
from sciml.solvers.finite_element.solve import integrate_on_mesh, solve_on_mesh
from sciml.solvers.march import Schedule, march_plainly, march_watched, schedule
from sciml.solvers.method import EllipticSolver, Method, Scheme, TimeStepper
from sciml.solvers.status import Code, Status, failure
from sciml.solvers.steady import solve_steady
from sciml.solvers.structure import Structure, derivatives, is_linear, read_structure
from sciml.types import Array


@dataclass(frozen=True)
class Solution:
    """What `solve` returns.

    `times`: shape (T,) in s, None for a steady problem; `fields`: name to values, shape (T, *grid.shape), or
    (*grid.shape) if steady, in the units of the equation, on a mesh at its nodes; `steps`: time steps actually taken
    per saved time, or iterations of the elliptic solver.
    """

    times: np.ndarray | None
    fields: Mapping[str, Array]
    steps: int


def solve(problem: Problem, grid: Grid | Elements, method: Method, *, times: Any = None) -> Solution:
    """The solution on `grid`, at exactly the `times` asked for (shape (T,), increasing, in s; may begin with 0).

    Every axis periodic: Fourier series; else finite differences of order `method.difference_order`; on a mesh finite
    elements, with `Elements` in place of the grid and `Galerkin` or `TrBdf2` as the method. A second call
    with other coefficients, or another `dt`, does not compile again. Raises `ConfigError` for a method or times that
    do not fit the problem, `NumericalError` for an unstable step that may not be divided (`unstable: refuse`), a
    solution that blows up (with its time), a singular or incompatible system, or iterations that do not converge.
    """
    saved = None if times is None else np.atleast_1d(np.asarray(times, float))
    if isinstance(problem.domain, Mesh) or isinstance(grid, Elements):
        on_nodes, steps = solve_on_mesh(problem, grid, method, times)
        return Solution(saved, on_nodes, steps)
    check(problem, grid, method, times)
    check_coefficients(problem, grid)
    if problem.is_evolution:
        warn_of_a_misfit(problem, grid)
    if isinstance(method, TimeStepper) and cuts_waves(problem):
        warn_of_a_coarse_grid(problem, grid)
    values, outcome = solve_watched(problem, grid, method, times)
    where = place_of(outcome, problem, grid, method)
    error = failure(outcome, method, f"the problem of {type(problem.equation).__name__}", where)
    if error is not None:
        raise error
    fields = {name: values[..., i, *(slice(None),) * grid.dim] for i, name in enumerate(problem.field_names)}
    return Solution(saved, fields, int(outcome.steps))


def integrate(problem: Problem, grid: Grid | Elements, method: Method, times: Any = None) -> dict[str, Array]:
    """The fields as in `Solution`, without any check: for use inside jit, vmap and grad (both modes).

    `times` must be concrete. The step is `method.dt` as it stands; a failure shows as values that are not finite.
    """
    if isinstance(grid, Elements):
        return integrate_on_mesh(problem, grid, method, times)
    if isinstance(method, Scheme):
        values = method.march_plainly(problem, grid, schedule(times, method.dt))
        return {name: values[:, i] for i, name in enumerate(problem.field_names)}
    problem = sampled(problem, grid)
    if isinstance(method, TimeStepper):
        values = march_plainly(discretize(problem, grid, method), method, schedule(times, method.dt))
    else:
        assert isinstance(method, EllipticSolver), method
        values = solve_steady(problem, grid, method)[0]
    return {name: values[..., i, *(slice(None),) * grid.dim] for i, name in enumerate(problem.field_names)}


def solve_watched(problem: Problem, grid: Grid, method: Method, times: Any) -> tuple[Array, Status]:
    """All fields in one array, shape (T, fields, *grid.shape) or (fields, *grid.shape), with the outcome as a value."""
    shape, steps = compiled_part(method, times)
    return _solve_compiled(problem, steps, grid=grid, method=shape, plan=plan_of(method, times))


def place_of(outcome: Status, problem: Problem, grid: Grid, method: Method) -> str:
    """Where in space a failure was seen first, "" if that is not known."""
    place = int(np.asarray(outcome.place))
    if place < 0:
        return ""
    if isinstance(method, Scheme):
        return method.explain(problem, grid, place)
    return f"with its largest value {grid.described(place)}"


def compiled_part(method: Method, times: Any) -> tuple[Method, int]:
    """The method without what need not be compiled in (its dt), and the number of steps per saved time."""
    if not isinstance(method, TimeStepper | Scheme):
        return method, 0
    return with_dt(method, 1.0), schedule(times, method.dt).steps


def with_dt(method: Any, dt: float) -> Any:
    """The same time stepper or scheme with another step."""
    return dataclasses.replace(method, dt=dt)


def plan_of(method: Method, times: Any) -> Schedule | None:
    """The saved times as a static value; None for a steady problem."""
    has_time = isinstance(method, TimeStepper | Scheme)
    return dataclasses.replace(schedule(times, method.dt), steps=1) if has_time else None


@partial(jax.jit, static_argnames=("grid", "method", "plan"))
def _solve_compiled(
    problem: Problem, steps: Any, *, grid: Grid, method: Method, plan: Schedule | None
) -> tuple[Array, Status]:
    return solve_traced(problem, steps, grid, method, plan)


def solve_traced(
    problem: Problem, steps: Any, grid: Grid, method: Method, plan: Schedule | None, checked: bool = True
) -> tuple[Array, Status]:
    """The body of `solve`, to be used inside jit: one program for all coefficients and numbers of steps."""
    if isinstance(method, Scheme):
        return method.march_watched(problem, grid, plan, steps)
    problem = sampled(problem, grid)
    if isinstance(method, TimeStepper):
        assert plan is not None
        return march_watched(discretize(problem, grid, method), method, plan, steps, checked)
    assert isinstance(method, EllipticSolver), method
    values, outcome = solve_steady(problem, grid, method)
    return jnp.where(outcome.code == Code.OK, values, jnp.nan), outcome


def sampled(problem: Problem, grid: Grid) -> Problem:
    """The problem with sources and coefficients that do not depend on time evaluated on the grid, once."""

    def sample(value: Any) -> Any:
        is_steady = callable(value) and not takes_time(value)
        return evaluate_on(value, jnp.asarray(grid.points)) if is_steady else value

    equation = problem.equation
    coefficients = {f.name: sample(getattr(equation, f.name)) for f in dataclasses.fields(equation)}
    return dataclasses.replace(
        problem,
        equation=dataclasses.replace(equation, **coefficients),
        source={name: sample(source) for name, source in problem.source.items()},
    )


def check(problem: Problem, grid: Grid, method: Method, times: Any) -> None:
    """Raises `ConfigError` when problem, grid, method and times do not belong together."""
    if isinstance(problem.domain, Mesh) or isinstance(grid, Elements):
        raise ConfigError(
            "this does not work with meshes",
            expected="a Box and a Grid",
            got=f"{problem.domain!r} and {type(grid).__name__}",
            fix="solve(problem, Elements(mesh), method), and for many problems jax.vmap over integrate",
        )
    wanted, kind = ((TimeStepper, Scheme), "evolution") if problem.is_evolution else ((EllipticSolver,), "steady")
    if not isinstance(method, wanted):
        fitting = [name for name in registry.names("method") if issubclass(registry.load("method", name), wanted)]
        raise ConfigError(
            f"{type(problem.equation).__name__} is an equation of kind {kind}, which this method does not solve",
            expected=f"one of {', '.join(fitting)}",
            got=type(method).__name__,
        )
    if grid.box != problem.domain:
        raise ConfigError("the grid covers another box than the problem", expected=problem.domain, got=grid.box)
    if problem.is_evolution and times is None:
        raise ConfigError("an evolution needs the times to save", fix="solve(problem, grid, method, times=[0.5, 1.0])")
    if not problem.is_evolution and times is not None:
        raise ConfigError("a steady problem has no times", got=times, fix="solve(problem, grid, method)")
    if isinstance(method, TimeStepper) and forms_shocks(problem.equation, grid.dim):
        raise ConfigError(
            f"solutions of {type(problem.equation).__name__} have shocks, which this method cannot follow",
            expected="a method that captures shocks: finite_volume",
            got=type(method).__name__.lower(),
            reason="series and central differences oscillate at jumps and move them at a wrong speed; "
            "there is no diffusion that would keep the solution smooth",
            fix="method: {kind: finite_volume}",
        )
    if isinstance(method, Scheme):
        method.check(problem, grid)
    elif grid.cells and grid.box.faces:
        raise ConfigError(
            "this method works with values at points, of which some lie on the faces of the box",
            expected="Grid(box, shape)",
            got="Grid(box, shape, cells=True), whose points are the centers of cells",
        )


def forms_shocks(equation: Any, dim: int) -> bool:
    """Whether an equation is a conservation law with a nonlinear flux and no diffusion; its values may be abstract."""
    if not isinstance(equation, ConservationLaw):
        return False
    found: list[Structure] = []

    def read_all(law: Any) -> int:
        names = field_names(law)
        found.append(read_structure(lambda u, d: add(stiff_part(law, u, d), read(law.nonstiff, u, d)), names, dim))
        found.append(read_structure(lambda u, d: remainder(law, u, d), names, dim))
        return 0

    jax.eval_shape(read_all, equation)
    others, transport = found
    return not derivatives(others) & {"second", "compact", "even"} and not is_linear(transport)
