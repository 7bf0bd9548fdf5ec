"""Adam: gradient divided by its recent root mean square, with momentum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

import optax

from sciml.registry import option, register
from sciml.training.first_order import FirstOrder, Moments
from sciml.training.schedules import Course, schedule


@final
@register("optimizer", "adam")
@dataclass(frozen=True)
class Adam:
    """Adam: gradient divided by its recent root mean square, with momentum.

    Good values: learning_rate 1e-3 with a cosine schedule for operators and for the first phase of a PINN.
    Source: Kingma & Ba, Adam, arXiv:1412.6980, algorithm 1.
    """

    learning_rate: float = option(1e-3, above=0.0, doc="highest learning rate")
    schedule: Literal["constant", "cosine", "exponential", "warmup_cosine"] = option(
        "cosine", doc="course of the learning rate over the whole training"
    )
    warmup: float = option(0.02, minimum=0.0, maximum=0.9, doc="share of the steps spent rising (warmup_cosine)")
    final: float = option(0.0, minimum=0.0, maximum=1.0, doc="last learning rate divided by the highest")
    b1: float = option(0.9, minimum=0.0, maximum=1.0, doc="memory of the gradient")
    b2: float = option(0.999, minimum=0.0, maximum=1.0, doc="memory of the squared gradient")
    eps: float = option(1e-8, above=0.0, doc="added to the root mean square")
    clip: float | None = option(None, above=0.0, doc="bound on the global norm of the gradient")

    def build(self, steps: int) -> FirstOrder:
        """The optimizer for a training of `steps` steps."""
        course = Course(self.learning_rate, self.final, self.warmup, steps)
        moments = Moments(self.b1, self.b2, self.eps)
        rate = schedule(self.schedule, course)
        return FirstOrder(optax.scale_by_adam(*moments), rate, self.clip, moments=moments, name="adam")
