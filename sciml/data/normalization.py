"""Mean, standard deviation and range of variables over the training samples, exact and in one pass."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sciml.data import disk
from sciml.data.dataset import Dataset
from sciml.errors import DataError
from sciml.spec import Statistics, Variable


def statistics(dataset: Dataset, names: Iterable[str] | None = None, split: str = "train") -> dict[str, Statistics]:
    """`Statistics` of each variable over all samples of `split`, float64, in the variable's unit.

    A variable whose first axis is time gets one number per saved time (over samples and space); any other
    gets one number in all. `std` divides by the number of values and is 0 for a constant. Values are read
    in slabs that are merged by the update of Chan, Golub and LeVeque (1983), so large means cost no digits.
    """
    rows = dataset.rows(split)
    chosen = dataset.layout.names if names is None else tuple(names)
    return {name: _of_variable(dataset, dataset.layout.variable(name), rows) for name in chosen}


def save_statistics(
    path: str | Path, dataset: Dataset, names: Iterable[str] | None = None, split: str = "train"
) -> dict[str, Statistics]:
    """`statistics`, stored as JSON with the hash of the values they were computed from."""
    found = statistics(dataset, names, split)
    value = {
        "split": split,
        "content_sha256": dataset.content_hash(found, split=split),
        "statistics": {name: entry.to_json() for name, entry in found.items()},
    }
    disk.write_atomically(Path(path), json.dumps(value, indent=1).encode())
    return found


def load_statistics(path: str | Path, dataset: Dataset) -> dict[str, Statistics]:
    """Inverse of `save_statistics`; DataError when they were computed from other values than `dataset` has."""
    try:
        value = json.loads(Path(path).read_text())
        found = {name: Statistics.from_json(entry) for name, entry in value["statistics"].items()}
        split, recorded = value["split"], value["content_sha256"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path} holds no statistics", reason=f"{type(error).__name__}: {error}") from error
    actual = dataset.content_hash(found, split=split)
    if actual != recorded:
        raise DataError(
            f"the statistics in {path} come from other data than {dataset.name}",
            expected=f"sha256 of the values {actual}",
            got=recorded,
            reason="the data were generated again, or the file was copied from another run",
            fix=f"delete {path}: it is computed again",
        )
    return found


@dataclass(frozen=True)
class _Moments:
    """Count, mean, sum of squared deviations and range of the values seen so far, per frame: (frames,)."""

    count: int
    mean: np.ndarray
    squares: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray) -> _Moments:
        """Of values (frames, n), in two passes."""
        mean = values.mean(axis=1)
        squares = np.square(values - mean[:, None]).sum(axis=1)
        return cls(values.shape[1], mean, squares, values.min(axis=1), values.max(axis=1))

    def merge(self, other: _Moments) -> _Moments:
        """Of both sets of values together."""
        count = self.count + other.count
        delta, weight = other.mean - self.mean, other.count / count
        return _Moments(
            count,
            self.mean + delta * weight,
            self.squares + other.squares + np.square(delta) * self.count * weight,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
        )


def _of_variable(dataset: Dataset, variable: Variable, rows: np.ndarray) -> Statistics:
    timed = variable.axes[:1] == ("time",)
    total: _Moments | None = None
    for slab in dataset.slabs(variable.name, rows):
        frames = np.moveaxis(slab, 1, 0) if timed else slab[None]
        part = _Moments.of(np.asarray(frames, np.float64).reshape(len(frames), -1))
        total = part if total is None else total.merge(part)
    if total is None:
        raise DataError(f"no samples to normalize {variable.name} with")
    std = np.sqrt(total.squares / total.count)
    numbers = (total.mean, std, total.low, total.high)
    return Statistics(*(tuple(map(float, n)) if timed else float(n[0]) for n in numbers))
