"""Do all readings of an equation say the same? Checks that need no time integration."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciml.calculus import FiniteDifference, Pointwise, Spectral, Symbol
from sciml.domain import Grid
from sciml.equations.base import Equation, Evolution, FieldSet, add, field_names, remainder, stiff_part
from sciml.functions import evaluate_on
from sciml.problem import Problem, manufactured
from sciml.solvers.structure import is_uncoupled, read_structure
from sciml.solvers.trial import QUICK, box, smooth_fields
from sciml.types import Array

SPECTRAL_POINTS = {1: 48, 2: 48, 3: 24}
DIFFERENCE_POINTS = {1: (24, 36, 48, 72), 2: (16, 24, 32, 48), 3: (12, 14, 16, 20)}
HIGHEST_WAVE = {1: 2, 2: 2, 3: 1}  # of trial states: products of two are resolved by all of these differences


def text_of(equation: Equation) -> Callable[[dict[str, Any], Any], dict[str, Any]]:
    """Everything in the equation but the time derivative; with constraints, where the auxiliary fields are given."""
    if not isinstance(equation, Evolution):
        return lambda u, d: equation.residual(FieldSet(u), d)

    def text(u: dict[str, Any], d: Any) -> dict[str, Any]:
        fields = FieldSet(u)
        laplacians = equation.potentials(fields, d) if equation.auxiliary else {}
        constraints = {name: d.laplacian(u[name]) - right for name, right in laplacians.items()}
        return add(stiff_part(equation, fields, d), remainder(equation, fields, d)) | constraints

    return text


def trial_state(equation: Equation, dim: int) -> dict[str, Any]:
    """A random band-limited function of space per field."""
    return {name: f.at_start for name, f in smooth_fields(equation, dim, seed=11, highest=HIGHEST_WAVE[dim]).items()}


def spectral_difference(equation: Equation, dim: int) -> float:
    """Spectral against pointwise reading on a band-limited state, largest error relative to the largest value."""
    return _reading_error(equation, dim, SPECTRAL_POINTS[dim], None)


def difference_errors(equation: Equation, dim: int, order: int) -> tuple[np.ndarray, np.ndarray]:
    """(spacings, errors), shape (4,): finite differences of an order against the pointwise reading."""
    counts = DIFFERENCE_POINTS[dim]
    errors = [_reading_error(equation, dim, n, order) for n in counts]
    return 1.0 / np.asarray(counts), np.asarray(errors)


def _reading_error(equation: Equation, dim: int, n: int, order: int | None) -> float:
    grid = Grid(box(dim), (n,) * dim)
    state = trial_state(equation, dim)

    @partial(jax.jit, compiler_options=QUICK)
    def both(equation: Any) -> tuple[Array, Array]:
        text = text_of(equation)
        d = Spectral(grid, time=0.0) if order is None else FiniteDifference(grid, {}, order, time=0.0)
        points = jnp.asarray(grid.points)
        on_grid = text({name: d.field(evaluate_on(f, points)) for name, f in state.items()}, d)
        at_points = Pointwise(dim, has_time=True)
        exact = text({n: at_points.field(lambda z, f=f: f(z[:dim])) for n, f in state.items()}, at_points)
        z = jnp.concatenate([points, jnp.zeros((*grid.shape, 1))], axis=-1).reshape(-1, dim + 1)
        values = [jnp.broadcast_to(d.values(on_grid[name]), grid.shape) for name in on_grid]
        truth = [jax.vmap(at_points.values(exact[name]))(z).reshape(grid.shape) for name in on_grid]
        return jnp.stack(values), jnp.stack(truth)

    values, truth = (np.asarray(v) for v in both(equation))
    return float(np.abs(values - truth).max() / max(np.abs(truth).max(), 1e-300))


def manufactured_residual(equation: Equation, dim: int) -> float:
    """The pointwise residual at random points, at the exact solution of a manufactured problem: largest value."""
    is_evolution = isinstance(equation, Evolution)
    fields = smooth_fields(equation, dim, seed=17)
    exact = fields if is_evolution else {n: f.at_start for n, f in fields.items()}
    z = np.random.default_rng(3).uniform(0, 1, (32, dim + is_evolution))

    @partial(jax.jit, compiler_options=QUICK)
    def residual(equation: Any) -> Array:
        problem: Problem = manufactured(equation, box(dim), exact, horizon=1.0 if is_evolution else None)
        d = Pointwise(dim, is_evolution)
        terms = problem.residual({name: d.sample(f) for name, f in problem.exact.items()}, d)
        return jnp.stack([jax.vmap(d.values(term))(jnp.asarray(z)) for term in terms.values()])

    return float(jnp.abs(residual(equation)).max())


@dataclasses.dataclass(frozen=True)
class Linearity:
    """`superposition`: relative violation; `symbol`: relative difference between symbol and grid operator, or None
    where the stiff part couples fields and so has no symbol per field."""

    superposition: float
    symbol: float | None


def stiff_linearity(equation: Evolution, dim: int) -> Linearity:
    """Superposition of the stiff part on the grid, and its symbol against the grid operator for every Fourier mode."""
    grid = Grid(box(dim), (SPECTRAL_POINTS[dim] // 2,) * dim)
    names = field_names(equation)
    random = np.random.default_rng(7)
    a, b = (random.standard_normal((len(names), *grid.shape)) for _ in range(2))
    coupled = not is_uncoupled(read_structure(lambda u, d: stiff_part(equation, u, d), names, dim))

    @partial(jax.jit, compiler_options=QUICK)
    def parts(equation: Any) -> tuple[Array, ...]:
        d = Spectral(grid, time=0.0)

        def apply(values: Any) -> Array:
            terms = stiff_part(equation, {n: d.field(jnp.asarray(values[i])) for i, n in enumerate(names)}, d)
            return _stacked([d.values(term) for term in terms.values()], grid.shape)

        left, right = apply(1.5 * a - 0.7 * b), 1.5 * apply(a) - 0.7 * apply(b)  # weights that do not add to 1
        shape = jnp.shape(d.basis.laplacian)
        if coupled:
            return left, right, jnp.zeros(shape), jnp.zeros(shape)
        symbol = Symbol(grid)
        ones = jnp.ones(shape, complex)
        on_grid = stiff_part(equation, {n: d.from_coefficients(ones) for n in names}, d)
        factors = stiff_part(equation, {n: symbol.field(1.0) for n in names}, symbol)
        found = _stacked([term.coefficients for term in on_grid.values()], shape)
        told = _stacked([symbol.values(factors[n]) for n in on_grid], shape)
        return left, right, found, told

    left, right, found, told = (np.asarray(v) for v in parts(equation))
    return Linearity(_largest(left - right, left), None if coupled else _largest(found - told, told))


def _stacked(parts: list[Any], shape: tuple[int, ...]) -> Array:
    if not parts:
        return jnp.zeros((1, *shape))
    return jnp.stack([jnp.broadcast_to(part, shape) for part in parts])


def _largest(difference: np.ndarray, scale: np.ndarray) -> float:
    return float(np.abs(difference).max() / max(np.abs(scale).max(), 1e-300))
