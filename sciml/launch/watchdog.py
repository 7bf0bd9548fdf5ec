"""One thread per process that listens to the others, and notices when steps stop coming.

jax does not see a process that lives but does nothing: the others then wait in their collectives without a word and
without end. Here every step is a beat; when it fails to come for the time allowed, all processes write the stacks of
all their threads and leave.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any, final

from sciml.launch.agreement import STOP, Agreement
from sciml.launch.leaving import LEAVING, PEER_GONE, end, leave
from sciml.launch.store import POLL_SECONDS, Silence, Store

STALLED = "stalled"
STALLED_WORDS = """process {rank} of {size}: no step for {silent} s, more than the watchdog allows, and all leave
  likely reason: one of the processes above does not sit in the step that the others wait in
  write instead: the same command again; it continues from the last checkpoint"""
INTERNAL = 70
UNWATCHED = "this process can no longer listen to the others, for the reason above, and all leave"
FOLLOW_SECONDS = 2.0
FIRST_STEP = 3
"""A first step may take this many times the time of the others: it is compiled."""
FIRST_STEP_SECONDS = 900.0


@final
class Beats:
    """The steps of this process as signs of life, for its own watchdog and for a supervisor that listens on a pipe.

    A line is `step`, or `-` when no steps are expected for a while.
    """

    def __init__(self, pipe: int | None = None) -> None:
        self.pipe = pipe
        self._last: float | None = None
        self._first = True

    def step(self, number: int, *, first: bool = False) -> None:
        """A step was made; `first`: none yet by this process, and the next is compiled."""
        self._last, self._first = time.monotonic(), first
        self._say(f"{'?' if first else ''}{number}")

    def pause(self) -> None:
        """No steps for a while."""
        self._last = None
        self._say("-")

    def late(self, seconds: float) -> float | None:
        """How long no step has come, if longer than allowed."""
        if self._last is None:
            return None
        silent = time.monotonic() - self._last
        allowed = max(seconds * FIRST_STEP, FIRST_STEP_SECONDS) if self._first else seconds
        return silent if silent > allowed else None

    def _say(self, line: str) -> None:
        if self.pipe is None:
            return
        try:
            os.write(self.pipe, f"{line}\n".encode())
        except BrokenPipeError:  # the supervisor is gone: save and leave, as nobody would notice a failure now
            self.pipe = None
            os.kill(os.getpid(), signal.SIGTERM)
        except OSError:  # a full pipe: the supervisor is busy, and an old beat is as good as a new one
            return


@final
class Watch:
    """The listening thread. `seconds`: how long a step may take at most; None leaves that to a supervisor."""

    def __init__(self, store: Store, agreement: Agreement, beats: Beats, seconds: float | None = None) -> None:
        self.store, self.agreement, self.beats, self.seconds = store, agreement, beats, seconds
        self._heard = 0
        self._kinds: Mapping[str, Callable[[dict[str, Any]], None]] = {
            STOP: lambda notice: agreement.settle(notice["signal"]),
            LEAVING: self._follow,
            STALLED: self._dump,
        }

    def start(self) -> None:
        """Begin to listen, until the process ends."""
        threading.Thread(target=self._listen, name="sciml-watch", daemon=True).start()

    def _listen(self) -> None:
        """Without this thread the main one may wait for ever: when it fails, the process ends."""
        from jax.errors import JaxRuntimeError

        try:
            while self._hears():
                pass
        except JaxRuntimeError as error:
            leave(PEER_GONE, f"process 0 went before all had agreed: {str(error).splitlines()[0]}")
        except Exception:
            traceback.print_exc()
            leave(INTERNAL, UNWATCHED)

    def _hears(self) -> bool:
        """Act on the next notice, if one comes soon; False without a store: process 0 is gone, and jax ends us."""
        from jax.errors import JaxRuntimeError

        try:
            text = self.store.get(f"notices/{self._heard + 1}", POLL_SECONDS)
        except Silence:
            self._look()
            return True
        except JaxRuntimeError:
            return False
        self._heard += 1
        notice = json.loads(text)
        self._kinds[notice["kind"]](notice)
        return True

    def _look(self) -> None:
        """Say so when no step has come for too long."""
        silent = None if self.seconds is None else self.beats.late(self.seconds)
        if silent is not None:
            self.store.append("notices", {"kind": STALLED, "rank": self.store.rank, "silent": round(silent, 1)})

    def _follow(self, notice: dict[str, Any]) -> None:
        """Another process leaves: this one has a moment to do so by itself, for the reason that they share."""
        if notice["rank"] == self.store.rank:
            return
        time.sleep(FOLLOW_SECONDS)
        if self.store.rank > 0:
            with contextlib.suppress(Exception):  # the store may be gone with process 0
                self.store.put(f"left/{self.store.rank}", "")
        end(notice["code"])

    def _dump(self, notice: dict[str, Any]) -> None:
        rank, silent = notice["rank"], notice["silent"]
        print(f"process {self.store.rank} of {self.store.size}: stacks of all threads", file=sys.stderr, flush=True)
        faulthandler.dump_traceback(sys.stderr, all_threads=True)
        if rank == self.store.rank:
            print(STALLED_WORDS.format(rank=rank, size=self.store.size, silent=silent), file=sys.stderr, flush=True)
        time.sleep(FOLLOW_SECONDS / 2 if self.store.rank else FOLLOW_SECONDS)
        end(PEER_GONE)
