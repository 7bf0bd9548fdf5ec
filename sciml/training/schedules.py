"""Learning rates as functions of the step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import optax

from sciml.types import ArrayLike

ScheduleName: TypeAlias = Literal["constant", "cosine", "exponential", "warmup_cosine"]

Schedule: TypeAlias = Callable[[ArrayLike], ArrayLike]


@dataclass(frozen=True)
class Course:
    """Learning rate from `peak` to `final * peak` over `steps` steps; `warmup` is the share spent rising."""

    peak: float
    final: float
    warmup: float
    steps: int


def _constant(course: Course) -> Schedule:
    return optax.constant_schedule(course.peak)


def _cosine(course: Course) -> Schedule:
    return optax.cosine_decay_schedule(course.peak, course.steps, alpha=course.final)


def _exponential(course: Course) -> Schedule:
    rate = max(course.final, 1e-12)
    return optax.exponential_decay(course.peak, course.steps, rate, end_value=course.peak * rate)


def _warmup_cosine(course: Course) -> Schedule:
    rising = max(1, round(course.warmup * course.steps))
    return optax.warmup_cosine_decay_schedule(
        course.peak / rising, course.peak, rising, max(course.steps, rising + 1), course.peak * course.final
    )


SCHEDULES: dict[str, Callable[[Course], Schedule]] = {
    "constant": _constant,
    "cosine": _cosine,
    "exponential": _exponential,
    "warmup_cosine": _warmup_cosine,
}


def schedule(name: ScheduleName, course: Course) -> Schedule:
    """The schedule called `name`: step -> learning rate."""
    return SCHEDULES[name](course)
