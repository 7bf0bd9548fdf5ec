"""SIGTERM, SIGUSR1 and Ctrl-C as flags, so that a training can finish its step and save before it leaves."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Any

WATCHED = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)
"""SIGUSR1 is what schedulers send ahead of a time limit."""


class StopSignals:
    """Context manager: inside it, SIGTERM, SIGUSR1 and the first SIGINT only set `received`.

    A second SIGINT raises KeyboardInterrupt at once. The previous handlers come back at the end. Python
    allows this in the main thread only.
    """

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self._previous: dict[signal.Signals, Any] = {}

    def __call__(self) -> signal.Signals | None:
        """The first signal that came, or None."""
        return self.received

    def __enter__(self) -> StopSignals:
        self._previous = {watched: signal.signal(watched, self._note) for watched in WATCHED}
        return self

    def __exit__(self, *_: object) -> None:
        for watched, handler in self._previous.items():
            signal.signal(watched, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        del frame
        if self.received is signal.SIGINT and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.received = self.received or signal.Signals(number)
