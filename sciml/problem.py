"""A problem: an equation on a domain with initial and boundary conditions, coefficients, sources and a horizon."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp

from sciml.boundary import Boundary, Condition, check_boundary, dirichlet
from sciml.calculus.base import Calculus
from sciml.calculus.pointwise import PointField, Pointwise
from sciml.calculus.spectral import Spectral
from sciml.domain import Box, Grid
from sciml.equations.base import (
    Equation,
    Evolution,
    FieldSet,
    add,
    completed,
    field_names,
    remainder,
    unknown_names,
    with_functions,
)
from sciml.errors import ConfigError
from sciml.functions import Function, PlainFunction, as_function, evaluate, evaluate_on
from sciml.geometry.mesh import Mesh
from sciml.types import Array


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Problem:
    """An equation made definite. A PyTree: coefficients, functions and horizon are leaves, the domain is static.

    `initial`, `source` and `exact` map field names to functions f(x) or f(x, t) of one point x, shape (dim,);
    `boundary` maps each bounded face (or boundary part of a mesh) to its condition, or to one per field. Build it with
    `make_problem`, which checks all that.
    """

    equation: Any
    domain: Box | Mesh = field(metadata={"static": True})
    initial: dict[str, Any] = field(default_factory=dict)
    boundary: dict[str, Any] = field(default_factory=dict)
    source: dict[str, Any] = field(default_factory=dict)
    horizon: Any = None
    exact: dict[str, Any] = field(default_factory=dict)

    @property
    def box(self) -> Box:
        """The domain where it is a box; ConfigError where it is a mesh."""
        if not isinstance(self.domain, Box):
            raise ConfigError("this needs a problem on a box", got=f"a {type(self.domain).__name__}")
        return self.domain

    @property
    def is_evolution(self) -> bool:
        """Whether the problem has a time."""
        return isinstance(self.equation, Evolution)

    @property
    def field_names(self) -> tuple[str, ...]:
        """Names of the unknowns."""
        return field_names(self.equation)

    @property
    def unknown_names(self) -> tuple[str, ...]:
        """Names of the unknowns of a reading that cannot invert a Laplacian: auxiliary fields come last."""
        return unknown_names(self.equation)

    def fields(self, u: Mapping[str, Any], d: Calculus[Any]) -> FieldSet:
        """The fields as texts of the equation are given them: auxiliary ones that u lacks follow from the others."""
        if not self.is_evolution:
            return FieldSet(u)
        return completed(self.equation, u, d, lambda: self._added_potentials(d))

    def residual(self, u: Mapping[str, Any], d: Calculus[Any]) -> dict[str, Any]:
        """What vanishes for a solution: the residual of the equation minus the sources."""
        terms = self.equation.residual(self.fields(u, d), d)
        sources = {name: d.sample(self.source[name]) for name in self.field_names if name in self.source}
        if any(name not in self.field_names for name in terms):
            sources |= self._added_potentials(d)
        return {name: t - sources[name] if name in sources else t for name, t in terms.items()}

    def remainder(self, u: Mapping[str, Any], d: Calculus[Any]) -> dict[str, Any]:
        """The right-hand side without the stiff part: nonstiff - div flux + source."""
        terms = remainder(self.equation, self.fields(u, d), d)
        for name in self.field_names:
            if name in self.source:
                sampled = d.sample(self.source[name])
                terms[name] = terms[name] + sampled if name in terms else sampled
        return terms

    def _added_potentials(self, d: Calculus[Any]) -> dict[str, Any]:
        """What the sources add to the Laplacian of the auxiliary fields."""
        if not self.source:
            return {}
        names = self.field_names
        sources = {name: d.sample(self.source.get(name, PlainFunction(_zero))) for name in names}
        own = {name: d.sample(source) for name, source in self.source.items() if name not in names}
        return add(self.equation.source_potentials(FieldSet(sources), d), own)

    def initial_values(self, grid: Grid) -> dict[str, Array]:
        """The initial fields on a grid, shapes (*grid.shape), with the constraints of the equation fulfilled.

        A source of an auxiliary field is another constraint: the fields are then taken as they are.
        """
        values = {name: evaluate_on(f, grid.points, 0.0) for name, f in self.initial.items()}
        has_constraint = self.is_evolution and self.equation.auxiliary and all(grid.box.periodic)
        if not has_constraint or any(name not in self.field_names for name in self.source):
            return values
        d = Spectral(grid, time=0.0)
        changed = self.equation.start(FieldSet({name: d.field(u) for name, u in values.items()}), d)
        return values | {name: d.values(u) for name, u in changed.items()}

    def exact_values(self, grid: Grid, t: Any = None) -> dict[str, Array]:
        """The exact fields on a grid at time t, shapes (*grid.shape)."""
        return {name: evaluate_on(f, grid.points, t) for name, f in self.exact.items()}


def make_problem(
    equation: Equation,
    domain: Box | Mesh,
    *,
    initial: Mapping[str, Function] | None = None,
    boundary: Boundary | None = None,
    source: Mapping[str, Function] | None = None,
    horizon: Any = None,
    exact: Mapping[str, Function] | None = None,
) -> Problem:
    """A checked `Problem`; raises `ConfigError` for unknown or missing fields, faces, dimension or horizon."""
    names, unknowns = field_names(equation), unknown_names(equation)
    _check_names("source", source or {}, unknowns, complete=False)
    _check_names("exact", exact or {}, unknowns, complete=False)
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
        boundary=check_boundary(domain, boundary or {}, names),
        source=_wrapped(source),
        horizon=horizon,
        exact=_wrapped(exact),
    )


def manufactured(
    equation: Equation,
    domain: Box | Mesh,
    exact: Mapping[str, Function],
    *,
    horizon: Any = None,
    condition: Callable[[Function, int, float], Condition] | None = None,
) -> Problem:
    """The problem whose solution is `exact`: the source is what the pointwise reading of the equation leaves over.

    `exact` maps every field, auxiliary ones included, to a smooth f(x, t) (f(x) if steady). Bounded faces get the
    Dirichlet values of `exact`, or `condition(exact function, axis, outward sign)`; parts of a mesh always have the
    former. Method of manufactured solutions:
    P. J. Roache, J. Fluids Eng. 124 (2002) 4.
    """
    functions = {name: as_function(f) for name, f in exact.items()}
    has_time = isinstance(equation, Evolution)
    d = Pointwise(domain.dim, has_time)
    fields = {name: d.sample(f) for name, f in functions.items()}
    left_over = with_functions(equation).residual(FieldSet(fields), d)
    names = field_names(equation)
    if isinstance(equation, Evolution) and len(left_over) > len(names):
        added = equation.source_potentials(FieldSet({name: left_over[name] for name in names}), d)
        left_over = {name: term - added[name] if name in added else term for name, term in left_over.items()}
    sources = {name: _point_function(term, has_time) for name, term in left_over.items()}
    choose = condition or (lambda f, axis, sign: dirichlet(f))
    boundary: dict[str, Any] = {}
    for face in domain.faces:
        if isinstance(domain, Box):
            axis, sign = domain.names.index(face[0]), 1.0 if face[1] == "+" else -1.0
            conditions = {name: choose(functions[name], axis, sign) for name in names}
        else:
            conditions = {name: dirichlet(functions[name]) for name in names}
        boundary[face] = conditions if len(names) > 1 else next(iter(conditions.values()))
    initial = {name: _at_start(functions[name]) for name in names} if has_time else None
    return make_problem(
        equation, domain, initial=initial, boundary=boundary, source=sources, horizon=horizon, exact=functions
    )


def _point_function(term: PointField, has_time: bool) -> Function:
    if has_time:
        return lambda x, t: term(jnp.append(x, t))
    return lambda x: term(x)


def _zero(x: Array) -> Array:
    return 0.0 * x[0]


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
