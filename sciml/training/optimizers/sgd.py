"""Gradient descent, with heavy-ball or Nesterov momentum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

import optax

from sciml.registry import option, register
from sciml.training.first_order import FirstOrder
from sciml.training.schedules import Course, schedule


@final
@register("optimizer", "sgd")
@dataclass(frozen=True)
class SGD:
    """Gradient descent, with heavy-ball or Nesterov momentum.

    Good values: a baseline rather than a tool; learning_rate must stay below 2 / (largest curvature).
    Source: Sutskever et al., On the importance of initialization and momentum, ICML 2013, equations 3-4.
    """

    learning_rate: float = option(1e-2, above=0.0, doc="highest learning rate")
    schedule: Literal["constant", "cosine", "exponential", "warmup_cosine"] = option(
        "cosine", doc="course of the learning rate over the whole training"
    )
    warmup: float = option(0.02, minimum=0.0, maximum=0.9, doc="share of the steps spent rising (warmup_cosine)")
    final: float = option(0.0, minimum=0.0, maximum=1.0, doc="last learning rate divided by the highest")
    momentum: float = option(0.9, minimum=0.0, maximum=1.0, doc="share of the last update kept; 0 is plain descent")
    nesterov: bool = option(True, doc="look ahead along the momentum")
    clip: float | None = option(None, above=0.0, doc="bound on the global norm of the gradient")

    def build(self, steps: int) -> FirstOrder:
        """The optimizer for a training of `steps` steps."""
        course = Course(self.learning_rate, self.final, self.warmup, steps)
        rate = schedule(self.schedule, course)
        return FirstOrder(optax.trace(self.momentum, self.nesterov), rate, self.clip, name="sgd")
