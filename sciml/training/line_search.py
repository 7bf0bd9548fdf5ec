"""Strong Wolfe line search (zoom), shared by the quasi-Newton optimizers."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import optax

from sciml.types import PyTree, Scalar


class Point(NamedTuple):
    """Parameters with the value of a function there and its gradient."""

    params: PyTree
    value: Scalar
    gradient: PyTree


def search_along(
    function: Callable[[PyTree], Scalar], start: Point, direction: PyTree, most: int
) -> tuple[Point, Scalar]:
    """Search along `direction`, length 1 first, with at most `most` gradients of `function`.

    Gives the point found and the length of the step in units of the direction; where nothing better is found
    that is `start` and 0.
    Source: Nocedal & Wright, Numerical Optimization, algorithms 3.5 and 3.6, as implemented in optax.
    """
    search = optax.scale_by_zoom_linesearch(max_linesearch_steps=most, initial_guess_strategy="one")
    updates, found = search.update(
        direction,
        search.init(start.params),
        start.params,
        value=start.value,
        grad=start.gradient,
        value_fn=function,
    )
    state = cast(optax.ScaleByZoomLinesearchState, found)
    end = Point(optax.apply_updates(start.params, updates), jnp.asarray(state.value), state.grad)
    better = jnp.isfinite(end.value) & (end.value <= start.value)
    point = jax.tree.map(lambda new, old: jnp.where(better, new, old).astype(old.dtype), end, start)
    return point, jnp.where(better, state.learning_rate, 0.0)
