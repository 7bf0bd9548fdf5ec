"""Reading many samples a few at a time."""

from __future__ import annotations

from collections.abc import Iterator

SLAB_BYTES = 1 << 26


def slabs(samples: int, sample_bytes: int) -> Iterator[slice]:
    """Consecutive slices of `samples` rows, each of about 64 MiB and at least one row."""
    rows = max(1, SLAB_BYTES // max(1, sample_bytes))
    for start in range(0, samples, rows):
        yield slice(start, min(start + rows, samples))
