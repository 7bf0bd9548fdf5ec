"""What a data set holds, before a number is written: variables, units, axes, coordinates, splits, dtype.

The schema in the files (`docs/data-format.md`) is this object spelled in HDF5. Plain Python, no arrays.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

import numpy as np

from sciml.errors import ConfigError, DataError
from sciml.spec import DType, Spec, Statistics, Variable

GROUPS = ("inputs", "outputs", "parameters", "quantities")
SAMPLE_IDS = "sample_ids"


@dataclass(frozen=True)
class Coordinate:
    """The points of one axis, strictly increasing, in `unit`.

    `periodic`: the last point is followed by the first (and the end of the box is not among the points);
    `period` is then the length of the box. Raises DataError when the points are not finite and increasing.
    """

    values: tuple[float, ...]
    unit: str = "1"
    periodic: bool = False
    period: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(float(v) for v in self.values))
        for index, value in enumerate(self.values):
            if not math.isfinite(value) or (index and value <= self.values[index - 1]):
                raise DataError(
                    "the points of an axis do not increase",
                    expected="finite, strictly increasing numbers",
                    got=f"{value} at index {index}" + (f" after {self.values[index - 1]}" if index else ""),
                    reason="shuffled or repeated times",
                    fix="sort the points, and the data along that axis with them",
                )

    def to_json(self) -> dict[str, Any]:
        """Plain values; `from_json` is the inverse."""
        return {
            "values": list(self.values),
            "unit": self.unit,
            "periodic": self.periodic,
            "period": self.period,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Coordinate:
        """Inverse of `to_json`."""
        return cls(**{**value, "values": tuple(value["values"])})


@dataclass(frozen=True)
class Layout:
    """Everything a reader must know about a data set except the numbers.

    `inputs`, `outputs` are fields or scalars, `parameters` scalars that describe the problem, `quantities`
    scalars computed from a trajectory; every name is used once. `coordinates` maps axis names ("time"
    included) to `Coordinate`. `splits` maps a split name to its number of samples: consecutive ranges of
    sample ids in the order given; one of 0 samples is left out. `dtype` is that of the arrays on disk,
    which are in the stated units. Raises ConfigError for repeated names, sizes that disagree, no samples,
    or an unknown dtype.
    """

    inputs: tuple[Variable, ...] = ()
    outputs: tuple[Variable, ...] = ()
    parameters: tuple[Variable, ...] = ()
    quantities: tuple[Variable, ...] = ()
    coordinates: Mapping[str, Coordinate] = field(default_factory=dict)
    splits: Mapping[str, int] = field(default_factory=dict)
    dtype: DType = "float64"

    def __post_init__(self) -> None:
        for group in GROUPS:
            object.__setattr__(self, group, tuple(getattr(self, group)))
        object.__setattr__(self, "splits", {name: int(n) for name, n in self.splits.items() if n != 0})
        _refuse_names(self)
        _refuse_sizes(self)
        _refuse_splits(self)

    def __iter__(self) -> Iterator[tuple[str, Variable]]:
        """(group, variable) for each variable, in the order of the file."""
        return ((group, variable) for group in GROUPS for variable in getattr(self, group))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all variables."""
        return tuple(variable.name for _, variable in self)

    @property
    def samples(self) -> int:
        """Number of samples over all splits."""
        return sum(self.splits.values())

    @property
    def sample_bytes(self) -> int:
        """Bytes of one sample on disk, without HDF5's own."""
        return np.dtype(self.dtype).itemsize * sum(variable.size for _, variable in self)

    @property
    def periodic(self) -> tuple[str, ...]:
        """Names of the periodic axes."""
        return tuple(axis for axis, coordinate in self.coordinates.items() if coordinate.periodic)

    def variable(self, name: str) -> Variable:
        """The variable called `name`; DataError listing the names there are otherwise."""
        return next((v for _, v in self if v.name == name), None) or _unknown_variable(self, name)

    def ids(self, split: str) -> range:
        """Sample ids of one split; DataError for an unknown one."""
        if split not in self.splits:
            raise DataError(f"no split {split!r}", expected=" | ".join(self.splits), got=split)
        counts = list(self.splits.values())
        start = sum(counts[: list(self.splits).index(split)])
        return range(start, start + self.splits[split])

    def spec(
        self,
        inputs: tuple[str, ...] | None = None,
        outputs: tuple[str, ...] | None = None,
        statistics: Mapping[str, Statistics] | None = None,
    ) -> Spec:
        """The `Spec` of a model from `inputs` (default: inputs and parameters) to `outputs`, with ranges."""
        taken = inputs or tuple(v.name for v in (*self.inputs, *self.parameters))
        given = outputs or tuple(v.name for v in self.outputs)
        chosen = {name: _with_range(self.variable(name), statistics) for name in (*taken, *given)}
        axes = {axis for variable in chosen.values() for axis in variable.axes}
        return Spec(
            inputs=tuple(chosen[name] for name in taken),
            outputs=tuple(chosen[name] for name in given),
            coordinates={axis: c.values for axis, c in self.coordinates.items() if axis in axes},
            periodic=tuple(axis for axis in self.periodic if axis in axes),
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values; `from_json` is the inverse."""
        groups = {group: [v.to_json() for v in getattr(self, group)] for group in GROUPS}
        coordinates = {axis: c.to_json() for axis, c in self.coordinates.items()}
        return {**groups, "coordinates": coordinates, "splits": dict(self.splits), "dtype": self.dtype}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Layout:
        """Inverse of `to_json`."""
        groups = {group: tuple(Variable.from_json(v) for v in value[group]) for group in GROUPS}
        coordinates = {axis: Coordinate.from_json(c) for axis, c in value["coordinates"].items()}
        return cls(**groups, coordinates=coordinates, splits=value["splits"], dtype=value["dtype"])


def fingerprint(layout: Layout, provenance: Mapping[str, Any]) -> str:
    """sha256 of layout and provenance: two data sets with the same one may be continued by each other."""
    text = json.dumps([layout.to_json(), dict(provenance)], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _with_range(variable: Variable, statistics: Mapping[str, Statistics] | None) -> Variable:
    if statistics is None or variable.name not in statistics:
        return variable
    seen = statistics[variable.name]
    low, high = float(np.min(seen.low)), float(np.max(seen.high))
    return Variable.from_json({**variable.to_json(), "low": low, "high": high})


def _unknown_variable(layout: Layout, name: str) -> Variable:
    raise DataError(f"no variable named {name!r} in this data", expected=" | ".join(layout.names), got=name)


def _refuse_names(layout: Layout) -> None:
    repeated = sorted({n for n in layout.names if layout.names.count(n) > 1})
    if repeated:
        raise ConfigError(
            "a layout uses a name twice",
            expected="every input, output, parameter and quantity has its own name",
            got=repeated,
            reason="the initial field and the trajectory are both called u",
            fix="call the initial field u0",
        )
    if not layout.names:
        raise ConfigError("a layout without variables", expected="at least one input or output")
    if layout.dtype not in get_args(DType):
        raise ConfigError("unknown dtype of a data set", expected=get_args(DType), got=layout.dtype)


def _refuse_sizes(layout: Layout) -> None:
    for group, variable in layout:
        for axis, size in zip(variable.axes, variable.shape, strict=True):
            points = layout.coordinates.get(axis)
            if points is not None and len(points.values) != size:
                raise ConfigError(
                    f"{group}/{variable.name} does not fit the coordinates of axis {axis!r}",
                    expected=f"{len(points.values)} points",
                    got=f"{size} in shape {variable.shape}",
                )
        if group in ("parameters", "quantities") and variable.shape:
            raise ConfigError(
                f"{group}/{variable.name} is not a scalar",
                expected="shape ()",
                got=variable.shape,
                fix="list a coefficient that varies in space among the inputs",
            )


def _refuse_splits(layout: Layout) -> None:
    empty = {name: n for name, n in layout.splits.items() if n < 1}
    if empty or not layout.splits:
        raise ConfigError(
            "a data set without samples, or with fewer than none",
            expected="at least one sample in all",
            got=empty or "no splits",
            fix='splits={"train": 800, "validation": 100, "test": 100}',
        )
