"""What the formats of others have in common: a data set seen as trajectories, and a file seen as samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from sciml.data.axes import TIME
from sciml.data.dataset import Dataset
from sciml.data.layout import Coordinate, DType, Layout
from sciml.data.shard import refuse_non_finite
from sciml.data.slabs import slabs
from sciml.data.splits import split_counts
from sciml.errors import ConfigError, DataError
from sciml.spec import Variable

Stored: TypeAlias = Any
"""A file, group or array of h5py, whose types do not say which of the three a name leads to."""
SPLITS = {"train": 0.8, "validation": 0.1, "test": 0.1}


@dataclass(frozen=True)
class Trajectories:
    """A data set as fields on one grid, with the initial field as step 0 where the data have it.

    `evolving` have axes (time, *space), `fixed` have (*space); `initial` maps each evolving field to the input that it
    starts from, and `same` to the number that all samples start from; both are empty unless every start is known, and
    then `times` (steps,) begins with 0. `constants` are parameters that are the same in all samples; `left_out` are
    variables that have no place in these formats. `check` is called between pieces, and raises when what was written
    did not reach the disk.
    """

    dataset: Dataset
    rows: np.ndarray
    evolving: tuple[Variable, ...]
    fixed: tuple[Variable, ...]
    initial: Mapping[str, str]
    same: Mapping[str, float]
    space: tuple[str, ...]
    times: np.ndarray
    left_out: tuple[str, ...]
    constants: Mapping[str, float]
    boundary: Mapping[str, Mapping[str, Any]]
    check: Callable[[], None] = lambda: None

    @classmethod
    def of(cls, dataset: Dataset, split: str | None = None) -> Trajectories:
        """The view of all samples, or of one split. Raises ConfigError for data without a field on a grid."""
        layout = dataset.layout
        fields = [v for v in (*layout.inputs, *layout.outputs) if v.spatial]
        if not fields or not layout.outputs[0].spatial:
            raise ConfigError("these data have no field on a grid", expected="an output with space axes", got=dataset)
        space = layout.outputs[0].spatial
        evolving = tuple(v for v in layout.outputs if v.axes == (TIME, *space))
        told = dataset.provenance
        given = {v.name for v in layout.inputs if v.axes == space}
        initial = {v.name: f"{v.name}0" for v in evolving if f"{v.name}0" in given}
        constant = dict(told.get("fixed_initial") or {})
        same = {v.name: float(constant[v.name]) for v in evolving if v.name in constant and v.name not in initial}
        if len(initial) + len(same) < len(evolving):
            initial, same = {}, {}
        fixed = tuple(v for v in fields if v.axes == space and v.name not in initial.values())
        taken = {*(v.name for v in (*evolving, *fixed, *layout.parameters)), *initial.values()}
        times = np.asarray(layout.coordinates[TIME].values) if evolving else np.zeros(1)
        return cls(
            dataset,
            np.arange(len(dataset)) if split is None else dataset.rows(split),
            evolving,
            fixed,
            initial,
            same,
            space,
            np.concatenate([[0.0], times]) if initial or same else times,
            tuple(name for name in layout.names if name not in taken),
            dict(told.get("fixed_parameters") or {}),
            dict(told.get("boundary") or {}),
        )

    @property
    def name(self) -> str:
        """Name of the data set: that of the equation where it is known."""
        return str(self.dataset.provenance.get("equation", "sciml"))

    def points(self, axis: str) -> Coordinate:
        """Coordinates of a space axis."""
        return self.dataset.layout.coordinates[axis]

    def slabs(self, variable: Variable) -> Iterator[tuple[int, np.ndarray]]:
        """(first row, values (rows, [step,] *space)) of a field, some samples at a time."""
        for part in slabs(len(self.rows), 8 * variable.size):
            rows = self.rows[part]
            values = self.dataset.read([variable.name], indices=rows)[variable.name]
            if variable.name in self.initial:
                first = self.dataset.read([self.initial[variable.name]], indices=rows)
                values = np.concatenate([first[self.initial[variable.name]][:, None], values], axis=1)
            elif variable.name in self.same:
                first = np.full_like(values[:, :1], self.same[variable.name])
                values = np.concatenate([first, values], axis=1)
            yield part.start, values
            self.check()

    @property
    def sample_values(self) -> int:
        """Numbers per sample in the file, without those of the grid."""
        starts = [v.size // v.shape[0] for v in self.evolving if v.name in (*self.initial, *self.same)]
        return sum(v.size for v in (*self.evolving, *self.fixed)) + sum(starts)

    def parameter(self, name: str) -> np.ndarray:
        """One parameter of all samples, (samples,)."""
        return self.dataset.read([name], indices=self.rows)[name]


@dataclass(frozen=True)
class Source:
    """A file of another format, open: fields with names, units and axes, and the samples by row.

    `read(rows)` gives name -> (rows, *shape), time before space; `parameters` are numbers per sample (samples,).
    """

    samples: int
    fields: tuple[Variable, ...]
    coordinates: Mapping[str, Coordinate]
    read: Callable[[np.ndarray], dict[str, np.ndarray]]
    parameters: Mapping[str, np.ndarray]
    dtype: str
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def layout(self, splits: Mapping[str, float]) -> Layout:
        """The layout in this project's words: step 0 of an evolving field f is the input f0, the rest the output f."""
        inputs, outputs = [], []
        for v in self.fields:
            if v.axes[:1] != (TIME,):
                (inputs if self._is_input(v) else outputs).append(v)
                continue
            if v.shape[0] < 2:
                raise DataError(f"{v.name} has a single step", expected="at least two", got=v.describe())
            inputs.append(Variable(f"{v.name}0", v.unit, v.shape[1:], v.axes[1:]))
            outputs.append(Variable(v.name, v.unit, (v.shape[0] - 1, *v.shape[1:]), v.axes))
        coordinates = dict(self.coordinates)
        if TIME in coordinates:
            times = coordinates[TIME]
            coordinates[TIME] = Coordinate(times.values[1:], times.unit)
        return Layout(
            inputs=tuple(inputs),
            outputs=tuple(outputs),
            parameters=tuple(Variable(name, role="scalar") for name in self.parameters),
            coordinates=coordinates,
            splits=counts(self.samples, splits),
            dtype=native(self.dtype),
        )

    def arrays(self, rows: np.ndarray, where: str) -> dict[str, np.ndarray]:
        """Samples `rows` by the names of the layout. DataError naming `where`, sample and field for NaN or infinity."""
        found = self.read(rows)
        for v in self.fields:
            refuse_non_finite(v.name, found[v.name], rows, where)
        for name, values in self.parameters.items():
            refuse_non_finite(name, values[rows], rows, where)
        given = {v.name: found[v.name] for v in self.fields if v.axes[:1] != (TIME,)}
        for v in self.fields:
            if v.axes[:1] == (TIME,):
                given[f"{v.name}0"], given[v.name] = found[v.name][:, 0], found[v.name][:, 1:]
        return {**given, **{name: values[rows] for name, values in self.parameters.items()}}

    def _is_input(self, variable: Variable) -> bool:
        """A field without time is an input beside evolving ones, and otherwise unless it is the last one named."""
        return any(v.axes[:1] == (TIME,) for v in self.fields) or variable is not self.fields[-1]


def native(dtype: str) -> DType:
    """What numbers of a file are stored as here, whatever their byte order: integers as float64."""
    found = np.dtype(dtype)
    return "float32" if found.kind == "f" and found.itemsize <= 4 else "float64"


def counts(samples: int, splits: Mapping[str, float]) -> dict[str, int]:
    """Fractions of all samples, the first split taking what rounding leaves over; or counts as they are."""
    whole = all(float(size).is_integer() for size in splits.values()) and sum(splits.values()) > 1
    return split_counts(samples, {name: int(size) if whole else float(size) for name, size in splits.items()})


def axis(points: np.ndarray, unit: str, periodic: bool) -> Coordinate:
    """A coordinate of a file; the period of a periodic one is that of equal cells."""
    values = tuple(float(v) for v in np.asarray(points, np.float64))
    period = (values[-1] - values[0]) * len(values) / (len(values) - 1) if periodic and len(values) > 1 else None
    return Coordinate(values, unit, periodic, period)


def attribute_text(item: Stored, name: str, default: str = "1") -> str:
    """A text among the attributes, whichever way it was stored."""
    value = item.attrs.get(name, default)
    return value.decode() if isinstance(value, bytes) else str(value)


def names_in(item: Stored, name: str) -> list[str]:
    """A list of names among the attributes, whichever way it was stored; empty when it is missing."""
    value = np.atleast_1d(item.attrs.get(name, ()))
    return [v.decode() if isinstance(v, bytes) else str(v) for v in value]


def read_rows(stored: Stored, rows: np.ndarray) -> np.ndarray:
    """Rows of an array in any order; HDF5 itself wants them increasing and without repeats."""
    wanted, back = np.unique(rows, return_inverse=True)
    if len(wanted) and wanted[-1] - wanted[0] + 1 == len(wanted):
        return stored[int(wanted[0]) : int(wanted[-1]) + 1][back]
    return stored[wanted][back]
