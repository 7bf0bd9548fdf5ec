"""What a report shows, as plain numbers: no model, no file format, no plotting library."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sciml.errors import DataError
from sciml.metrics import relative_l2


@dataclass(frozen=True)
class ModelRow:
    """One line of the results table; a figure that was not measured is None and shown as a dash.

    `error` is the mean relative L2 error on held-out samples, `error_spread` its spread over samples or
    seeds, `reference_error` the solver's own relative error against the reference (all without unit).
    Times are in seconds, `latency_seconds` that of one call, `speedup` the solver's time over the model's at
    equal accuracy.
    """

    name: str
    parameters: int | None = None
    training_seconds: float | None = None
    error: float | None = None
    error_spread: float | None = None
    reference_error: float | None = None
    latency_seconds: float | None = None
    speedup: float | None = None
    note: str = ""


@dataclass(frozen=True)
class FieldComparison:
    """A field of one held-out sample, true and predicted, in physical units.

    `truth` and `prediction` have the shape (times, *space), or (*space) when `times` is None; `coordinates`
    gives the values along each space axis in that order. `periodic` says that the axes repeat, which the
    spectrum needs to know.

    Raises:
        DataError: shapes that do not fit each other.
    """

    model: str
    field: str
    unit: str
    coordinates: Mapping[str, np.ndarray]
    times: np.ndarray | None
    truth: np.ndarray
    prediction: np.ndarray
    note: str = ""
    periodic: bool = True

    def __post_init__(self) -> None:
        axes = dict(self.coordinates) if self.times is None else {"time": self.times, **self.coordinates}
        expected = tuple(len(values) for values in axes.values())
        for name in ("truth", "prediction"):
            got = np.shape(getattr(self, name))
            if got != expected:
                raise DataError(
                    f"report: the {name} of {self.field!r} by model {self.model!r} does not fit its axes",
                    expected=f"shape {expected}, axes ({', '.join(axes)})",
                    got=f"shape {got}",
                )

    @property
    def relative_l2(self) -> float:
        """Relative L2 error of this sample, over all of its points and times."""
        return relative_l2(self.prediction, self.truth)


@dataclass(frozen=True)
class QuantityComparison:
    """A scalar quantity of interest over held-out samples: `truth` and `prediction` of shape (samples,)."""

    model: str
    name: str
    unit: str
    truth: np.ndarray
    prediction: np.ndarray

    @property
    def relative_l2(self) -> float:
        """Relative L2 error over the samples."""
        return relative_l2(self.prediction, self.truth)


@dataclass(frozen=True)
class Curve:
    """The training history of one model: the records of its `metrics.jsonl`, one mapping per line."""

    model: str
    records: Sequence[Mapping[str, Any]]

    def series(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Steps and values of every positive number that was recorded more than once, by key."""
        keys = dict.fromkeys(key for record in self.records for key in record if key not in _NOT_LOSSES)
        found = {key: self._one(key) for key in keys}
        return {key: (steps, values) for key, (steps, values) in found.items() if len(steps) > 1}

    def _one(self, key: str) -> tuple[np.ndarray, np.ndarray]:
        pairs = [(record["step"], record[key]) for record in self.records if key in record and "step" in record]
        pairs = [(s, v) for s, v in pairs if isinstance(v, int | float) and math.isfinite(v) and v > 0]
        steps, values = zip(*pairs, strict=True) if pairs else ((), ())
        return np.asarray(steps, dtype=float), np.asarray(values, dtype=float)


_NOT_LOSSES = frozenset({"step", "time", "seconds", "epoch", "wait_fraction"})


@dataclass(frozen=True)
class Contents:
    """Everything on one page, in the order of reading."""

    title: str
    recipe_text: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    rows: Sequence[ModelRow] = ()
    fields: Sequence[FieldComparison] = ()
    quantities: Sequence[QuantityComparison] = ()
    curves: Sequence[Curve] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
