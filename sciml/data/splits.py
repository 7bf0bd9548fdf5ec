"""Dividing samples into train, validation and test, and proof that no sample is in two of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

import numpy as np

from sciml.errors import ConfigError, DataError

UNUSED = "unused"


def split_rows(samples: int, splits: Mapping[str, float], seed: int) -> dict[str, np.ndarray]:
    """Disjoint random rows for each split, sorted: fractions of all (sum at most 1) or whole numbers.

    What is left over by fractions that sum to 1 goes to the first split; otherwise it becomes the split
    "unused". A split of size 0 is left out. Raises ConfigError when the splits do not fit or one gets no sample.
    """
    counts = split_counts(samples, splits)
    order = np.random.Generator(np.random.Philox(key=[seed, 0])).permutation(samples)
    ends = np.cumsum(list(counts.values()))
    parts = zip((*counts, UNUSED), np.split(order, ends), strict=True)
    return {name: np.sort(part) for name, part in parts if len(part)}


def split_counts(samples: int, wanted: Mapping[str, float]) -> dict[str, int]:
    """Samples per split from fractions (the first split takes what rounding leaves over) or from counts.

    Raises ConfigError for what does not fit, or leaves a split empty.
    """
    splits = {name: size for name, size in wanted.items() if size != 0}
    whole = all(isinstance(size, (int, np.integer)) and size >= 1 for size in splits.values())
    fractions = all(isinstance(size, float) and 0 < size <= 1 for size in splits.values())
    total = sum(splits.values())
    if splits and whole and total <= samples:
        return {name: int(size) for name, size in splits.items()}
    counts = {name: int(size * samples + 1e-9) for name, size in splits.items()} if fractions else {}
    if not counts or min(counts.values()) < 1 or total > 1 + 1e-9:
        raise ConfigError(
            f"the splits do not fit {samples} samples",
            expected="fractions that sum to at most 1, or whole numbers that sum to at most the number of samples;"
            " no split empty",
            got=dict(wanted),
            fix='splits={"train": 0.8, "validation": 0.1, "test": 0.1}',
        )
    if total > 1 - 1e-9:
        counts[next(iter(counts))] += samples - sum(counts.values())
    return counts


def sample_hashes(slabs: Iterable[Iterable[np.ndarray]], samples: int) -> list[bytes]:
    """Hash of the content of each sample over several variables, each given in slabs (rows, ...)."""
    digests = [hashlib.blake2b(digest_size=16) for _ in range(samples)]
    for variable in slabs:
        row = 0
        for slab in variable:
            for values in np.ascontiguousarray(slab):
                digests[row].update(values.tobytes())
                row += 1
    return [digest.digest() for digest in digests]


def refuse_leaks(hashes: list[bytes], splits: Mapping[str, np.ndarray], where: str) -> None:
    """DataError when two splits hold a sample with the same inputs: the test would not be a test."""
    seen: dict[bytes, tuple[str, int]] = {}
    repeated = []
    for name, rows in splits.items():
        for row in rows:
            other, first = seen.setdefault(hashes[row], (name, int(row)))
            if other != name:
                repeated.append((first, other, int(row), name))
    if repeated:
        first, other, row, name = repeated[0]
        raise DataError(
            f"{where}: the same sample is in two splits",
            expected=f"different inputs in {' and '.join(splits)}",
            got=f"row {first} ({other}) equals row {row} ({name}); {len(repeated)} such rows",
            reason="duplicated samples: errors on the test set would look smaller than they are",
            fix="remove the copies: numpy.unique(inputs, axis=0, return_index=True)",
        )
