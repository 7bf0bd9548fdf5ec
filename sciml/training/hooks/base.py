"""The events of a training."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from sciml.training.hooks.watching import OTHER

if TYPE_CHECKING:
    from sciml.training.loop import Run

Record: TypeAlias = dict[str, Any]


class Hook(abc.ABC):  # noqa: B024 -- every event is optional
    """Something that follows a training; each method is one event, and does nothing unless a hook says so.

    purpose: what the time spent in `on_step` and `on_end` is spent on.
    """

    purpose: ClassVar[str] = OTHER

    def on_start(self, run: Run) -> None:  # noqa: B027 -- optional
        """Before the first step of this process; `run.step` steps were done by earlier ones."""

    def on_step(self, run: Run) -> None:  # noqa: B027 -- optional
        """After a step was handed to the device. To wait for its metrics, call `run.flush()`."""

    def on_records(self, run: Run, records: list[Record]) -> None:  # noqa: B027 -- optional
        """New records: one per step (step, loss, loss/<term>, grad_norm, ...), or one of an evaluation."""

    def on_end(self, run: Run) -> None:  # noqa: B027 -- optional
        """After the last step, when nothing was raised."""

    def close(self) -> None:  # noqa: B027 -- optional
        """At the end in any case; must not raise."""
