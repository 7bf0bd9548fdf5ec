"""Stopping together: a signal to any one process ends all of them at the same step, without a wait in any other step.

Every process counts its step boundaries; all count alike, because all take the same steps. Once a stop is asked for,
the watching thread of each process promises a boundary that its main thread has not passed and will not pass before
the answer is known; the answer is the largest promise. The threads answer at once, even while their main thread waits
for a step that needs the others: nobody waits for somebody who waits.
"""

from __future__ import annotations

import json
import signal
import threading
from typing import final

from sciml.launch.store import POLL_SECONDS, Store

STOP = "stop"


@final
class Agreement:
    """When to stop, the same on all processes. Call `ask` at every step boundary, from the main thread."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._lock = threading.Lock()
        self._boundary = 0
        self._asked = self._open = False
        self._known = threading.Event()
        self._answer: tuple[int, signal.Signals] = (0, signal.SIGTERM)

    def ask(self, received: signal.Signals | None) -> signal.Signals | None:
        """The signal to stop for at this boundary, or None; `received` is what this process itself was sent."""
        with self._lock:
            self._boundary += 1
            boundary, is_open = self._boundary, self._open
        if received is not None and not self._asked:
            self._asked = True
            self.store.append("notices", {"kind": STOP, "rank": self.store.rank, "signal": received.name})
        if not is_open:
            return None
        while not self._known.wait(POLL_SECONDS):
            pass
        at, number = self._answer
        return number if boundary >= at else None

    def settle(self, name: str) -> None:
        """Find the boundary together with the other processes; called by the watching thread."""
        with self._lock:
            if self._open:
                return
            self._open = True
            promise = self._boundary + 1
        rank, size = self.store.rank, self.store.size
        if rank > 0:
            self.store.put(f"{STOP}/{rank}", str(promise))
            at = int(self.store.wait(f"{STOP}/at"))
        else:
            at = max(promise, *(int(self.store.wait(f"{STOP}/{r}")) for r in range(1, size)))
            self.store.put(f"{STOP}/at", json.dumps(at))
        self._answer = (at, signal.Signals[name])
        self._known.set()
