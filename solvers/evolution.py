"""An evolution made discrete, and marched from one saved time to the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from sciml.boundary import all_conditions
from sciml.domain import Grid
from sciml.equations.base import Evolution, remainder, stiff_part
from sciml.errors import ConfigError
from sciml.functions import takes_time
from sciml.problem import Problem
from sciml.solvers.blocks import Blocks
from sciml.solvers.field_modes import kinds_of, modes_for
from sciml.solvers.linear import Dense, Diagonal
from sciml.solvers.method import Rate, TimeStepper
from sciml.solvers.spaces import FourierSpace, GridSpace, Space
from sciml.solvers.structure import (
    Structure,
    affine_fields,
    derivatives,
    is_constant,
    is_uncoupled,
    read_structure,
    separable_kind,
)
from sciml.types import Array

MOST_DENSE_UNKNOWNS = 1024

Linear = Diagonal | Blocks | Dense
"""The stiff part made discrete: a factor per mode, a matrix of the fields per mode, or dense matrices."""


@dataclass(frozen=True, eq=False)
class Discretized:
    """y' = L y + rate(y, t); `linear` is None for a method that treats everything explicitly.

    `has_rate` is false for a linear equation without source on a periodic box, whose rate is zero.
    """

    space: Space
    linear: Linear | None
    rate: Rate
    initial: Array
    has_rate: bool


def discretize(problem: Problem, grid: Any, method: TimeStepper, bounded: Space | None = None) -> Discretized:
    """The evolution on `grid`; raises `ConfigError` for a stiff part that the method cannot treat.

    `bounded` is where an explicit method has its unknowns on a box with faces, if not on all of `grid`.
    """
    equation: Evolution = problem.equation
    names, periodic = problem.field_names, all(grid.box.periodic)
    stiff = read_structure(lambda u, d: stiff_part(equation, u, d), names, grid.dim)
    rest = read_structure(lambda u, d: remainder(equation, u, d), names, grid.dim)
    initial = problem.initial_values(grid)
    values = jnp.stack([initial[name] for name in names])
    if periodic:
        space: Space = FourierSpace(grid, names, cuts_waves(problem))
    else:
        space = bounded or _bounded_space(problem, grid, method, stiff)
    if method.treats_linear_part:
        _check_stiff(equation, stiff)
        linear, constant = _linear_part(problem, space, stiff)
        has_rate = bool(rest or problem.source) or not periodic
        rate = _explicit_rate(problem, space, constant)
    else:
        linear, has_rate, rate = None, True, _whole_rate(problem, space)
    return Discretized(space, linear, rate, space.encode(values), has_rate)


def cuts_waves(problem: Problem) -> bool:
    """Whether products make Fourier series drop what lies beyond 2/3 of their wave numbers."""
    texts = read_structure(lambda u, d: remainder(problem.equation, u, d), problem.field_names, problem.domain.dim)
    return not is_constant(texts)


def _bounded_space(problem: Problem, grid: Grid, method: TimeStepper, stiff: Structure) -> GridSpace:
    kind, order, names, boundary = separable_kind(stiff), method.difference_order, problem.field_names, problem.boundary
    one_basis = is_uncoupled(stiff) or len(set(kinds_of(boundary, names))) == 1
    use_modes = method.treats_linear_part and is_constant(stiff) and one_basis
    modes = modes_for(grid, boundary, names, order, kind) if use_modes and kind else None
    return GridSpace(grid, names, boundary, order, modes)


def _check_stiff(equation: Evolution, stiff: Structure) -> None:
    name = type(equation).__name__
    if not is_constant(stiff):
        raise ConfigError(
            f"the stiff part of {name} has to be linear with constant coefficients",
            reason="exponential and IMEX methods treat it exactly or implicitly, mode by mode",
            fix="move the term to `nonstiff` or `flux`, or use method: {kind: rk4}",
        )
    affine = affine_fields(stiff)
    if affine:
        raise ConfigError(
            f"the stiff part of {name} contains a term without unknowns",
            expected="a stiff term that vanishes when all fields are zero",
            got=f"a constant or a function of space and time in the term of {', '.join(affine)}",
            reason="exponential and IMEX methods multiply each mode by a factor, which loses what is added to it",
            fix="move the constant to `nonstiff`, or use method: {kind: rk4}",
        )


def _stiff_text(problem: Problem) -> Callable[[dict[str, Any], Any], Any]:
    return lambda u, d: stiff_part(problem.equation, u, d)


def _linear_part(problem: Problem, space: Space, stiff: Structure) -> tuple[Linear, Callable[[Any], Any]]:
    """L, and what the conditions on the faces add to it: t -> state."""
    text = _stiff_text(problem)
    unit = space.encode(jnp.zeros((len(space.names), *space.grid.shape)))
    coupled = not is_uncoupled(stiff)
    if isinstance(space, FourierSpace):
        is_real = not derivatives(stiff) & {"first", "odd"}
        symbol = _symbol(lambda y: space.read(text, y, 0.0), unit, coupled)
        symbol = symbol.real if is_real else symbol
        return Blocks(symbol) if coupled else Diagonal(symbol), lambda t: 0.0
    assert isinstance(space, GridSpace), space
    offset = _offset(problem, space, unit)

    def apply(y: Array) -> Array:
        return jax.jvp(lambda v: space.read(text, v, 0.0), (unit,), (y,))[1]

    if space.is_modal:
        symbol = _symbol(apply, unit, coupled)
        return Blocks(symbol) if coupled else Diagonal(symbol), offset
    return Dense(_matrices(apply, unit, coupled)), offset


def _symbol(apply: Callable[[Array], Array], unit: Array, coupled: bool) -> Array:
    """The factor of each field and mode, or the matrix of each mode: column j is what field j alone gives."""
    if not coupled:
        return apply(jnp.ones_like(unit))
    return jnp.stack([apply(unit.at[j].set(1.0)) for j in range(unit.shape[0])], axis=1)


def _offset(problem: Problem, space: GridSpace, zero: Array) -> Callable[[Any], Array]:
    text = _stiff_text(problem)
    moving = any(callable(c.value) and takes_time(c.value) for c in all_conditions(problem.boundary))
    if moving:
        return lambda t: space.read(text, zero, t)
    constant = space.read(text, zero, 0.0)
    return lambda t: constant


def _matrices(apply: Callable[[Array], Array], zero: Array, coupled: bool) -> Array:
    """The matrix of each field, shape (fields, n, n), or that of all together, shape (1, fields n, fields n)."""
    groups = 1 if coupled else zero.shape[0]
    n = zero.size // groups
    if n > MOST_DENSE_UNKNOWNS:
        raise ConfigError(
            "this stiff part has no fast diagonalization on a bounded box",
            expected=f"at most {MOST_DENSE_UNKNOWNS} unknowns per system of equations for the dense treatment",
            got=f"{n} unknowns",
            reason="it contains derivatives other than d.laplacian or d.divergence(d.gradient(u))",
            fix="method: {kind: rk4}, a smaller grid, or move the term to `nonstiff` or `flux`",
        )
    basis = jnp.broadcast_to(jnp.eye(n)[:, None], (n, groups, n)).reshape(n, *zero.shape)
    return jnp.moveaxis(jax.vmap(apply)(basis).reshape(n, groups, n), 0, 2)


def _explicit_rate(problem: Problem, space: Space, constant: Callable[[Any], Any]) -> Rate:
    return lambda y, t: space.read(problem.remainder, y, t) + constant(t)


def _whole_rate(problem: Problem, space: Space) -> Rate:
    text = _stiff_text(problem)
    return lambda y, t: space.read(text, y, t) + space.read(problem.remainder, y, t)
