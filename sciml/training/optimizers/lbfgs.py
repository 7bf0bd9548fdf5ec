"""L-BFGS with a zoom line search, for full batches or batches that change slowly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import jax
import jax.numpy as jnp
import optax

from sciml.registry import option, register
from sciml.training.line_search import Point, search_along
from sciml.training.optimizer import LossFunctions, Optimizer, Update, global_norm
from sciml.types import PyTree


@final
@register("optimizer", "lbfgs")
@dataclass(frozen=True)
class LBFGS(Optimizer):
    """L-BFGS: quasi-Newton steps from the last few gradients, with a line search along each.

    Good values: memory 10 to 50, after some hundred Adam steps, float64 (in float32 the line search stalls early).
    A step costs as many gradients as its line search needs, usually one to three. The loss that is logged
    is the one before the step.
    Source: Liu & Nocedal, Math. Programming 45 (1989); line search: Nocedal & Wright, algorithms 3.5, 3.6.
    """

    memory: int = option(20, minimum=1, doc="number of past gradients kept")
    search_steps: int = option(20, minimum=1, doc="most gradients in one line search")

    def build(self, steps: int) -> LBFGS:
        """Itself: nothing depends on the number of steps."""
        del steps
        return self

    def init(self, params: PyTree) -> PyTree:
        """Past gradients and steps."""
        return optax.scale_by_lbfgs(self.memory).init(params)

    def update(self, functions: LossFunctions, params: PyTree, state: PyTree) -> Update:
        """One direction and its line search."""
        (loss, parts), gradient = functions.value_and_grad(params)
        direction, state = optax.scale_by_lbfgs(self.memory).update(gradient, state, params)
        downhill = jax.tree.map(jnp.negative, direction)
        start = Point(params, loss, gradient)
        end, length = search_along(lambda p: functions.value(p)[0], start, downhill, self.search_steps)
        info = {"loss": loss, "grad_norm": global_norm(gradient), "learning_rate": length}
        return Update(end.params, state, info, parts)
