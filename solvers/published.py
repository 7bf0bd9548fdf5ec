"""What the literature says about an equation, to be found again by the solvers: a part of its certificate.

A module `published_<topic>.py` in this package registers functions under the name of an equation:

    @published("korteweg_de_vries")
    def speed_of_a_soliton() -> Iterable[Row]:
        ...
        yield Row("speed of the soliton (Korteweg, de Vries 1895)", found, 1.0, 1e-6)

`limit` does the same for cases in which an equation becomes another one. The modules are imported when asked for.
"""

from __future__ import annotations

import importlib
import math
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import sciml.solvers

PREFIX = "published_"


class Row(NamedTuple):
    """One comparison: what was computed, with its source, the value found, the value expected, and how far apart
    they may be (absolute). A relation is stated as its violation, expected to be 0."""

    what: str
    found: float
    expected: float
    tolerance: float

    @property
    def holds(self) -> bool:
        """Whether the value found is finite and as near as it has to be."""
        return math.isfinite(self.found) and abs(self.found - self.expected) <= self.tolerance

    @property
    def text(self) -> str:
        """The row as one line, marked where it does not hold."""
        mark = "" if self.holds else "NOT MET: "
        return f"{mark}{self.what}: {self.found:.9g}, expected {self.expected:.9g} to {self.tolerance:.1g}"


Rows = Callable[[], Iterable[Row]]
R = TypeVar("R", bound=Rows)


@dataclass(frozen=True)
class Entries:
    """Functions registered for one equation: quick ones are a part of every certificate, long ones run on demand."""

    quick: list[Rows] = field(default_factory=list)
    long: list[Rows] = field(default_factory=list)


_published: dict[str, Entries] = {}
_limits: dict[str, Entries] = {}


def published(equation: str, *, long: bool = False) -> Callable[[R], R]:
    """Function decorator: values from the literature for the equation registered as `equation`.

    The function takes nothing and yields `Row`s; with `long=True` (more than about two seconds of one core) it is
    left out of the quick certificate.
    """
    return _add(_published, equation, long)


def limit(equation: str, *, long: bool = False) -> Callable[[R], R]:
    """Function decorator: cases in which the equation registered as `equation` becomes another one."""
    return _add(_limits, equation, long)


def published_rows(equation: str, *, long: bool = False) -> Iterator[Row]:
    """The rows from the literature for a registered equation, computed now; `long` adds those that take longer."""
    yield from _rows(_published, equation, long)


def limit_rows(equation: str, *, long: bool = False) -> Iterator[Row]:
    """The rows on limits of a registered equation, computed now; `long` adds those that take longer."""
    yield from _rows(_limits, equation, long)


def _add(entries: dict[str, Entries], equation: str, long: bool) -> Callable[[R], R]:
    def decorate(function: R) -> R:
        known = entries.setdefault(equation, Entries())
        (known.long if long else known.quick).append(function)
        return function

    return decorate


def _rows(entries: dict[str, Entries], equation: str, long: bool) -> Iterator[Row]:
    for module in pkgutil.iter_modules(sciml.solvers.__path__):
        if module.name.startswith(PREFIX):
            importlib.import_module(f"sciml.solvers.{module.name}")
    known = entries.get(equation, Entries())
    for function in (*known.quick, *(known.long if long else ())):
        yield from map(Row._make, function())
