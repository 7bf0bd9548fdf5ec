"""Endless shuffled batches for training: deterministic, prefetched by threads, resumable at any step."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from sciml.errors import ConfigError, DataError

Batch: TypeAlias = dict[str, np.ndarray]
Gather: TypeAlias = Callable[[np.ndarray], Batch]


class Order:
    """The order in which samples are seen: one random permutation of `rows` after the other, without end.

    A function of (seed, epoch) alone, so any position can be computed at once. Batches run over the end of
    an epoch into the next; within an epoch each sample is seen exactly once.
    """

    def __init__(self, rows: np.ndarray, seed: int) -> None:
        self.rows = np.asarray(rows, np.int64)
        self._permutation = lru_cache(maxsize=4)(lambda epoch: _permutation(self.rows, seed, epoch))

    def __call__(self, start: int, count: int) -> np.ndarray:
        """Sample rows at positions start, ..., start + count - 1: int64 (count,)."""
        parts, position = [], start
        while position < start + count:
            epoch, offset = divmod(position, len(self.rows))
            part = self._permutation(epoch)[offset : offset + start + count - position]
            parts.append(part)
            position += len(part)
        return np.concatenate(parts)


class _BatchSource:
    """Random access to batches for grain: item k is batch k, or the slice of it that a process wants.

    The unit is the batch and not the sample: one vectorized gather costs microseconds where collecting a
    batch of 32 sample by sample costs milliseconds (docs/data-format.md has the figures).
    """

    def __init__(self, gather: Gather, order: Order, batch: int, first: int, share: int) -> None:
        self._gather, self._order, self._batch = gather, order, batch
        self._offset, self._share = first, share

    def __len__(self) -> int:
        return sys.maxsize // self._batch

    def __getitem__(self, index: Any) -> Batch:
        return self._gather(self._order(int(index) * self._batch + self._offset, self._share))


class Batches:
    """Iterator over batches (dicts of arrays, samples first) with a position that can be saved.

    `get_state()` is `{"next_index": number of batches taken}`: it depends on nothing else, so a run may be
    continued by another number of processes, each of which gets its slice of the same global batches.
    Batches are made ahead of time by `threads` threads.
    """

    def __init__(
        self,
        gather: Gather,
        rows: np.ndarray,
        *,
        batch_size: int,
        seed: int = 0,
        process: int = 0,
        processes: int = 1,
        threads: int = 1,
        prefetch: int = 4,
    ) -> None:
        """Raises ConfigError when `batch_size` (global) does not divide over the processes, DataError
        without samples."""
        if batch_size < 1 or batch_size % processes or not 0 <= process < processes:
            raise ConfigError(
                "the batch does not divide over the processes",
                expected=f"a positive multiple of {processes}; process number below {processes}",
                got=f"batch_size {batch_size}, process {process}",
            )
        if len(rows) == 0:
            raise DataError("a split without samples cannot be trained on")
        self.batch_size, self.samples = batch_size, len(rows)
        self._gather, self._order, self._threads, self._prefetch = gather, Order(rows, seed), threads, prefetch
        share = batch_size // processes
        self.only(process * share, share)

    def only(self, first_row: int, rows: int) -> Batches:
        """From here on give only these rows of each global batch; the position stays. Returns itself."""
        import grain  # a second of start-up (it brings jax), which reading and generating do not need

        position = self.get_state() if hasattr(self, "_iterator") else {"next_index": 0}
        source = _BatchSource(self._gather, self._order, self.batch_size, first_row, rows)
        options = grain.ReadOptions(
            num_threads=self._threads, prefetch_buffer_size=self._prefetch if self._threads else 0
        )
        self._iterator = iter(grain.MapDataset.source(source).to_iter_dataset(options))
        self.first_row = first_row
        self.set_state(position)
        return self

    def __iter__(self) -> Batches:
        return self

    def __next__(self) -> Batch:
        return next(self._iterator)

    @property
    def epoch(self) -> float:
        """How often each sample has been seen, on average."""
        return self.get_state()["next_index"] * self.batch_size / self.samples

    def get_state(self) -> dict[str, int]:
        """Position as a JSON value."""
        return {"next_index": int(self._iterator.get_state()["next_index"])}

    def set_state(self, state: Mapping[str, int]) -> None:
        """Continue after `get_state()` gave `state`."""
        self._iterator.set_state({**self._iterator.get_state(), "next_index": int(state["next_index"])})


def _permutation(rows: np.ndarray, seed: int, epoch: int) -> np.ndarray:
    return np.random.Generator(np.random.Philox(key=[seed, epoch])).permutation(rows)
