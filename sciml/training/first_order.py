"""First-order optimizers: an optax transformation of the gradient, scaled by a learning-rate schedule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, final

import jax
import jax.numpy as jnp
import optax

from sciml.training.optimizer import LossFunctions, Optimizer, Parts, Update
from sciml.types import PyTree, Scalar


class Found(NamedTuple):
    """What is known of a loss beside its gradient: value, terms, and the gradient's norm."""

    loss: Scalar
    parts: Parts
    norm: Scalar


class Moments(NamedTuple):
    """The constants of Adam (Kingma & Ba, arXiv:1412.6980, algorithm 1)."""

    b1: float
    b2: float
    eps: float


@final
@dataclass(frozen=True)
class FirstOrder(Optimizer):
    """params <- params - learning_rate(step) * transformation(gradient).

    The learning rate stands outside of the transformation, so that it can be logged and each leaf keeps its
    dtype. `clip` bounds the global norm of the gradient; the norm that is logged is the one before. `moments` are
    given where the transformation is Adam and nothing else. `name` is that of recipes.
    """

    transformation: optax.GradientTransformation
    learning_rate: optax.Schedule
    clip: float | None = None
    elementwise: bool = True
    moments: Moments | None = None
    name: str = "an optax transformation"

    @property
    def is_elementwise(self) -> bool:
        """Whether the transformation treats every number on its own."""
        return self.elementwise

    @property
    def title(self) -> str:
        """What messages call it: its name in recipes."""
        return self.name

    def init(self, params: PyTree) -> PyTree:
        """Step counter and the transformation's own state."""
        return {"count": jnp.zeros((), jnp.int32), "transformation": self.transformation.init(params)}

    def update(self, functions: LossFunctions, params: PyTree, state: PyTree) -> Update:
        """One gradient, one update."""
        (loss, parts), gradient = functions.value_and_grad(params)
        return self.applied(Found(loss, parts, functions.norm(gradient)), gradient, params, state)

    def applied(self, found: Found, gradient: PyTree, params: PyTree, state: PyTree) -> Update:
        """The update that a gradient gives."""
        if self.clip is not None:
            factor = jnp.minimum(1.0, self.clip / jnp.maximum(found.norm, jnp.finfo(found.norm.dtype).tiny))
            gradient = jax.tree.map(lambda g: g * factor.astype(g.dtype), gradient)
        direction, inner = self.transformation.update(gradient, state["transformation"], params)
        return self.moved(found, direction, params, {**state, "transformation": inner})

    def moved(self, found: Found, direction: PyTree, params: PyTree, state: PyTree) -> Update:
        """Parameters one step along minus `direction`; the transformation's state is as given."""
        rate = jnp.asarray(self.learning_rate(state["count"]))
        params = jax.tree.map(lambda p, d: p - (rate.astype(p.dtype) * d).astype(p.dtype), params, direction)
        info = {"loss": found.loss, "grad_norm": found.norm, "learning_rate": rate}
        return Update(params, {**state, "count": state["count"] + 1}, info, found.parts)
