"""Muon: momentum whose matrices are made orthogonal, Adam for everything that is not a matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, final

import jax
import optax
import optax.contrib
from flax import nnx

from sciml.registry import option, register
from sciml.training.first_order import FirstOrder
from sciml.training.schedules import Course, schedule
from sciml.types import Array, PyTree


@final
@register("optimizer", "muon")
@dataclass(frozen=True)
class Muon:
    """Muon: momentum whose matrices are made orthogonal, Adam for everything that is not a matrix.

    Dense layers take steps of equal size in all directions, which Adam's elementwise division does not give;
    vectors, and arrays with more than two axes such as spectral weights, are left to Adam at the same rate,
    unless a note at the parameter says which of its axes make a matrix (`matrix=((-3,), (-2, -1))`, from -1 on).
    Good values: learning_rate 5e-3 with warmup_cosine for operators of width 24 to 128.
    Source: Jordan et al., Muon, 2024 (kellerjordan.github.io/posts/muon).
    """

    learning_rate: float = option(5e-3, above=0.0, doc="highest learning rate")
    schedule: Literal["constant", "cosine", "exponential", "warmup_cosine"] = option(
        "warmup_cosine", doc="course of the learning rate over the whole training"
    )
    warmup: float = option(0.05, minimum=0.0, maximum=0.9, doc="share of the steps spent rising (warmup_cosine)")
    final: float = option(1e-3, minimum=0.0, maximum=1.0, doc="last learning rate divided by the highest")
    momentum: float = option(0.95, minimum=0.0, maximum=1.0, doc="memory of the gradient of a matrix")
    clip: float | None = option(None, above=0.0, doc="bound on the global norm of the gradient")

    def build(self, steps: int) -> FirstOrder:
        """The optimizer for a training of `steps` steps."""
        course = Course(self.learning_rate, self.final, self.warmup, steps)
        # optax returns updates to be added; FirstOrder subtracts a direction.
        orthogonal = optax.contrib.muon(1.0, beta=self.momentum, muon_weight_dimension_numbers=matrices)
        direction = optax.chain(orthogonal, optax.scale(-1.0))
        return FirstOrder(direction, schedule(self.schedule, course), self.clip, elementwise=False, name="muon")


def matrices(params: PyTree) -> PyTree:
    """For each parameter the axes that go in and those that come out, None for what is not a matrix."""

    def dimensions(variable: Any, leaf: Array) -> optax.contrib.MuonDimensionNumbers | None:
        noted = variable.get_metadata().get("matrix") if isinstance(variable, nnx.Variable) else None
        if noted is not None:
            return optax.contrib.MuonDimensionNumbers(*noted) if noted else None
        return optax.contrib.MuonDimensionNumbers(0, 1) if leaf.ndim == 2 else None

    def of(variable: Any) -> Any:
        return jax.tree.map(lambda leaf: dimensions(variable, leaf), variable)

    return jax.tree.map(of, params, is_leaf=lambda leaf: isinstance(leaf, nnx.Variable))
