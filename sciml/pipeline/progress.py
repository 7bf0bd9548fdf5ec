"""What the stages of a pipeline tell a person: one line per event, a live bar on a terminal."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, final

from rich.console import Console
from rich.progress import Progress as Bar

Advance = Callable[[int, int], None]


@final
class Progress:
    """Writes to standard output; `seconds_between` is the least time between two plain lines of one task."""

    def __init__(self, console: Console | None = None, seconds_between: float = 5.0) -> None:
        self.console = console or Console(file=sys.stdout)
        self.seconds_between = seconds_between

    def say(self, text: str) -> None:
        """One line."""
        self.console.print(text, highlight=False, soft_wrap=True)

    def show(self, what: Any) -> None:
        """A table or other rich object."""
        self.console.print(what)

    @contextlib.contextmanager
    def task(self, name: str) -> Iterator[Advance]:
        """A function (done, total) to be called as the task proceeds."""
        if self.console.is_terminal:
            with Bar(console=self.console) as bar:
                number = bar.add_task(name)
                yield lambda done, total: bar.update(number, completed=done, total=total)
            return
        last = time.monotonic()

        def advance(done: int, total: int) -> None:
            nonlocal last
            if done == total or time.monotonic() - last > self.seconds_between:
                last = time.monotonic()
                self.say(f"{name}: {done}/{total}")

        yield advance
