"""Samples in, finished shards out: collects what one rank computes and closes a shard every so often."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from sciml.data import manifest
from sciml.data.manifest import Shard
from sciml.data.shard import Identity, fill
from sciml.data.sink import write_hdf5

SHARD_BYTES = 128 << 20
SHARD_SECONDS = 30.0


class ShardWriter:
    """Writes `<stem>-<number>.h5` in `folder`, a new one after `max_bytes` or `max_seconds` of work (128 MB, 30 s).

    So a killed process loses at most that much. Arrays are in memory until their shard is closed.
    """

    def __init__(
        self,
        folder: Path,
        stem: str,
        identity: Identity,
        *,
        max_bytes: int | None = None,
        max_seconds: float | None = None,
    ) -> None:
        self.folder, self.stem, self.identity = folder, stem, identity
        self.max_bytes = SHARD_BYTES if max_bytes is None else max_bytes
        self.max_seconds = SHARD_SECONDS if max_seconds is None else max_seconds
        self.shards: list[Shard] = []
        self._ids: list[int] = []
        self._arrays: dict[str, list[np.ndarray]] = {name: [] for name in identity.layout.names}
        self._opened = time.monotonic()

    def add(self, ids: Iterable[int], arrays: Mapping[str, np.ndarray]) -> None:
        """Take samples `ids`, `arrays[name]` of shape (len(ids), ...); may close a shard (StorageError)."""
        self._ids.extend(int(i) for i in ids)
        for name, pieces in self._arrays.items():
            pieces.append(np.asarray(arrays[name], self.identity.layout.dtype))
        full = len(self._ids) * self.identity.layout.sample_bytes >= self.max_bytes
        if full or time.monotonic() - self._opened >= self.max_seconds:
            self.close_shard()

    def close_shard(self) -> None:
        """Put what was collected on disk; does nothing when that is nothing."""
        if self._ids:
            ids, arrays = self._ids, self._arrays
            self._ids, self._arrays = [], {name: [] for name in self._arrays}
            path = self.folder / f"{self.stem}-{len(self.shards):04d}.h5"
            needed = len(ids) * self.identity.layout.sample_bytes
            written = write_hdf5(path, lambda file, check: fill(file, self.identity, ids, arrays, check), needed)
            shard = Shard(path.name, written.sha256, written.bytes, tuple(ids))
            manifest.trust(path, shard)
            self.shards.append(shard)
        self._opened = time.monotonic()
