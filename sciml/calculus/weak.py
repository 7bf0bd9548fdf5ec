"""The weak reading: an equation as a source density and a flux, to be tested with the functions of finite elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, final

import jax
import jax.numpy as jnp

from sciml.calculus.base import Calculus, FieldArithmetic
from sciml.errors import ConfigError
from sciml.functions import Coefficient, evaluate_on, is_sampled
from sciml.types import Array


def _refuse(what: str) -> NoReturn:
    raise ConfigError(
        "a term of this equation is not in divergence form",
        expected="sums of plain terms, first derivatives and divergences of fluxes, these times numbers",
        got=what,
        reason="finite elements move the outer derivative of a second-order term to the test function",
        fix="d.divergence(tuple(a * slope for slope in d.gradient(u.u))) instead of a * d.laplacian(u.u) + ...",
    )


@final
class Weak(FieldArithmetic):
    """source + div(flux), of which the divergence is not taken: one component of the flux per axis."""

    def __init__(self, source: Any, flux: tuple[Any, ...]) -> None:
        self.source, self.flux = source, flux

    def combine(self, function: Callable[..., Any], *others: Any) -> NoReturn:
        """Always raises `ConfigError`: what multiplies a divergence has to stand inside it."""
        _refuse("a divergence or second derivative that is multiplied by a field, squared, or mapped")

    def linear(self, function: Callable[..., Any], other: Any) -> Weak:
        """Sources and fluxes are added apart."""
        source, flux = parts(other, len(self.flux))
        return Weak(function(self.source, source), tuple(function(a, b) for a, b in zip(self.flux, flux, strict=True)))

    def scaled(self, factor: Any) -> Weak:
        """Both times a number."""
        return Weak(factor * self.source, tuple(factor * part for part in self.flux))


@final
class WeakField(FieldArithmetic):
    """Values at quadrature points, with their derivatives along each axis and in time, as far as these are known.

    `slopes`: one array per axis, None where the values have no first derivatives of their own (they contain a slope
    or a sampled coefficient); `rate`: the time derivative or None. All have the shape of the points.
    """

    def __init__(self, value: Any, slopes: tuple[Any, ...] | None = None, rate: Any = None) -> None:
        self.value, self.slopes, self.rate = value, slopes, rate

    def combine(self, function: Callable[..., Any], *others: Any) -> WeakField:
        """Pointwise, with derivatives by the chain rule."""
        if any(isinstance(other, Weak) for other in others):
            _refuse("a divergence or second derivative that is multiplied by a field")
        terms = [self, *(o if isinstance(o, WeakField) else WeakField(o) for o in others)]
        values = tuple(jnp.asarray(term.value, float) for term in terms)
        fixed = tuple(jnp.ndim(v) == 0 for v in values)
        count = next((len(t.slopes) for t in terms if t.slopes is not None), 0)

        def derivative(tangents: list[Any]) -> Any:
            if any(t is None and not number for t, number in zip(tangents, fixed, strict=True)):
                return None
            filled = tuple(
                jnp.broadcast_to(0.0 if t is None else t, v.shape) for t, v in zip(tangents, values, strict=True)
            )
            return jax.jvp(function, values, filled)[1]

        slopes = [derivative([None if t.slopes is None else t.slopes[axis] for t in terms]) for axis in range(count)]
        known = count > 0 and not any(s is None for s in slopes)
        rate = derivative([t.rate for t in terms]) if any(t.rate is not None for t in terms) else None
        return WeakField(function(*values), tuple(slopes) if known else None, rate)

    def linear(self, function: Callable[..., Any], other: Any) -> Any:
        """With a divergence: a `Weak`; else as `combine`."""
        if isinstance(other, Weak):
            return Weak(function(self.value, other.source), tuple(function(0.0, part) for part in other.flux))
        return self.combine(function, other)

    def scaled(self, factor: Any) -> WeakField:
        """Values and derivatives times a number."""
        slopes = None if self.slopes is None else tuple(factor * s for s in self.slopes)
        return WeakField(factor * self.value, slopes, None if self.rate is None else factor * self.rate)


def parts(term: Any, dim: int) -> tuple[Any, tuple[Any, ...]]:
    """(source, flux) of any term; a field or number has no flux."""
    if isinstance(term, Weak):
        return term.source, term.flux
    return term.value if isinstance(term, WeakField) else term, (0.0,) * dim


@final
class WeakForm(Calculus[WeakField]):
    """The reading at quadrature points of elements, shape (*points, dim), in which `divergence` gives a `Weak`.

    `interpolate` turns a coefficient sampled at the nodes, shape (nodes,), into a `WeakField`.
    """

    def __init__(
        self, points: Array, time: Any = None, interpolate: Callable[[Array], WeakField] | None = None
    ) -> None:
        self.dim, self._points, self._time, self._interpolate = points.shape[-1], points, time, interpolate

    def field(self, values: Any) -> WeakField:
        """Values without derivatives."""
        return WeakField(values)

    def values(self, u: Any) -> Any:
        """The values at the points; raises `ConfigError` for a divergence."""
        if isinstance(u, Weak):
            _refuse("the values of a divergence")
        return u.value if isinstance(u, WeakField) else u

    def partial(self, u: Any, axis: int, order: int = 1) -> Any:
        """Order 1: the slope of a field that has one, else (and for order 2) a flux along the axis."""
        if isinstance(u, Weak) or order > 2:
            _refuse("a derivative of third or higher order, for which the elements are not smooth enough")
        if order == 1 and u.slopes is not None:
            return WeakField(u.slopes[axis])
        component = self.partial(u, axis) if order == 2 else u
        return self.divergence(tuple(component if a == axis else 0.0 for a in range(self.dim)))

    def dt(self, u: Any) -> WeakField:
        """The rate; raises `ConfigError` where the fields have none."""
        if not isinstance(u, WeakField) or u.rate is None:
            raise ConfigError("a field of a steady problem has no time derivative")
        return WeakField(u.rate)

    def gradient(self, u: Any) -> tuple[Any, ...]:
        """The slopes; raises `ConfigError` for a field without, such as a sampled coefficient."""
        if not isinstance(u, WeakField) or u.slopes is None:
            _refuse("the gradient of something that has no slopes inside an element")
        return tuple(WeakField(slope) for slope in u.slopes)

    def divergence(self, flux: Sequence[Any]) -> Weak:
        """The flux itself, with the source zero; raises `ConfigError` for a flux that contains a divergence."""
        if any(isinstance(part, Weak) for part in flux):
            _refuse("a divergence inside another one")
        return Weak(0.0, tuple(self.values(part) for part in flux))

    def laplacian(self, u: Any) -> Weak:
        """div grad."""
        if isinstance(u, Weak):
            _refuse("a derivative of fourth order, for which the elements are not smooth enough")
        return self.divergence(self.gradient(u))

    def map(self, function: Callable[..., Any], *u: Any) -> WeakField:
        """Pointwise map."""
        return u[0].combine(function, *u[1:])

    def sample(self, coefficient: Coefficient) -> Any:
        """Numbers stay, functions are evaluated at the points, values at the nodes interpolated."""
        if callable(coefficient):
            return WeakField(evaluate_on(coefficient, self._points, self._time))
        if is_sampled(coefficient) and self._interpolate is not None:
            return self._interpolate(coefficient)
        return coefficient

    @property
    def coordinates(self) -> tuple[WeakField, ...]:
        """The coordinates, whose slopes are 0 and 1."""
        one, shape = jnp.ones(self._points.shape[:-1]), range(self.dim)
        return tuple(WeakField(self._points[..., i], tuple(one * (i == j) for j in shape)) for i in shape)

    @property
    def time(self) -> Any:
        """The time of the step."""
        return self._time
