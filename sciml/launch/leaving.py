"""How a process of a job ends: by `os._exit`, after a word to the others, so that no barrier holds it for minutes.

Left to itself, jax waits at exit for processes that are gone, and then aborts with a code of its own.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, NoReturn

from sciml.launch.signals import WATCHED

if TYPE_CHECKING:
    from sciml.launch.store import Store

LEAVING = "leaving"
FAREWELL_SECONDS = 3.0
"""How long process 0, which holds the store, waits for the others to read why it ends."""
PEER_GONE = 80
SIGNS = ("Gloo", "NCCL", "coordination", "Connection", "heartbeat", "peer", "UNAVAILABLE", "barrier")

_member: list[Store | None] = []
_once = threading.Lock()


def belongs(store: Store | None) -> None:
    """This process is one of a job; without a store, of a job of one under a supervisor."""
    _member[:] = [store]


def member() -> bool:
    """Whether this process ends by `leave`."""
    return bool(_member)


def leave(code: int, words: str = "") -> None:
    """End this process with `code` if it is one of a job; returns at once if it is not.

    `words` are printed unless another process has explained itself before. All processes call this with code 0,
    or the others follow the first one that has another.
    """
    if not _member:
        return
    _once.acquire()  # never released: the process ends below
    if threading.current_thread() is threading.main_thread():
        for number in WATCHED:
            signal.signal(number, signal.SIG_IGN)
    store = _member[0]
    first = True
    if store is not None and code:
        with contextlib.suppress(Exception):  # the store may be gone with process 0
            first = store.append(LEAVING, {}) == 1
            store.append("notices", {"kind": LEAVING, "rank": store.rank, "code": code})
    if words and first:
        where = f"process {store.rank} of {store.size}: " if store is not None else ""
        print(f"{where}{words}", file=sys.stderr, flush=True)
    if store is not None:
        _part(store)
    end(code)


def _part(store: Store) -> None:
    """The others first, process 0 last: with it the store goes, and without a store jax aborts."""
    if store.rank > 0:
        with contextlib.suppress(Exception):
            store.put(f"left/{store.rank}", "")
        return
    until = time.monotonic() + FAREWELL_SECONDS
    for rank in range(1, store.size):
        with contextlib.suppress(Exception):
            store.get(f"left/{rank}", max(until - time.monotonic(), 0.001))
    time.sleep(0.05)


def end(code: int) -> NoReturn:
    """Leave now; what was printed and logged is written."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    logging.shutdown()
    os._exit(code)


def peer_is_gone(error: BaseException) -> bool:
    """Whether jax says, in its own words, that another process cannot be reached."""
    return member() and type(error).__name__ in ("JaxRuntimeError", "XlaRuntimeError") and _named(str(error))


def _named(text: str) -> bool:
    return any(sign in text for sign in SIGNS)
