"""A problem: an equation on a domain with initial and boundary conditions, coefficients, sources and a horizon."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp

from sciml.boundary import Condition, check_boundary, dirichlet
from sciml.calculus.base import Calculus
from sciml.calculus.pointwise import PointField, Pointwise
from sciml.domain import Box, Grid
from sciml.equations.base import Equation, Evolution, FieldSet, field_names, remainder, with_functions
from sciml.errors import ConfigError
from sciml.functions import Function, as_function, evaluate, evaluate_on
from sciml.types import Array


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Problem:
    """An equation made definite. A PyTree: coefficients, functions and horizon are leaves, the domain is static.

    `initial`, `source` and `exact` map field names to functions f(x) or f(x, t) of one point x, shape (dim,);
    `boundary` maps each bounded face to its condition. Build it with `make_problem`, which checks all that.
    """

    equation: Any
    domain: Box = field(metadata={"static": True})
    initial: dict[str, Any] = field(default_factory=dict)
    boundary: dict[str, Condition] = field(default_factory=dict)
    source: dict[str, Any] = field(default_factory=dict)
    horizon: Any = None
    exact: dict[str, Any] = field(default_factory=dict)

    @property
    def is_evolution(self) -> bool:
        """Whether the problem has a time."""
        return isinstance(self.equation, Evolution)

    @property
    def field_names(self) -> tuple[str, ...]:
        """Names of the unknowns."""
        return field_names(self.equation)

    def residual(self, u: Mapping[str, Any], d: Calculus[Any]) -> dict[str, Any]:
        """What vanishes for a solution: the residual of the equation minus the sources."""
        terms = self.equation.residual(FieldSet(u), d)
        return {name: t - d.sample(self.source[name]) if name in self.source else t for name, t in terms.items()}

    def remainder(self, u: Mapping[str, Any], d: Calculus[Any]) -> dict[str, Any]:
        """The right-hand side without the stiff part: nonstiff - div flux + source."""
        terms = remainder(self.equation, u, d)
        for name, source in self.source.items():
            sampled = d.sample(source)
            terms[name] = terms[name] + sampled if name in terms else sampled
        return terms

    def initial_values(self, grid: Grid) -> dict[str, Array]:
        """The initial fields on a grid, shapes (*grid.shape)."""
        return {name: evaluate_on(f, grid.points, 0.0) for name, f in self.initial.items()}

    def exact_values(self, grid: Grid, t: Any = None) -> dict[str, Array]:
        """The exact fields on a grid at time t, shapes (*grid.shape)."""
        return {name: evaluate_on(f, grid.points, t) for name, f in self.exact.items()}


def make_problem(
    equation: Equation,
    domain: Box,
    *,
    initial: Mapping[str, Function] | None = None,
    boundary: Mapping[str, Condition] | None = None,
    source: Mapping[str, Function] | None = None,
    horizon: Any = None,
    exact: Mapping[str, Function] | None = None,
) -> Problem:
    """A checked `Problem`; raises `ConfigError` for unknown or missing fields, faces, dimension or horizon."""
    names = field_names(equation)
    _check_names("source", source or {}, names, complete=False)
    _check_names("exact", exact or {}, names, complete=False)
    if domain.dim not in equation.dims:
        raise ConfigError(
            f"{type(equation).__name__} is not defined in {domain.dim} dimensions", expected=f"one of {equation.dims}"
        )
    if isinstance(equation, Evolution):
        _check_names("initial", initial or {}, names, complete=True)
        if horizon is None or (isinstance(horizon, (int, float)) and horizon <= 0):
            raise ConfigError("an evolution needs a horizon", expected="a time > 0", got=horizon, fix="horizon=1.0")
    elif initial or horizon is not None:
        raise ConfigError("a steady problem has no initial condition and no horizon", got=f"{initial=}, {horizon=}")
    return Problem(
        equation=with_functions(equation),
        domain=domain,
        initial=_wrapped(initial),
        boundary=check_boundary(domain, boundary or {}),
        source=_wrapped(source),
        horizon=horizon,
        exact=_wrapped(exact),
    )


def manufactured(
    equation: Equation,
    domain: Box,
    exact: Mapping[str, Function],
    *,
    horizon: Any = None,
    condition: Callable[[Function, int, float], Condition] | None = None,
) -> Problem:
    """The problem whose solution is `exact`: the source is what the pointwise reading of the equation leaves over.

    `exact` maps every field to a smooth f(x, t) (f(x) if steady). Bounded faces get the Dirichlet values of `exact`,
    or `condition(exact function, axis, outward sign)`. Method of manufactured solutions: P. J. Roache, J. Fluids
    Eng. 124 (2002) 4.
    """
    functions = {name: as_function(f) for name, f in exact.items()}
    has_time = isinstance(equation, Evolution)
    d = Pointwise(domain.dim, has_time)
    fields = {name: d.sample(f) for name, f in functions.items()}
    left_over = with_functions(equation).residual(FieldSet(fields), d)
    sources = {name: _point_function(term, has_time) for name, term in left_over.items()}
    names = field_names(equation)
    choose = condition or (lambda f, axis, sign: dirichlet(f))
    boundary = {
        face: choose(functions[names[0]], domain.names.index(face[0]), 1.0 if face[1] == "+" else -1.0)
        for face in domain.faces
    }
    initial = {name: _at_start(f) for name, f in functions.items()} if has_time else None
    return make_problem(
        equation, domain, initial=initial, boundary=boundary, source=sources, horizon=horizon, exact=functions
    )


def _point_function(term: PointField, has_time: bool) -> Function:
    if has_time:
        return lambda x, t: term(jnp.append(x, t))
    return lambda x: term(x)


def _at_start(function: Function) -> Function:
    return lambda x: evaluate(function, x, 0.0)


def _wrapped(functions: Mapping[str, Function] | None) -> dict[str, Any]:
    return {name: as_function(f) for name, f in (functions or {}).items()}


def _check_names(what: str, given: Mapping[str, Any], names: tuple[str, ...], *, complete: bool) -> None:
    unknown, missing = sorted(set(given) - set(names)), sorted(set(names) - set(given))
    if unknown or (complete and missing):
        raise ConfigError(
            f"`{what}` does not match the fields of the equation",
            expected=", ".join(names),
            got=", ".join(given) or "nothing",
            reason=f"unknown {unknown}" if unknown else f"missing {missing}",
        )
