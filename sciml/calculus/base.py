"""The abstract calculus: what an equation may do with its fields, whatever represents them."""

from __future__ import annotations

import abc
import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Generic, Self, TypeVar

from sciml.errors import ConfigError
from sciml.functions import Coefficient

F = TypeVar("F")


class FieldArithmetic(abc.ABC):
    """Arithmetic for field types: every operator, reflected ones included, goes through `combine`."""

    __array_ufunc__ = None  # a NumPy array on the left defers to the reflected operator

    @abc.abstractmethod
    def combine(self, function: Callable[..., Any], *others: Any) -> Self:
        """The pointwise combination `function(self, *others)` of fields, arrays and numbers."""

    @abc.abstractmethod
    def linear(self, function: Callable[..., Any], other: Any) -> Self:
        """A sum or difference with a field, array or number."""

    @abc.abstractmethod
    def scaled(self, factor: Any) -> Self:
        """The product with a number (shape ())."""

    def __add__(self, other: Any) -> Self:
        return self.linear(operator.add, other)

    def __radd__(self, other: Any) -> Self:
        return self.linear(lambda a, b: b + a, other)

    def __sub__(self, other: Any) -> Self:
        return self.linear(operator.sub, other)

    def __rsub__(self, other: Any) -> Self:
        return self.linear(lambda a, b: b - a, other)

    def __neg__(self) -> Self:
        return self.scaled(-1.0)

    def __pos__(self) -> Self:
        return self

    def __mul__(self, other: Any) -> Self:
        return self.scaled(other) if is_number(other) else self.combine(operator.mul, other)

    def __rmul__(self, other: Any) -> Self:
        return self * other

    def __truediv__(self, other: Any) -> Self:
        return self.scaled(1.0 / other) if is_number(other) else self.combine(operator.truediv, other)

    def __rtruediv__(self, other: Any) -> Self:
        return self.combine(lambda a, b: b / a, other)

    def __pow__(self, exponent: Any) -> Self:
        return self.combine(operator.pow, exponent)


def is_number(value: Any) -> bool:
    """Whether `value` is a Python number or an array of shape ()."""
    return not isinstance(value, FieldArithmetic) and getattr(value, "shape", ()) == () and not callable(value)


def total(fields: Sequence[Any]) -> Any:
    """The sum of one or more fields."""
    return reduce(operator.add, fields)


class Calculus(abc.ABC, Generic[F]):
    """Derivatives, pointwise maps and sampling for one representation F of a scalar field.

    An equation is written against this interface and must never ask which reading it is given.
    """

    dim: int

    @abc.abstractmethod
    def field(self, values: Any) -> F:
        """The field that has the given values."""

    @abc.abstractmethod
    def values(self, u: Any) -> Any:
        """The values of a field, as this reading stores them."""

    @abc.abstractmethod
    def partial(self, u: F, axis: int, order: int = 1) -> F:
        """The derivative of the given order along space axis `axis`."""

    @abc.abstractmethod
    def dt(self, u: F) -> F:
        """The time derivative."""

    @abc.abstractmethod
    def gradient(self, u: F) -> tuple[F, ...]:
        """The gradient, to be used inside `divergence` (a reading may place it between the grid points)."""

    @abc.abstractmethod
    def divergence(self, flux: Sequence[F]) -> F:
        """The divergence of a flux with one component per axis."""

    @abc.abstractmethod
    def laplacian(self, u: F) -> F:
        """The sum of the second derivatives."""

    def inverse_laplacian(self, f: F) -> F:
        """The p of mean zero with lap p = f; raises `ConfigError` where this reading has none.

        The mean of f, for which a periodic box has no such p, is left out.
        """
        p = self.potential(f)
        if p is None:
            raise ConfigError(
                "this reading cannot invert the Laplacian",
                expected="Fourier series on a periodic box",
                got=type(self).__name__,
                reason="a potential such as a stream function or a pressure depends on the field everywhere at once",
                fix="a domain whose axes are all periodic, or give the potential as a field of its own",
            )
        return p

    def potential(self, f: F) -> F | None:
        """What `inverse_laplacian` gives; readings that can supply it override this."""
        del f
        return None

    @abc.abstractmethod
    def map(self, function: Callable[..., Any], *u: F) -> F:
        """A pointwise nonlinearity that is not arithmetic, such as `d.map(jnp.sin, u.u)`."""

    @abc.abstractmethod
    def sample(self, coefficient: Coefficient) -> Any:
        """A coefficient as this reading needs it: numbers stay numbers, functions of space and time are sampled."""

    @property
    @abc.abstractmethod
    def coordinates(self) -> tuple[F, ...]:
        """The space coordinates as fields."""

    @property
    @abc.abstractmethod
    def time(self) -> Any:
        """The time as a field or number."""
