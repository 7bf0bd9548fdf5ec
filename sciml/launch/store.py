"""What the processes of one job say to each other outside of the training step: the key-value store of jax.

It lives on process 0, is reached by any thread at any time, and needs neither MPI nor a device.
"""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any, final

ROOT = "sciml"
POLL_SECONDS = 1.0
"""A wait is cut into pieces of this length, between which the main thread hears signals."""
PLAIN = {
    "builtins": {"set", "frozenset", "range", "slice", "complex", "bytearray"},
    "collections": {"OrderedDict"},
    "pathlib": {"Path", "PosixPath", "PurePosixPath", "WindowsPath"},
    "numpy": {"ndarray", "dtype"},
    "numpy.core.multiarray": {"_reconstruct", "scalar"},
    "numpy._core.multiarray": {"_reconstruct", "scalar"},
    "numpy._core.numeric": {"_frombuffer"},
}


class Silence(Exception):
    """Nothing was said in the time given."""


@final
class Store:
    """Keys and values that all processes see; made for the client of `jax.distributed`."""

    def __init__(self, client: Any, rank: int, size: int) -> None:
        self.client, self.rank, self.size = client, rank, size

    def put(self, key: str, value: bytes | str) -> None:
        """Set a key, once."""
        text = value if isinstance(value, bytes) else value.encode()
        self.client.key_value_set_bytes(f"{ROOT}/{key}", text)

    def get(self, key: str, seconds: float) -> bytes:
        """The value of a key as soon as there is one; Silence when that takes longer than `seconds`."""
        from jax.errors import JaxRuntimeError

        try:
            return self.client.blocking_key_value_get_bytes(f"{ROOT}/{key}", int(seconds * 1000))
        except JaxRuntimeError as error:
            if "DEADLINE_EXCEEDED" in str(error):
                raise Silence(key) from None
            raise

    def wait(self, key: str) -> bytes:
        """The value of a key, however long it takes; signals are heard meanwhile."""
        while True:
            try:
                return self.get(key, POLL_SECONDS)
            except Silence:
                continue

    def delete(self, key: str) -> None:
        """Forget a key and those below it."""
        self.client.key_value_delete(f"{ROOT}/{key}")

    def append(self, log: str, value: dict[str, Any]) -> int:
        """Add an entry to a log that all processes read in the same order; its number, from 1."""
        number = int(self.client.key_value_increment(f"{ROOT}/{log}/length", 1))
        self.put(f"{log}/{number}", json.dumps(value))
        return number


@final
class StoreComm:
    """The part of an MPI communicator that `sciml.data.ranks.Ranks` uses, over a `Store`.

    `end(code)` ends this process and tells the others to follow.
    """

    def __init__(self, store: Store, end: Callable[[int], Any]) -> None:
        self.store, self.end = store, end
        self._calls = 0

    def Get_rank(self) -> int:
        """Number of this process."""
        return self.store.rank

    def Get_size(self) -> int:
        """Number of processes."""
        return self.store.size

    def allgather(self, value: Any) -> list[Any]:
        """The values of all processes, in order. Process 0 collects, so that a job of n makes 3n calls, not n²."""
        place = self._next()
        if self.store.rank > 0:
            self.store.put(f"{place}/{self.store.rank}", _packed(value))
            return _unpacked(self.store.wait(f"{place}/all"))
        values = [value, *(_unpacked(self.store.wait(f"{place}/{r}")) for r in range(1, self.store.size))]
        self.store.put(f"{place}/all", _packed(values))
        return values

    def bcast(self, value: Any, root: int = 0) -> Any:
        """The value of process `root`, on all."""
        return self.allgather(value if self.store.rank == root else None)[root]

    def Abort(self, code: int) -> None:
        """End all processes."""
        self.end(code)

    def _next(self) -> str:
        """Where the next exchange happens. Whoever comes to it has read the one before the last: that one may go."""
        self._calls += 1
        if self.store.rank == 0 and self._calls > 2:
            self.store.delete(f"exchange/{self._calls - 2}/")
        return f"exchange/{self._calls}"


def _packed(value: Any) -> bytes:
    return pickle.dumps(value, protocol=5)


def _unpacked(data: bytes) -> Any:
    return _Plain(io.BytesIO(data)).load()


class _Plain(pickle.Unpickler):
    """Reads plain values, arrays, and the frozen dataclasses of this package; nothing that could run code."""

    def find_class(self, module: str, name: str) -> Any:
        if name in PLAIN.get(module, ()):
            return super().find_class(module, name)
        found = super().find_class(module, name) if module.startswith("sciml.") else None
        if isinstance(found, type) and is_dataclass(found):
            return found
        raise pickle.UnpicklingError(f"{module}.{name} is not a value that processes exchange")
