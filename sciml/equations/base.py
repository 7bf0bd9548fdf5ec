"""What every PDE is: fields, coefficients, and its text over the abstract calculus."""

from __future__ import annotations

import abc
import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar, dataclass_transform

import jax

from sciml.calculus.base import Calculus
from sciml.errors import ConfigError
from sciml.functions import as_function

E = TypeVar("E", bound=type)
HINT = "inside an equation a nonlinearity that is not arithmetic is written d.map(jnp.sin, u.u), not jnp.sin(u.u)"


@dataclass(frozen=True)
class Field:
    """An unknown of an equation: its name and physical unit."""

    name: str
    unit: str = "1"


class FieldSet(Mapping[str, Any]):
    """The fields of an equation under one reading, as attributes (`u.velocity`) and as a mapping.

    `derived` are fields that follow from the others, such as a stream function; they are computed when a text asks
    for one, and not listed.
    """

    def __init__(self, fields: Mapping[str, Any], derived: Mapping[str, Callable[[], Any]] | None = None) -> None:
        self._fields, self._derived = dict(fields), dict(derived or {})
        self._computed: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not self.knows(name):
            raise AttributeError(f"no field {name!r}; the fields are {', '.join((*self._fields, *self._derived))}")
        return self[name]

    def knows(self, name: str) -> bool:
        """Whether a text can ask for the field: it is given or derived."""
        return name in self._fields or name in self._derived

    def __getitem__(self, name: str) -> Any:
        if name in self._fields:
            return self._fields[name]
        if name not in self._computed:
            self._computed[name] = self._derived[name]()
        return self._computed[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)


def parameter(
    default: Any = dataclasses.MISSING,
    *,
    unit: str = "1",
    minimum: float | None = None,
    maximum: float | None = None,
    above: float | None = None,
    doc: str = "",
) -> Any:
    """A coefficient of an equation: default, unit, admissible range (`above` excludes its end), one line of text.

    Arguments must be literals, because recipes read them from the source without importing it.
    """
    limits = {"unit": unit, "minimum": minimum, "maximum": maximum, "above": above, "doc": doc}
    return dataclasses.field(default=default, metadata=limits)


@dataclass_transform(frozen_default=True, field_specifiers=(parameter, dataclasses.field))
def equation(cls: E) -> E:
    """Class decorator: a frozen dataclass that is a PyTree whose leaves are the coefficients."""
    frozen = dataclass(frozen=True)(cls)
    return jax.tree_util.register_dataclass(frozen)


class Equation(abc.ABC):
    """A PDE; subclasses are decorated with `@equation` and name their `fields`.

    `typical` gives (mean, amplitude) of a smooth admissible state per field, (1.0, 0.6) where left out: the
    certificate tries the equation on such states.
    """

    fields: ClassVar[tuple[Field, ...]]
    dims: ClassVar[tuple[int, ...]] = (1, 2, 3)
    typical: ClassVar[Mapping[str, tuple[float, float]]] = {}

    @abc.abstractmethod
    def residual(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """What vanishes for a solution, one entry per equation of the system."""

    def invariants(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """Densities by name whose integrals over a periodic box stay as they are for every solution without sources.

        The coefficients count: a density that is conserved only without viscosity is left out unless
        `is_zero(self.viscosity)`.
        """
        del u, d
        return {}

    def decreasing(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """Densities by name whose integrals over a periodic box never grow without sources, such as a free energy."""
        del u, d
        return {}


class Evolution(Equation):
    """u_t = stiff(u) + nonstiff(u) - div flux(u), for every field.

    Override the parts the equation has. `stiff` is linear with constant coefficients and is treated exactly or
    implicitly; `flux` gives a tuple with one component per axis for each field and is never expanded.

    Nonlocal terms: each `auxiliary` field p of a periodic box is what lap p = potentials(u, d)[p] says, with mean
    zero (a stream function, a pressure), and stands among the fields that the parts are given. A reading that cannot
    invert the Laplacian takes p as one more unknown, and `residual` has that constraint as one more entry.
    """

    auxiliary: ClassVar[tuple[Field, ...]] = ()

    def stiff(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """The linear part with constant coefficients, by field; fields left out have none."""
        del u, d
        return {}

    def nonstiff(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """Whatever else stands on the right-hand side, by field."""
        del u, d
        return {}

    def flux(self, u: Any, d: Calculus[Any]) -> dict[str, tuple[Any, ...]]:
        """The flux whose divergence is subtracted, by field, one component per axis."""
        del u, d
        return {}

    def potentials(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """The Laplacian of every auxiliary field, from the fields."""
        del u, d
        return {}

    def source_potentials(self, source: Any, d: Calculus[Any]) -> dict[str, Any]:
        """What sources on the right-hand sides of the fields add to `potentials`: the divergence of a force adds to
        the Laplacian of the pressure."""
        del source, d
        return {}

    def start(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """Initial fields, by name, changed so that a constraint of the equation holds, such as div u = 0."""
        del u, d
        return {}

    def residual(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """u_t minus the right-hand side, and lap p - potentials(u, d)[p] for every auxiliary field p given in u."""
        u = completed(self, u, d)
        rhs = add(stiff_part(self, u, d), remainder(self, u, d))
        terms = {f.name: d.dt(u[f.name]) - rhs[f.name] if f.name in rhs else d.dt(u[f.name]) for f in self.fields}
        given = [f.name for f in self.auxiliary if f.name in list(u)]
        laplacians = self.potentials(u, d) if given else {}
        return terms | {name: d.laplacian(u[name]) - laplacians[name] for name in given}


class Steady(Equation):
    """A PDE without time: `residual` is all there is."""


def stiff_part(equation: Evolution, u: Mapping[str, Any], d: Calculus[Any]) -> dict[str, Any]:
    """`equation.stiff` with a hint added to the errors of a text that breaks the rules of the calculus."""
    return read(equation.stiff, completed(equation, u, d), d)


def completed(
    equation: Evolution, u: Mapping[str, Any], d: Calculus[Any], added: Callable[[], Mapping[str, Any]] | None = None
) -> FieldSet:
    """The fields with the auxiliary ones that are missing, by `d.inverse_laplacian` when a text asks for one.

    `added` gives further terms of the right-hand sides lap p = ..., by auxiliary field.
    """
    fields = u if isinstance(u, FieldSet) else FieldSet(u)
    missing = [f.name for f in equation.auxiliary if not fields.knows(f.name)]
    if not missing:
        return fields

    @functools.cache
    def laplacians() -> Mapping[str, Any]:
        return add(equation.potentials(fields, d), added() if added else {})

    return FieldSet(u, {name: lambda name=name: d.inverse_laplacian(laplacians()[name]) for name in missing})


def remainder(equation: Evolution, u: Mapping[str, Any], d: Calculus[Any]) -> dict[str, Any]:
    """nonstiff - div flux, by field; fields that have neither are left out."""
    u = completed(equation, u, d)
    fluxes = read(equation.flux, u, d)
    for name, flux in fluxes.items():
        if not isinstance(flux, tuple) or len(flux) != d.dim:
            raise ConfigError(
                f"the flux of {name!r} needs one component per axis",
                expected=f"a tuple of {d.dim}",
                got=flux if not isinstance(flux, tuple) else f"a tuple of {len(flux)}",
                reason="the equation is read in another number of dimensions than its flux was written for",
                fix="return {'u': (0.5 * u.u * u.u,) * d.dim}, or in the class dims: ClassVar[tuple[int, ...]] = (1,)",
            )
    transport = {name: -d.divergence(flux) for name, flux in fluxes.items()}
    return add(read(equation.nonstiff, u, d), transport)


def read(text: Callable[..., dict[str, Any]], u: Mapping[str, Any], d: Calculus[Any]) -> dict[str, Any]:
    """Apply one part of an equation to fields under the reading `d`."""
    try:
        return text(u if isinstance(u, FieldSet) else FieldSet(u), d)
    except TypeError as error:
        error.add_note(HINT)
        raise


def add(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """The sum by name of two sets of terms."""
    merged = {**first, **second}
    return {name: first[name] + second[name] if name in first and name in second else merged[name] for name in merged}


def field_names(equation: Equation | type[Equation]) -> tuple[str, ...]:
    """The names of the unknowns."""
    return tuple(f.name for f in equation.fields)


def unknown_names(equation: Equation | type[Equation]) -> tuple[str, ...]:
    """The names of the fields and the auxiliary fields: the unknowns of a reading that cannot invert a Laplacian."""
    auxiliary: tuple[Field, ...] = getattr(equation, "auxiliary", ())
    return (*field_names(equation), *(f.name for f in auxiliary))


def is_zero(coefficient: Any) -> bool:
    """Whether a coefficient is the number zero, known before anything is compiled."""
    return isinstance(coefficient, (int, float)) and coefficient == 0


def with_functions(equation: Any) -> Any:
    """The equation with plain callables among its coefficients wrapped, so that it stays a PyTree of arrays."""
    values = {f.name: as_function(getattr(equation, f.name)) for f in dataclasses.fields(equation)}
    return dataclasses.replace(equation, **values)
