"""A user's own arrays as a data set: names, shapes and axis order checked before anything is trained on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sciml.data import axes as axis_names
from sciml.data import disk, onefile
from sciml.data.axes import CHANNEL, TIME
from sciml.data.containers import Container, HDF5Container, native_dtype, open_container
from sciml.data.dataset import MEMORY_BYTES, Dataset
from sciml.data.layout import Coordinate, Layout
from sciml.data.remote import is_remote, local_file
from sciml.data.shard import refuse_non_finite
from sciml.data.splits import refuse_leaks, sample_hashes, split_rows
from sciml.data.storage import ArrayStorage, HDF5Storage, Piece, Storage
from sciml.errors import ConfigError, DataError
from sciml.registry import suggestion
from sciml.spec import Variable

SPLITS = {"train": 0.8, "validation": 0.1, "test": 0.1}
EXACT_INTEGER = 1 << 53


@dataclass(frozen=True)
class _Array:
    """One array of the file: group in the layout, axes and shape of one sample, dtype it is used as."""

    name: str
    group: str
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: np.dtype

    def variables(self, units: Mapping[str, str]) -> list[tuple[Variable, int | None]]:
        """(variable, channel) pairs: one without a channel axis, else one per channel, named `name_0`, ..."""
        base = self.name.rsplit("/", 1)[-1]
        role = "field" if self.shape else "scalar"
        if CHANNEL not in self.axes:
            return [(Variable(base, units.get(base, "1"), self.shape, self.axes, role=role), None)]
        return [
            (Variable(f"{base}_{c}", units.get(base, "1"), self.shape[:-1], self.axes[:-1], role=role), c)
            for c in range(self.shape[-1])
        ]


def open_arrays(
    file: str | Path,
    *,
    input: str | Sequence[str] = "input",
    output: str | Sequence[str] = "output",
    parameters: str | Sequence[str] = (),
    coordinates: Mapping[str, str | Sequence[float]] | None = None,
    periodic: Sequence[str] = (),
    units: Mapping[str, str] | None = None,
    axes: Mapping[str, Sequence[str]] | None = None,
    splits: Mapping[str, float] | None = None,
    seed: int = 0,
    memory: int = MEMORY_BYTES,
) -> Dataset:
    """A `Dataset` over arrays in an npz or HDF5 file, or in one at an address (`s3://bucket/key`).

    `input`, `output`: names of arrays `(sample, [time,] x, [y, [z,]] [channel])`; `parameters`: names of
    arrays `(sample,)`. `coordinates` gives the points of each axis ("time", "x", ...), as numbers or as the
    name of a 1D array in the file; axes without them are numbered 0, 1, 2, ... Where a shape can be read in
    two ways, `axes` says which: `{"u": ("time", "x")}`. A channel axis is split into fields `u_0`, `u_1`.
    `units` maps variables and axes to units; those stated in the file must agree. `splits` are fractions or
    counts, drawn at random by `seed`; without them those that a merged file has, else 0.8, 0.1, 0.1. Raises
    DataError or ConfigError naming array and row for whatever does not fit: a missing name, another number of
    samples, NaN, objects, the same sample in two splits.
    """
    names = {"inputs": _tuple(input), "outputs": _tuple(output), "parameters": _tuple(parameters)}
    path = local_file(str(file)) if is_remote(file) else Path(file)
    with open_container(path) as container:
        points = _coordinates(container, coordinates or {})
        arrays, samples = _arrays(container, names, {a: len(p) for a, p in points.items()}, axes or {})
        stated = _units(container, arrays, points, units or {})
        rows = (None if splits else _splits_of(path)) or split_rows(samples, splits or SPLITS, seed)
        layout = _layout(arrays, points, periodic, stated, rows)
        storage = _storage(container, arrays, layout, samples)
    origin = {"file": str(file), "fingerprint": disk.sha256(path), "split_seed": seed}
    dataset = Dataset(layout, storage, name=str(file), splits=rows, provenance=origin, memory=memory)
    _check_content(dataset)
    return dataset


def _splits_of(path: Path) -> dict[str, np.ndarray] | None:
    """The splits of a file that `sciml data merge` wrote; None for any other file."""
    if not onefile.is_one_file(path):
        return None
    layout = Layout.from_json(onefile.told(path)["layout"])
    return {name: np.asarray(layout.ids(name), np.int64) for name in layout.splits}


def _tuple(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _coordinates(container: Container, given: Mapping[str, str | Sequence[float]]) -> dict[str, tuple[float, ...]]:
    points = {}
    for axis, values in given.items():
        if isinstance(values, str):
            container.require(values, f"coordinates of {axis}")
            values = container.load(values)
        array = np.asarray(values)
        if array.ndim != 1 or array.dtype.kind not in "fiu":
            raise DataError(
                f"the coordinates of {axis} are no list of points",
                expected="numbers of shape (n,), the points along this one axis",
                got=f"{array.dtype} of shape {array.shape}",
                fix=f'coordinates={{"{axis}": mesh[:, 0]}} for a mesh',
            )
        points[axis] = tuple(float(v) for v in array)
    return points


def _arrays(
    container: Container,
    names: Mapping[str, tuple[str, ...]],
    sizes: Mapping[str, int],
    stated: Mapping[str, Sequence[str]],
) -> tuple[list[_Array], int]:
    """Every array with its axes, and the number of samples they share."""
    _refuse_choice(names)
    found: dict[str, tuple[str, tuple[int, ...], np.dtype]] = {}
    for group, members in names.items():
        for name in members:
            container.require(name, group.removesuffix("s"))
            shape, dtype = container.describe(name)
            found[name] = (group, shape, native_dtype(dtype, name, container.path))
    samples = _sample_count({name: shape for name, (_, shape, _) in found.items()}, container.path)
    shapes = {group: {n: found[n][1][1:] for n in members} for group, members in names.items()}
    _refuse_wide_parameters(shapes["parameters"])
    space = axis_names.find_space(sizes, shapes["inputs"], shapes["outputs"])
    arrays = []
    for name, (group, shape, dtype) in found.items():
        stated_axes = tuple(stated[name]) if name in stated else None
        axes = axis_names.axes_of(name, shape[1:], space, stated_axes)
        arrays.append(_Array(name, group, axes, shape[1:], dtype))
    return arrays, samples


def _refuse_choice(names: Mapping[str, tuple[str, ...]]) -> None:
    if not names["inputs"] + names["parameters"] or not names["outputs"]:
        raise ConfigError("nothing to learn", expected="at least one input or parameter and one output", got=names)
    chosen = [name for members in names.values() for name in members]
    if len(set(chosen)) < len(chosen):
        raise ConfigError("an array is used twice", expected="each as input, output or parameter", got=names)


def _refuse_wide_parameters(shapes: Mapping[str, tuple[int, ...]]) -> None:
    for name, shape in shapes.items():
        if shape:
            raise DataError(
                f"parameter {name} has more than one number per sample",
                expected="shape (sample,)",
                got=f"(sample, {', '.join(map(str, shape))})",
                fix="one array for each parameter, or list a coefficient that varies in space as an input",
            )


def _sample_count(shapes: Mapping[str, tuple[int, ...]], path: Path) -> int:
    counts = {name: shape[0] if shape else 0 for name, shape in shapes.items()}
    if len(set(counts.values())) > 1 or 0 in counts.values():
        raise DataError(
            f"the arrays in {path} have different numbers of samples",
            expected="the same number on the first axis of each, at least 1",
            got=", ".join(f"{name} {shapes[name]}" for name in counts),
            reason="the sample axis must come first (MATLAB files come with reversed axes)",
            fix="numpy.moveaxis(a, -1, 0)",
        )
    return next(iter(counts.values()))


def _units(
    container: Container, arrays: list[_Array], points: Mapping[str, object], given: Mapping[str, str]
) -> dict[str, str]:
    """Units by variable and axis name; those in the file count, and may not contradict those given."""
    names = {array.name.rsplit("/", 1)[-1]: array.name for array in arrays}
    known = [*names, *points, TIME, *(a for array in arrays for a in array.axes)]
    for name in given:
        if name not in known:
            raise ConfigError(
                f"a unit for {name!r}, which is no variable or axis{suggestion(name, known)}",
                expected=" | ".join(dict.fromkeys(known)),
                got=name,
            )
    units = dict(given)
    for short, name in names.items():
        in_file = container.unit(name)
        if in_file is not None and units.setdefault(short, in_file) != in_file:
            raise DataError(
                f"the unit of {name} in {container.path} is another one",
                expected=units[short],
                got=in_file,
                fix="convert the values, or state the unit of the file",
            )
    return units


def _layout(
    arrays: list[_Array],
    points: Mapping[str, tuple[float, ...]],
    periodic: Sequence[str],
    units: Mapping[str, str],
    rows: Mapping[str, np.ndarray],
) -> Layout:
    sizes = {a: n for array in arrays for a, n in zip(array.axes, array.shape, strict=True) if a != CHANNEL}
    unknown = [axis for axis in periodic if axis not in sizes or axis == TIME]
    if unknown:
        raise ConfigError("a periodic axis that is not in the data", expected=" | ".join(sizes), got=unknown)
    coordinates = {}
    for axis, size in sizes.items():
        values = points.get(axis, tuple(range(size)))
        wraps = axis in periodic
        period = (values[-1] - values[0]) * size / (size - 1) if wraps and size > 1 else None
        coordinates[axis] = Coordinate(values, units.get(axis, "1"), wraps, period)
    groups: dict[str, list[Variable]] = {"inputs": [], "outputs": [], "parameters": []}
    for array in arrays:
        groups[array.group] += [variable for variable, _ in array.variables(units)]
    return Layout(
        inputs=tuple(groups["inputs"]),
        outputs=tuple(groups["outputs"]),
        parameters=tuple(groups["parameters"]),
        coordinates=coordinates,
        splits={name: len(chosen) for name, chosen in rows.items()},
        dtype="float64" if any(array.dtype == np.float64 for array in arrays) else "float32",
    )


def _storage(container: Container, arrays: list[_Array], layout: Layout, samples: int) -> Storage:
    """HDF5 stays on disk and is read as needed; npz, which can only be read whole, comes into memory."""
    parts = [(v.name, array.name, c) for array in arrays for v, c in array.variables({})]
    if isinstance(container, HDF5Container):
        datasets = {name: stored for name, stored, _ in parts}
        channels = {name: c for name, _, c in parts if c is not None}
        return HDF5Storage([Piece(container.path, tuple(range(samples)), datasets, channels)])
    whole = {array.name: container.load(array.name) for array in arrays}
    picked = {n: whole[stored] if c is None else whole[stored][..., c] for n, stored, c in parts}
    _refuse_large_integers(picked, container.path)
    return ArrayStorage({name: np.ascontiguousarray(v, layout.dtype) for name, v in picked.items()})


def _refuse_large_integers(arrays: Mapping[str, np.ndarray], path: Path) -> None:
    for name, values in arrays.items():
        if values.dtype.kind in "iu" and max(int(values.max()), -int(values.min())) > EXACT_INTEGER:
            raise DataError(f"{name} in {path} holds integers beyond 2^53", expected="numbers exact in float64")


def _check_content(dataset: Dataset) -> None:
    """Read everything once: all finite, and no sample in two splits."""
    rows = np.arange(len(dataset))
    for _, variable in dataset.layout:
        start = 0
        for slab in dataset.slabs(variable.name, rows):
            refuse_non_finite(variable.name, slab, rows[start:], dataset.name)
            _refuse_large_integers({variable.name: slab}, Path(dataset.name))
            start += len(slab)
    asked = [v.name for v in (*dataset.layout.inputs, *dataset.layout.parameters)]
    hashes = sample_hashes((dataset.slabs(name, rows) for name in asked), len(dataset))
    refuse_leaks(hashes, dataset.splits, dataset.name)
