"""Signs of life: each step is reported, so that somebody can notice when no more come."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, final

from sciml.training.hooks.base import Hook

if TYPE_CHECKING:
    from sciml.training.loop import Run


@final
class Beat(Hook):
    """Calls `step(number, first=...)` at the start (`first`: the next step is compiled) and after every step.

    `pause()` is called at the end, when no more steps are to be expected.
    """

    def __init__(self, step: Callable[..., None], pause: Callable[[], None]) -> None:
        self.step, self.pause = step, pause

    def on_start(self, run: Run) -> None:
        """Steps begin."""
        self.step(run.step, first=True)

    def on_step(self, run: Run) -> None:
        """A step was made."""
        self.step(run.step)

    def close(self) -> None:
        """No more steps."""
        self.pause()
