"""Observed orders of accuracy on manufactured solutions: of the methods in time, of the differences in space."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np

from sciml.calculus.series import GridSeries, chebyshev_times
from sciml.domain import Grid
from sciml.equations.base import Equation, Evolution, field_names, read
from sciml.errors import NumericalError
from sciml.functions import Coefficient, evaluate_on
from sciml.problem import manufactured
from sciml.solvers.evolution import discretize
from sciml.solvers.march import Schedule
from sciml.solvers.method import EllipticSolver, TimeStepper
from sciml.solvers.rk4 import Rk4
from sciml.solvers.solve import sampled, solve_traced, with_dt
from sciml.solvers.status import failure
from sciml.solvers.structure import is_constant, read_structure
from sciml.solvers.trial import QUICK, box, smooth_fields
from sciml.types import Array

LEVELS = 5  # of step sizes, so four differences between neighbors
POINTS = {1: 12, 2: 12, 3: 6}  # few, so that explicit methods take large steps: their order shows above rounding
HORIZON = 1.0
TURN_PER_STEP = 0.5  # radians that the exact solution turns in the coarsest step
UNLIMITED_TURN = 0.6  # of the fastest mode per step, for a method without a limit on the imaginary axis
INTERVALS = {1: (64, 96, 128, 192), 2: (16, 20, 26, 34), 3: (8, 10, 12, 16)}
NODES = 64  # of a series in time that are computed at once
LARGEST_POWER = 4  # products of this many fields turn as often as they do together
BOUNDED_WAVES = 4  # per 2 pi, on the unit box: rough enough for errors above rounding on all of these grids


@dataclass(frozen=True)
class ObservedOrder:
    """One row of an order certificate: `sizes` are steps or spacings, `errors` relative, both shape (levels,)."""

    method: str
    declared: int
    sizes: np.ndarray
    errors: np.ndarray
    deviation: float

    @property
    def order(self) -> float:
        """Slope of log(error) over log(size), by least squares."""
        return float(np.polyfit(np.log(self.sizes), np.log(self.errors), 1)[0])

    def holds(self, tolerance: float = 0.2) -> bool:
        """Whether the observed order is at least the declared one, to `tolerance`."""
        return self.order >= self.declared - tolerance


def order_in_time(equation: Evolution, method: TimeStepper, rates: Rates) -> ObservedOrder:
    """The order of a time stepper on a periodic box, from the differences of neighboring step sizes.

    Differences, because the error of the grid cancels in them. `deviation` is the finest solution against the
    manufactured one, relative L2: it also contains the error of the (coarse) grid.
    """
    limit = min(method.real_limit, method.imaginary_limit or UNLIMITED_TURN)
    fastest = rates.explicit if method.treats_linear_part else rates.whole
    first = max(4, int(np.ceil(fastest * HORIZON / (0.5 * limit))))
    steps = first * 2 ** np.arange(LEVELS)
    dim = min(equation.dims)
    grid = Grid(box(dim), (POINTS[dim],) * dim)
    plan = Schedule((HORIZON,), 1, True)
    shape = with_dt(method, 1.0)
    exact = trial_fields(equation, dim, speed=TURN_PER_STEP * first / HORIZON)
    sources = source_series(equation, exact, grid, HORIZON)

    def run(equation: Any, exact: Any, sources: Any, count: Any) -> tuple[Array, Any, Array]:
        problem = dataclasses.replace(manufactured(equation, grid.box, exact, horizon=HORIZON), source=sources)
        values, outcome = solve_traced(problem, count, grid, shape, plan, checked=False)
        truth = problem.exact_values(grid, HORIZON)
        return values[0], outcome, jnp.stack([truth[name] for name in problem.field_names])

    compiled = jax.jit(run, compiler_options=QUICK)
    results = [compiled(equation, exact, sources, int(count)) for count in steps]
    for _, outcome, _ in results:
        _raise_failure(outcome, method, equation)
    values, truth = [np.asarray(v) for v, _, _ in results], np.asarray(results[-1][2])
    size = float(np.linalg.norm(truth))
    errors = [float(np.linalg.norm(a - b)) / size for a, b in zip(values, values[1:], strict=False)]
    deviation = float(np.linalg.norm(values[-1] - truth)) / size
    name = type(method).__name__.lower()
    return ObservedOrder(name, method.order, HORIZON / steps[:-1], np.asarray(errors), deviation)


def source_series(equation: Evolution, exact: dict[str, Any], grid: Grid, horizon: float) -> dict[str, GridSeries]:
    """The sources that make `exact` the solution, on the grid, so that programs with them are quick to compile."""
    turns = max(float(jnp.max(jnp.abs(f.speeds))) for f in exact.values()) * horizon
    chunks = int(np.ceil((40 + LARGEST_POWER * turns / 2) / NODES))
    times = chebyshev_times(horizon, chunks * NODES).reshape(chunks, NODES)
    frames = [_source_frames(equation, exact, jnp.asarray(part), grid=grid) for part in times]
    return {name: GridSeries(jnp.concatenate([f[name] for f in frames]), horizon) for name in frames[0]}


@partial(jax.jit, static_argnames=("grid",), compiler_options=QUICK)
def _source_frames(equation: Any, exact: Any, times: Array, *, grid: Grid) -> dict[str, Array]:
    problem = manufactured(equation, grid.box, exact, horizon=1.0)
    points = jnp.asarray(grid.points)
    return {name: jax.vmap(lambda t, f=f: evaluate_on(f, points, t))(times) for name, f in problem.source.items()}


def order_in_space(equation: Equation, method: EllipticSolver, name: str) -> ObservedOrder:
    """The order of the differences in a steady problem on the unit box with Dirichlet conditions."""
    dim = min(equation.dims)
    exact = {n: f.at_start for n, f in trial_fields(equation, dim, speed=0.0, highest=BOUNDED_WAVES).items()}
    domain = box(dim, periodic=False)
    sizes, errors = [], []
    for intervals in INTERVALS[dim]:
        grid = Grid(domain, (intervals + 1,) * dim)

        def run(equation: Any, grid: Grid = grid) -> tuple[Array, Any, Array]:
            problem = manufactured(equation, domain, exact)
            values, outcome = solve_traced(problem, 0, grid, method, None)
            truth = problem.exact_values(grid)
            return values, outcome, jnp.stack([truth[n] for n in problem.field_names])

        values, outcome, truth = jax.jit(run, compiler_options=QUICK)(equation)
        _raise_failure(outcome, method, equation)
        sizes.append(1.0 / intervals)
        errors.append(float(jnp.linalg.norm(values - truth) / jnp.linalg.norm(truth)))
    return ObservedOrder(name, method.difference_order, np.asarray(sizes), np.asarray(errors), errors[-1])


@jax.tree_util.register_dataclass
@final
@dataclass(frozen=True)
class Waving:
    """A smooth coefficient of space: `mean` (shape ()) and 30 % of it up and down, in 2 and 3 waves per 2 pi."""

    mean: Array

    def __call__(self, x: Array) -> Array:
        """The value at a point."""
        return self.mean * (1 + 0.3 * jnp.sin(jnp.dot(jnp.arange(2.0, 2.0 + x.shape[0]), x) + 0.4))


def varied(equation: Any) -> Equation | None:
    """The equation with `Waving` coefficients in place of numbers, None where its operator stays the same."""
    declared = [f.name for f in dataclasses.fields(equation) if f.type in ("Coefficient", Coefficient)]
    numbers = {name: getattr(equation, name) for name in declared if np.ndim(getattr(equation, name)) == 0}
    changed = {n: Waving(jnp.asarray(float(v))) for n, v in numbers.items() if not callable(v) and v != 0}
    found: Any = dataclasses.replace(equation, **changed)
    structure = read_structure(lambda u, d: read(found.residual, u, d), field_names(equation), min(equation.dims))
    return None if is_constant(structure) else found


@dataclass(frozen=True)
class Rates:
    """Largest moduli of the eigenvalues of an evolution at a trial state: of its explicit part and of all of it."""

    explicit: float
    whole: float


def fastest_rates(equation: Evolution) -> Rates:
    """Rates on the grid that `order_in_time` uses."""
    dim = min(equation.dims)
    grid = Grid(box(dim), (POINTS[dim],) * dim)

    @partial(jax.jit, compiler_options=QUICK)
    def jacobians(equation: Any, exact: Any) -> tuple[Array, Array]:
        unforced = dataclasses.replace(manufactured(equation, grid.box, exact, horizon=HORIZON), source={})
        problem = sampled(unforced, grid)
        system = discretize(problem, grid, Rk4())
        space = system.space

        def matrix(rate: Any) -> Array:
            values = space.decode(system.initial, 0.0)
            return jax.jacfwd(lambda v: space.decode(rate(space.encode(v), 0.0), 0.0))(values)

        rest = matrix(lambda y, t: space.read(problem.remainder, y, t))
        return rest, matrix(system.rate)

    rest, whole = jacobians(equation, trial_fields(equation, dim, speed=1.0))
    n = int(np.sqrt(rest.size))
    radius = [float(np.abs(np.linalg.eigvals(np.asarray(m).reshape(n, n))).max()) for m in (rest, whole)]
    return Rates(*radius)


def trial_fields(equation: Equation, dim: int, *, speed: float, highest: int = 1) -> dict[str, Any]:
    """One smooth field per unknown, different from each other; with wave number 1 alone, cubes stay resolved."""
    return smooth_fields(equation, dim, seed=5, highest=highest, speed=speed)


def _raise_failure(outcome: Any, method: Any, equation: Any) -> None:
    error = failure(outcome, method, f"the manufactured problem of {type(equation).__name__}")
    if isinstance(error, NumericalError):
        raise error
