"""Functions of space and time as PyTrees, so that a problem that holds them can be vmapped and differentiated."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from sciml.errors import ConfigError
from sciml.types import Array, ArrayLike, Float

Function: TypeAlias = Callable[..., Any]
Coefficient: TypeAlias = Any
"""A number, an array sampled on the grid in use, or a function `f(x)` or `f(x, t)` of one point x, shape (dim,)."""


@jax.tree_util.register_static
@dataclass(frozen=True)
class PlainFunction:
    """A Python function without parameters of its own, as a PyTree without leaves."""

    function: Function

    def __call__(self, *args: Any) -> Any:
        """Call the wrapped function."""
        return self.function(*args)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self.function)


def as_function(value: Any) -> Any:
    """`value` itself if it is a number, an array or a PyTree; a plain callable is wrapped as `PlainFunction`."""
    is_opaque = callable(value) and jax.tree.leaves(value) == [value]
    return PlainFunction(value) if is_opaque else value


def takes_time(function: Function) -> bool:
    """Whether `function` is called as f(x, t) rather than f(x)."""
    parameters = inspect.signature(function).parameters.values()
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in positional and p.default is p.empty for p in parameters) >= 2


def evaluate(function: Function, x: Float[Array, " dim"], t: Any = None) -> Any:
    """Value at one point x (shape (dim,)) and time t (ignored by a function of space alone)."""
    return function(x, t) if takes_time(function) else function(x)


def evaluate_on(function: Function, points: ArrayLike, t: Any = None) -> Float[Array, "*shape"]:
    """Values at many points of shape (*shape, dim): shape (*shape,); values that already have this shape are kept."""
    points = jnp.asarray(points)
    if is_sampled(function):
        return _kept(function, points.shape[:-1])
    flat = points.reshape(-1, points.shape[-1])
    values = jax.vmap(lambda x: jnp.asarray(evaluate(function, x, t), dtype=flat.dtype))(flat)
    return values.reshape(points.shape[:-1])


def _kept(values: Any, shape: tuple[int, ...]) -> Array:
    if tuple(jnp.shape(values)) != shape:
        raise ConfigError(
            "sampled values have to stand on the grid in use",
            expected=f"shape {shape}",
            got=f"shape {tuple(jnp.shape(values))}",
            fix="sciml.sampling.GridFunction(their_grid, values), which interpolates",
        )
    return jnp.asarray(values)


def is_sampled(coefficient: Coefficient) -> bool:
    """Whether a coefficient is an array of grid values rather than a number or a function."""
    return not callable(coefficient) and jnp.ndim(coefficient) > 0
