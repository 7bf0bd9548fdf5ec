"""The reading at points: fields are functions of z = (x_1, ..., x_dim, t), derivatives are forward-mode AD."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

import jax
import jax.numpy as jnp

from sciml.calculus.base import Calculus, FieldArithmetic, total
from sciml.errors import ConfigError
from sciml.functions import Coefficient, evaluate, is_sampled


@final
class PointField(FieldArithmetic):
    """A function from one point z, shape (dim,) or (dim + 1,) with time last, to a number."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def __call__(self, z: Any) -> Any:
        """The value at one point."""
        return self.function(z)

    def combine(self, function: Callable[..., Any], *others: Any) -> PointField:
        """Pointwise combination."""
        return PointField(lambda z: function(self(z), *(o(z) if isinstance(o, PointField) else o for o in others)))

    def linear(self, function: Callable[..., Any], other: Any) -> PointField:
        """Sum or difference."""
        return self.combine(function, other)

    def scaled(self, factor: Any) -> PointField:
        """Product with a number."""
        return self.combine(lambda a: factor * a)


@final
class Pointwise(Calculus[PointField]):
    """Derivatives by nested forward-mode differentiation of functions of a point.

    `field` takes a function of z and `values` returns one; evaluate it with `jax.vmap` over points.
    """

    def __init__(self, dim: int, has_time: bool) -> None:
        self.dim, self.has_time = dim, has_time

    def field(self, values: Callable[[Any], Any]) -> PointField:
        """The field of a function z -> number."""
        return PointField(values)

    def values(self, u: Any) -> Callable[[Any], Any]:
        """The function z -> number of a field (a constant becomes a constant function)."""
        return u.function if isinstance(u, PointField) else lambda z: jnp.asarray(u, z.dtype)

    def partial(self, u: PointField, axis: int, order: int = 1) -> PointField:
        """Derivative along z[axis] by `order` nested jvps."""
        function = u.function
        for _ in range(order):
            function = _derivative(function, axis)
        return PointField(function)

    def dt(self, u: PointField) -> PointField:
        """Derivative along the last entry of z; raises `ConfigError` in a steady problem."""
        if not self.has_time:
            raise ConfigError("a steady problem has no time derivative", fix="Pointwise(dim, has_time=True)")
        return self.partial(u, self.dim)

    def gradient(self, u: PointField) -> tuple[PointField, ...]:
        """First derivatives along each axis."""
        return tuple(self.partial(u, axis) for axis in range(self.dim))

    def divergence(self, flux: Sequence[PointField]) -> PointField:
        """Sum of the derivatives of the components."""
        return total([self.partial(component, axis) for axis, component in enumerate(flux)])

    def laplacian(self, u: PointField) -> PointField:
        """Sum of second derivatives."""
        return total([self.partial(u, axis, 2) for axis in range(self.dim)])

    def map(self, function: Callable[..., Any], *u: PointField) -> PointField:
        """Pointwise map."""
        return u[0].combine(function, *u[1:])

    def sample(self, coefficient: Coefficient) -> Any:
        """Functions become fields, numbers stay; raises `ConfigError` for an array sampled on a grid."""
        if callable(coefficient):
            dim = self.dim
            return PointField(lambda z: evaluate(coefficient, z[:dim], z[dim] if self.has_time else None))
        if is_sampled(coefficient):
            raise ConfigError(
                "a coefficient sampled on a grid has no values between the grid points",
                expected="a number or a function f(x)",
                got=f"an array of shape {jnp.shape(coefficient)}",
                fix="sciml.sampling.GridFunction(grid, values)",
            )
        return coefficient

    @property
    def coordinates(self) -> tuple[PointField, ...]:
        """The entries of z that are space coordinates."""
        return tuple(PointField(lambda z, i=i: z[i]) for i in range(self.dim))

    @property
    def time(self) -> PointField:
        """The last entry of z."""
        return PointField(lambda z: z[self.dim])


def _derivative(function: Callable[[Any], Any], axis: int) -> Callable[[Any], Any]:
    def derivative(z: Any) -> Any:
        direction = jnp.zeros_like(z).at[axis].set(1.0)
        return jax.jvp(function, (z,), (direction,))[1]

    return derivative
