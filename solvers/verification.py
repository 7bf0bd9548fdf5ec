"""The order certificate of an equation: every contract check, run and written down as a table."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sciml import registry
from sciml.equations.base import Equation, Evolution, field_names, stiff_part
from sciml.equations.conservation import ConservationLaw
from sciml.errors import ConfigError, SciMLError
from sciml.solvers import consistency, derivatives, invariants, order, published, space_order
from sciml.solvers.finite_volume.certificate import order_on_cells
from sciml.solvers.method import EllipticSolver, TimeStepper
from sciml.solvers.solve import forms_shocks
from sciml.solvers.ssprk3 import Ssprk3
from sciml.solvers.structure import is_constant, read_structure

EXACT_TOLERANCE = 1e-9  # agreement to rounding, after derivatives of up to fourth order
DRIFT = 1e-8  # of an invariant, relative
NOT_FOR_ALL = ("not symmetric", "multigrid coarsens")
"""Words of the errors by which a solver that needs symmetry declines an equation."""
SECTIONS = ("Symbols:", "What you should see:", "Good values:", "Limits:", "Source:")


@dataclass(frozen=True)
class Check:
    """One contract check: what was asked, whether it holds, and the measured figures as lines of text."""

    name: str
    passed: bool
    detail: tuple[str, ...]

    @property
    def text(self) -> str:
        """The check as lines of the certificate."""
        first, *rest = self.detail or ("",)
        head = f"  {'pass' if self.passed else 'FAIL'}  {self.name:<28} {first}".rstrip()
        return "\n".join([head, *(f"{'':<37}{line}" for line in rest)])


@dataclass(frozen=True)
class Report:
    """All checks of one equation."""

    title: str
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether every check holds."""
        return all(check.passed for check in self.checks)

    @property
    def text(self) -> str:
        """The certificate as plain text."""
        return "\n".join([f"Order certificate: {self.title}", *(check.text for check in self.checks), self.summary])

    @property
    def summary(self) -> str:
        """The last line of the certificate."""
        failed = sum(not check.passed for check in self.checks)
        return f"  {len(self.checks) - failed} of {len(self.checks)} checks passed"


def verify(
    equation: Equation | type[Equation] | str,
    *,
    relative_to: Path | str = ".",
    tell: Callable[[str], None] | None = None,
    long: bool = False,
) -> Report:
    """Run every contract check on an equation: an instance, a class, a registered name, or `file.py:Class`.

    The checks: readings agree, a manufactured solution leaves no residual, the stiff part is linear and equals its
    symbol, each applicable method reaches its declared order in time, differences and Fourier series theirs in space,
    invariants stay, gradients equal differences, vmap equals single calls, limits and published values are met
    (`long`: those that take longer, too), the docstring has its sections. Takes up to a minute, mostly compilation;
    `tell` is given the lines of the certificate as they come. Raises `ConfigError` when there is no such equation or
    a coefficient has no default; a check that fails or raises is reported, not raised.
    """
    say = tell or (lambda _: None)
    instance = _instance(equation, relative_to)
    title = f"{type(instance).__name__} ({_described(instance)})"
    say(f"Order certificate: {title}")
    checks = []
    for name, check in checks_for(instance, long=long):
        checks.append(_run(name, check, instance))
        say(checks[-1].text)
    report = Report(title, tuple(checks))
    say(report.summary)
    return report


Finding = tuple[bool, tuple[str, ...]]
"""Whether a check holds, and the measured figures as lines."""


def checks_for(equation: Equation, *, long: bool = False) -> Iterator[tuple[str, Callable[[Any], Finding]]]:
    """(name, check) of everything that applies to the equation."""
    yield "readings agree", readings_agree
    yield "manufactured residual", manufactured_vanishes
    if isinstance(equation, Evolution):
        yield "stiff part is linear", stiff_is_linear
        yield "order in time", orders_in_time
        if not forms_shocks(equation, min(equation.dims)):
            yield "order in space", evolution_orders_in_space
        if isinstance(equation, ConservationLaw):
            yield "order on cells", order_on_cells
        yield "invariants", invariants_hold
    else:
        yield "order in space", orders_in_space
        if (varied := order.varied(equation)) is not None:
            yield "varying coefficients", lambda _: orders_in_space(varied, ("bicgstab", "conjugate_gradient"))
    yield "gradients", gradients_agree
    yield "families (vmap)", families_agree
    name = registered_name(equation)
    if name is not None:
        yield "limits", lambda _: rows_hold(published.limit_rows(name, long=long))
        yield "published values", lambda _: rows_hold(published.published_rows(name, long=long), needed=True)
    yield "docstring", docstring_is_complete


def registered_name(equation: Equation) -> str | None:
    """The name under which the class of the equation is registered, None for a user's own."""
    cls = type(equation)
    known = ((name, registry.describe("equation", name)) for name in registry.names("equation"))
    return next((n for n, info in known if (info.module, info.class_name) == (cls.__module__, cls.__name__)), None)


def rows_hold(rows: Iterable[published.Row], *, needed: bool = False) -> Finding:
    """Every comparison with a known value holds, and there is one if it is `needed`; one line each."""
    computed = list(rows)
    passed = all(row.holds for row in computed) and bool(computed or not needed)
    return passed, tuple(row.text for row in computed) or ("none registered",)


def readings_agree(equation: Equation) -> Finding:
    """Spectral reading to rounding, differences to their order, in the two lowest dimensions of the equation."""
    passed, lines = True, []
    for dim in sorted(equation.dims)[:2]:
        spectral = consistency.spectral_difference(equation, dim)
        passed &= spectral < EXACT_TOLERANCE
        parts = [f"{dim}D: spectral {spectral:.1e}"]
        for accuracy in (2, 4):
            spacings, errors = consistency.difference_errors(equation, dim, accuracy)
            if errors.max() < EXACT_TOLERANCE:
                parts.append(f"differences of order {accuracy}: exact")
                continue
            row = order.ObservedOrder("differences", accuracy, spacings, errors, 0.0)
            passed &= row.order > accuracy - 0.3  # the coarsest grid is not yet asymptotic for fourth derivatives
            parts.append(f"differences of order {accuracy}: {row.order:.2f}")
        lines.append(", ".join(parts))
    return passed, tuple(lines)


def manufactured_vanishes(equation: Equation) -> Finding:
    """The pointwise residual of a manufactured solution is zero to rounding."""
    worst = consistency.manufactured_residual(equation, min(equation.dims))
    return worst < EXACT_TOLERANCE, (f"{worst:.1e}",)


def stiff_is_linear(equation: Evolution) -> Finding:
    """Superposition, and symbol equals grid operator."""
    found = consistency.stiff_linearity(equation, min(equation.dims))
    symbol = "couples fields: a matrix per mode" if found.symbol is None else f"symbol {found.symbol:.1e}"
    passed = found.superposition < EXACT_TOLERANCE and (found.symbol or 0.0) < EXACT_TOLERANCE
    return passed, (f"superposition {found.superposition:.1e}, {symbol}",)


def time_steppers(equation: Evolution) -> list[TimeStepper]:
    """An instance of every registered time stepper that can treat the equation."""
    dim = min(equation.dims)
    stiff = read_structure(lambda u, d: stiff_part(equation, u, d), field_names(equation), dim)
    constant = is_constant(stiff)
    classes = [registry.load("method", name) for name in registry.names("method")]
    steppers = [cls() for cls in classes if issubclass(cls, TimeStepper)]
    steppers = [s for s in steppers if constant or not s.treats_linear_part]
    return [s for s in steppers if isinstance(s, Ssprk3)] if forms_shocks(equation, dim) else steppers


def orders_in_time(equation: Evolution) -> Finding:
    """Every applicable time stepper reaches its declared order on a manufactured solution."""
    rates = order.fastest_rates(equation)
    rows = [order.order_in_time(equation, method, rates) for method in time_steppers(equation)]
    passed = all(row.holds() and row.deviation < 1e-2 for row in rows)
    return passed, (_HEADER, *(_row(row) for row in rows))


def orders_in_space(equation: Equation, only: Sequence[str] = ()) -> Finding:
    """Every elliptic solver, or those named, reaches the order of its differences: 2 if it needs symmetry, else 4."""
    rows, notes = [], []
    for name in only or registry.names("method"):
        cls = registry.load("method", name)
        if not issubclass(cls, EllipticSolver):
            continue
        method: Any = cls(**{"difference_order": 2 if cls.needs_symmetry else 4})
        try:
            rows.append(order.order_in_space(equation, method, name))
        except SciMLError as error:
            if not cls.needs_symmetry or not any(words in error.what for words in NOT_FOR_ALL):
                raise
            notes.append(f"{name} does not apply: {error.what}")
    return all(row.holds() for row in rows), (_HEADER, *(_row(row) for row in rows), *notes)


def evolution_orders_in_space(equation: Evolution) -> Finding:
    """Differences of order 2 and 4 with moving Dirichlet values on a bounded box, Fourier series beyond any order."""
    rates = order.fastest_rates(equation)
    decay = space_order.decay_on_periodic_box(equation, rates)
    errors = "  ".join(f"{error:.1e}" for error in decay.errors)
    lines = [f"Fourier series with {', '.join(map(str, decay.points))} points per axis: {errors}"]
    if not space_order.has_bounded_form(equation):
        return decay.holds(), (*lines, "no bounded box with one condition per field and face")
    rows = [space_order.order_on_bounded_box(equation, accuracy, rates) for accuracy in (2, 4)]
    return decay.holds() and all(row.holds() for row in rows), (*lines, _HEADER, *(_row(row) for row in rows))


def invariants_hold(equation: Evolution) -> Finding:
    """What is conserved drifts, and what must fall grows, by less than `DRIFT` of its size."""
    found = invariants.measure_drift(equation, time_steppers(equation)[0])
    lines = [f"{name} drifts by {value:.1e}" for name, value in found.drifts.items()]
    lines += [f"{name} never grows" + f" ({value:.1e})" * (value > 0) for name, value in found.growths.items()]
    return found.worst < DRIFT, tuple(lines) or ("none declared",)


def gradients_agree(equation: Equation) -> Finding:
    """Reverse-mode derivatives with respect to every coefficient equal central differences."""
    errors = derivatives.gradient_error(equation, _differentiated(equation))
    listed = ", ".join(f"{name} {error:.1e}" for name, error in errors.items())
    return all(e < 1e-5 for e in errors.values()), (listed or "no coefficient is a number",)


def families_agree(equation: Equation) -> Finding:
    """vmap over two problems equals two calls."""
    difference = derivatives.family_difference(equation, _differentiated(equation))
    return difference < EXACT_TOLERANCE, (f"{difference:.1e}",)


def docstring_is_complete(equation: Equation) -> Finding:
    """A registered equation explains itself in five sections; for a user's own file this is advice."""
    text = inspect.getdoc(type(equation)) or ""
    missing = [section for section in SECTIONS if section not in text]
    is_user_code = not type(equation).__module__.startswith("sciml.")
    return is_user_code or not missing, (f"missing: {', '.join(missing)}" if missing else "all sections",)


_HEADER = f"{'method':<22}{'declared':>9}{'observed':>10}   errors at decreasing step or spacing"


def _row(row: order.ObservedOrder) -> str:
    errors = "  ".join(f"{error:.1e}" for error in row.errors)
    return f"{row.method:<22}{row.declared:>9}{row.order:>10.2f}   {errors}"


def _differentiated(equation: Equation) -> Any:
    """The method that gradients are taken through: one that applies, with few steps."""
    if not isinstance(equation, Evolution):
        return registry.load("method", "direct")()
    method: Any = time_steppers(equation)[0]
    fastest = order.fastest_rates(equation).whole if not method.treats_linear_part else 0.0
    return type(method)(dt=min(derivatives.TIME / 8, 1.0 / max(fastest, 1.0)))


def _run(name: str, check: Callable[[Any], Finding], equation: Equation) -> Check:
    try:
        passed, detail = check(equation)
    except Exception as error:  # a check that raises has failed; its message is the finding
        notes = getattr(error, "__notes__", [])
        lines = [line for part in (f"{type(error).__name__}: {error}", *notes) for line in part.splitlines()]
        return Check(name, False, tuple(lines[:12]))
    return Check(name, bool(passed), detail)


def _instance(equation: Any, relative_to: Path | str) -> Equation:
    if isinstance(equation, str):
        is_reference = registry.split_reference(equation) is not None
        load = registry.load_reference if is_reference else lambda text, _: registry.load("equation", text)
        equation = load(equation, relative_to)
    if isinstance(equation, Equation):
        return equation
    try:
        return equation()
    except TypeError as error:
        raise ConfigError(
            f"{equation.__name__} cannot be made without arguments",
            expected="a default for every coefficient",
            got=str(error),
            fix="viscosity: float = parameter(0.01, ...)",
        ) from error


def _described(equation: Equation) -> str:
    numbers = ", ".join(f"{name} = {value:g}" for name, value in derivatives.coefficients_of(equation).items())
    return numbers or "no numerical coefficient"
