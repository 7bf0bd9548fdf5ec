"""What kind of operator an equation is, read from its text without any numbers (so it also works under jit)."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

from sciml.calculus.base import Calculus, FieldArithmetic, total
from sciml.functions import Coefficient, is_sampled


@dataclass(frozen=True, eq=False)
class Trace(FieldArithmetic):
    """What a field was made of.

    `depends`: the unknowns in it; `varying`: multiplied by something that varies in space; `nonlinear`: in an
    unknown; `operators`: derivatives applied, of "first", "second", "compact" (divergence of a gradient),
    "odd" and "even" (of higher order), "inverse" and "composed"; `slope`: a gradient not yet inside a divergence;
    `affine`: a term without unknowns was added.
    """

    depends: frozenset[str] = frozenset()
    varying: bool = False
    nonlinear: bool = False
    operators: frozenset[str] = frozenset()
    slope: bool = False
    affine: bool = False

    def combine(self, function: Callable[..., Any], *others: Any) -> Trace:
        """A product with data keeps linearity; anything else of an unknown is nonlinear."""
        traces = [self, *(o for o in others if isinstance(o, Trace))]
        unknown = [trace for trace in traces if trace.depends]
        if not unknown:
            return Trace(varying=True)
        is_product = function is operator.mul or (function is operator.truediv and bool(self.depends))
        merged = _merge(traces)
        nonlinear = merged.nonlinear or len(unknown) > 1 or not is_product
        return replace(merged, varying=True, nonlinear=nonlinear)

    def linear(self, function: Callable[..., Any], other: Any) -> Trace:
        """A sum depends on what both terms depend on; added data make it affine, the number zero does not."""
        traces = [t for t in (self, other) if isinstance(t, Trace)]
        unknown = [trace for trace in traces if trace.depends]
        if not unknown:
            return Trace(varying=True)
        merged = _merge(unknown)
        return replace(merged, affine=merged.affine or len(unknown) < 2 and not _is_zero(other))

    def scaled(self, factor: Any) -> Trace:
        """A number changes nothing."""
        return self

    def derived(self, kind: str) -> Trace:
        """The derivative of a kind."""
        before = self.operators | ({"first"} if self.slope else set())
        return replace(self, operators=before | {kind} | ({"composed"} if before else set()), slope=False)


def _merge(traces: Sequence[Trace]) -> Trace:
    return Trace(
        depends=frozenset().union(*(t.depends for t in traces)),
        varying=any(t.varying for t in traces if t.depends),
        nonlinear=any(t.nonlinear for t in traces),
        operators=frozenset().union(*(t.operators for t in traces)),
        slope=any(t.slope for t in traces),
        affine=any(t.affine for t in traces),
    )


def _is_zero(term: Any) -> bool:
    """Whether a term is the plain number zero, with which Python's `sum` starts."""
    return isinstance(term, int | float) and term == 0


@final
class StructureReading(Calculus[Trace]):
    """The reading under which fields are `Trace`s."""

    def __init__(self, dim: int) -> None:
        self.dim = dim

    def field(self, values: Any) -> Trace:
        """Data on the grid."""
        return Trace(varying=True)

    def values(self, u: Any) -> Any:
        """The trace."""
        return u

    def partial(self, u: Trace, axis: int, order: int = 1) -> Trace:
        """Records the order."""
        return u.derived({1: "first", 2: "second"}.get(order, "odd" if order % 2 else "even"))

    def dt(self, u: Trace) -> Trace:
        """Records nothing."""
        return u

    def gradient(self, u: Trace) -> tuple[Trace, ...]:
        """Slopes, which become "compact" inside a divergence."""
        inner = u.derived("first") if u.slope else u
        marked = replace(inner, slope=True, operators=inner.operators | ({"composed"} if inner.operators else set()))
        return (marked,) * self.dim

    def divergence(self, flux: Sequence[Any]) -> Trace:
        """A slope makes the compact second derivative."""
        return total([_divergence(part) for part in flux])

    def laplacian(self, u: Trace) -> Trace:
        """Records a second derivative."""
        return u.derived("second")

    def potential(self, f: Trace) -> Trace:
        """Records an inverse."""
        return f.derived("inverse")

    def map(self, function: Callable[..., Any], *u: Trace) -> Trace:
        """Nonlinear in every unknown."""
        return u[0].combine(function, *u[1:])

    def sample(self, coefficient: Coefficient) -> Any:
        """Numbers stay, anything else varies in space."""
        return Trace(varying=True) if callable(coefficient) or is_sampled(coefficient) else coefficient

    @property
    def coordinates(self) -> tuple[Trace, ...]:
        """Data."""
        return (Trace(varying=True),) * self.dim

    @property
    def time(self) -> Trace:
        """Data: a factor of time is not a constant coefficient."""
        return Trace(varying=True)


def _divergence(component: Any) -> Trace:
    if not isinstance(component, Trace):
        return Trace(varying=True)
    return replace(component, slope=False).derived("compact") if component.slope else component.derived("first")


Structure = Mapping[str, Trace]
"""Field name to what its term of the equation is made of; a field without a term is left out."""


def read_structure(
    text: Callable[[dict[str, Any], Any], Mapping[str, Any]], names: Sequence[str], dim: int
) -> Structure:
    """The structure of a text `(fields, calculus) -> terms by field`."""
    unknowns = {name: Trace(depends=frozenset({name})) for name in names}
    terms = text(unknowns, StructureReading(dim))
    return {n: term if isinstance(term, Trace) else Trace(affine=not _is_zero(term)) for n, term in terms.items()}


def flux_is_pointwise(flux: Callable[..., Any], names: Sequence[str], dim: int) -> bool:
    """Whether a text `(fields, calculus) -> components by field` contains no derivative."""
    unknowns = {name: Trace(depends=frozenset({name})) for name in names}
    components = [c for part in flux(unknowns, StructureReading(dim)).values() for c in part if isinstance(c, Trace)]
    return not any(component.operators or component.slope for component in components)


def is_linear(structure: Structure) -> bool:
    """Whether every term is linear (or affine) in the unknowns."""
    return not any(trace.nonlinear for trace in structure.values())


def is_constant(structure: Structure) -> bool:
    """Whether every term is linear with coefficients that do not vary in space."""
    return not any(trace.nonlinear or (trace.varying and trace.depends) for trace in structure.values())


def affine_fields(structure: Structure) -> tuple[str, ...]:
    """The fields whose term does not vanish with the unknowns: it contains a constant or a function of space."""
    return tuple(n for n, trace in structure.items() if trace.affine or (trace.varying and not trace.depends))


def is_uncoupled(structure: Structure) -> bool:
    """Whether the term of each field contains no other field."""
    return all(trace.depends <= {name} for name, trace in structure.items())


def derivatives(structure: Structure) -> frozenset[str]:
    """All kinds of derivatives that occur."""
    return frozenset().union(*(t.operators | ({"first"} if t.slope else set()) for t in structure.values()))


def separable_kind(structure: Structure) -> str | None:
    """ "second" or "compact" where that is the only derivative in the terms, so one basis diagonalizes them all."""
    operators = derivatives(structure)
    if not operators:
        return "second"
    return next(iter(operators)) if operators in ({"second"}, {"compact"}) else None
