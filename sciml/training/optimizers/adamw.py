"""AdamW: Adam with weight decay that is not divided by the gradient scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

import optax

from sciml.registry import option, register
from sciml.training.first_order import FirstOrder
from sciml.training.schedules import Course, schedule


@final
@register("optimizer", "adamw")
@dataclass(frozen=True)
class AdamW:
    """AdamW: Adam with weight decay that is not divided by the gradient scale.

    Good values: weight_decay 1e-5 to 1e-2 where an operator fits training samples much better than others.
    Source: Loshchilov & Hutter, Decoupled weight decay regularization, arXiv:1711.05101, algorithm 2.
    """

    learning_rate: float = option(1e-3, above=0.0, doc="highest learning rate")
    schedule: Literal["constant", "cosine", "exponential", "warmup_cosine"] = option(
        "cosine", doc="course of the learning rate over the whole training"
    )
    warmup: float = option(0.02, minimum=0.0, maximum=0.9, doc="share of the steps spent rising (warmup_cosine)")
    final: float = option(0.0, minimum=0.0, maximum=1.0, doc="last learning rate divided by the highest")
    weight_decay: float = option(1e-4, minimum=0.0, doc="decay of every parameter, times the learning rate")
    b1: float = option(0.9, minimum=0.0, maximum=1.0, doc="memory of the gradient")
    b2: float = option(0.999, minimum=0.0, maximum=1.0, doc="memory of the squared gradient")
    eps: float = option(1e-8, above=0.0, doc="added to the root mean square")
    clip: float | None = option(None, above=0.0, doc="bound on the global norm of the gradient")

    def build(self, steps: int) -> FirstOrder:
        """The optimizer for a training of `steps` steps."""
        course = Course(self.learning_rate, self.final, self.warmup, steps)
        return FirstOrder(
            optax.chain(optax.scale_by_adam(self.b1, self.b2, self.eps), optax.add_decayed_weights(self.weight_decay)),
            schedule(self.schedule, course),
            self.clip,
            name="adamw",
        )
