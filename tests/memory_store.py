"""The store of a job in the memory of one process: its processes are threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from jax.errors import JaxRuntimeError


class Memory:
    """What `sciml.launch.store.Store` uses of the client of `jax.distributed`."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.counts: dict[str, int] = {}
        self.changed = threading.Condition()

    def key_value_set_bytes(self, key: str, value: bytes) -> None:
        with self.changed:
            assert key not in self.values, f"{key} is set twice"
            self.values[key] = value
            self.changed.notify_all()

    def blocking_key_value_get_bytes(self, key: str, milliseconds: int) -> bytes:
        until = time.monotonic() + milliseconds / 1000
        with self.changed:
            while key not in self.values:
                if not self.changed.wait(max(until - time.monotonic(), 0)) and key not in self.values:
                    raise JaxRuntimeError(f"DEADLINE_EXCEEDED: {key}")
            return self.values[key]

    def key_value_delete(self, key: str) -> None:
        with self.changed:
            for name in [n for n in self.values if n.startswith(key)]:
                del self.values[name]

    def key_value_increment(self, key: str, by: int) -> int:
        with self.changed:
            self.counts[key] = self.counts.get(key, 0) + by
            return self.counts[key]


def together(count: int, work: Callable[[int], Any]) -> list[Any]:
    """Results of `work(rank)`, one thread per rank; the first exception is raised."""
    with ThreadPoolExecutor(count) as pool:
        return [future.result(60) for future in [pool.submit(work, rank) for rank in range(count)]]
