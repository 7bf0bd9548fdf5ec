"""Where the time of a training goes: clocks that the loop itself keeps."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import final

COMPILING, WAITING, STEPPING = "compiling", "waiting for data", "steps"
EVALUATING, SAVING, LOGGING = "evaluation", "checkpoints", "logging"
TRACING, OTHER = "tracing", "other"
PURPOSES: tuple[str, ...] = (COMPILING, WAITING, STEPPING, EVALUATING, SAVING, LOGGING, TRACING, OTHER)


@final
class Clock:
    """Seconds by what they were spent on, without gaps and without counting any twice.

    A purpose inside another one is taken from it: a checkpoint that waits for steps under way spends that on steps.
    """

    def __init__(self) -> None:
        self._spent: dict[str, float] = dict.fromkeys(PURPOSES, 0.0)
        self._purposes = [OTHER]
        self._since = time.perf_counter()

    @contextlib.contextmanager
    def on(self, purpose: str) -> Iterator[None]:
        """Time inside is spent on `purpose`."""
        self._turn()
        self._purposes.append(purpose)
        try:
            yield
        finally:
            self._turn()
            self._purposes.pop()

    @property
    def spent(self) -> dict[str, float]:
        """Seconds by purpose, up to now."""
        self._turn()
        return dict(self._spent)

    def _turn(self) -> None:
        now = time.perf_counter()
        self._spent[self._purposes[-1]] += now - self._since
        self._since = now
