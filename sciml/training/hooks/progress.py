"""Progress for people: a live bar on a terminal, a plain line every few seconds elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, final

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from sciml.training.hooks.base import Hook, Record

if TYPE_CHECKING:
    from sciml.training.loop import Run


@final
class ShowProgress(Hook):
    """Shows step, loss, evaluation and speed of a training called `name`."""

    def __init__(self, name: str, seconds_between: float = 5.0, console: Console | None = None) -> None:
        self.name, self.seconds_between = name, seconds_between
        self.console = console or Console(file=sys.stdout)
        self._last_line = time.monotonic()
        self._bar: Progress | None = None
        self._task = TaskID(0)
        self._numbers: Record = {}

    def on_start(self, run: Run) -> None:
        """Open the bar on a terminal."""
        if not self.console.is_terminal:
            return
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
        self._bar = Progress(*columns, TextColumn("{task.fields[text]}"), TimeRemainingColumn(), console=self.console)
        self._bar.start()
        self._task = self._bar.add_task(self.name, total=run.total, completed=run.step, text="compiling")

    def on_records(self, run: Run, records: list[Record]) -> None:
        """New numbers; printed when the last line is old enough."""
        self._numbers.update(records[-1])
        if self._bar is not None:
            self._bar.update(self._task, completed=run.step, text=_text(self._numbers))
        elif time.monotonic() - self._last_line > self.seconds_between:
            self._print(run)

    def on_end(self, run: Run) -> None:
        """The last line."""
        if self._bar is None:
            self._print(run)

    def close(self) -> None:
        """Close the bar."""
        if self._bar is not None:
            self._bar.stop()

    def _print(self, run: Run) -> None:
        self._last_line = time.monotonic()
        text = f"{self.name}: step {run.step}/{run.total}  {_text(self._numbers)}"
        self.console.print(text, highlight=False, soft_wrap=True)


def _text(numbers: dict[str, Any]) -> str:
    """`loss 1.2e-03  evaluation/error 3.4e-03  210 steps/s`."""
    shown = [n for n in numbers if n == "loss" or n.startswith("evaluation/")]
    words = [f"{name} {numbers[name]:.2e}" for name in shown]
    if "steps_per_second" in numbers:
        words.append(f"{numbers['steps_per_second']:.3g} steps/s")
    return "  ".join(words)
