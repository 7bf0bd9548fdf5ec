"""First-order optimizers: an optax transformation of the gradient, scaled by a learning-rate schedule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import jax
import jax.numpy as jnp
import optax

from sciml.training.optimizer import LossFunctions, Optimizer, Update
from sciml.types import PyTree


@final
@dataclass(frozen=True)
class FirstOrder(Optimizer):
    """params <- params - learning_rate(step) * transformation(gradient).

    The learning rate stands outside of the transformation, so that it can be logged and each leaf keeps its
    dtype. `clip` bounds the global norm of the gradient; the norm that is logged is the one before.
    """

    transformation: optax.GradientTransformation
    learning_rate: optax.Schedule
    clip: float | None = None
    elementwise: bool = True

    @property
    def is_elementwise(self) -> bool:
        """Whether the transformation treats every number on its own."""
        return self.elementwise

    def init(self, params: PyTree) -> PyTree:
        """Step counter and the transformation's own state."""
        return {"count": jnp.zeros((), jnp.int32), "transformation": self.transformation.init(params)}

    def update(self, functions: LossFunctions, params: PyTree, state: PyTree) -> Update:
        """One gradient, one update."""
        (loss, parts), gradient = functions.value_and_grad(params)
        norm = functions.norm(gradient)
        if self.clip is not None:
            factor = jnp.minimum(1.0, self.clip / jnp.maximum(norm, jnp.finfo(norm.dtype).tiny))
            gradient = jax.tree.map(lambda g: g * factor.astype(g.dtype), gradient)
        direction, inner = self.transformation.update(gradient, state["transformation"], params)
        rate = jnp.asarray(self.learning_rate(state["count"]))
        params = jax.tree.map(lambda p, d: p - (rate.astype(p.dtype) * d).astype(p.dtype), params, direction)
        info = {"loss": loss, "grad_norm": norm, "learning_rate": rate}
        return Update(params, {"count": state["count"] + 1, "transformation": inner}, info, parts)
