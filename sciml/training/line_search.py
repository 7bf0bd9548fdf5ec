"""Strong Wolfe line search (zoom), shared by the quasi-Newton optimizers."""

from __future__ import annotations

from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import optax

from sciml.training.optimizer import LossFunctions
from sciml.types import PyTree, Scalar


class Found(NamedTuple):
    """Where a line search ended: the parameters, and the length of the step in units of the direction."""

    params: PyTree
    length: Scalar


def search_along(
    functions: LossFunctions, params: PyTree, direction: PyTree, loss: Scalar, gradient: PyTree, most: int
) -> Found:
    """Search along `direction` from `params`, length 1 first, with at most `most` gradients.

    Where nothing better is found, or the found loss is not finite, parameters stay and the length is 0.
    Source: Nocedal & Wright, Numerical Optimization, algorithms 3.5 and 3.6, as implemented in optax.
    """
    search = optax.scale_by_zoom_linesearch(max_linesearch_steps=most, initial_guess_strategy="one")
    updates, found = search.update(
        direction,
        search.init(params),
        params,
        value=loss,
        grad=gradient,
        value_fn=lambda p: functions.value(p)[0],
    )
    state = cast(optax.ScaleByZoomLinesearchState, found)
    better = jnp.isfinite(state.value) & (state.value <= loss)
    moved = jax.tree.map(lambda p, u: jnp.where(better, (p + u).astype(p.dtype), p), params, updates)
    return Found(moved, jnp.where(better, state.learning_rate, 0.0))
