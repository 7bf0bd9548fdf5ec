"""The HDF5 layouts of PDEBench (Takamoto et al., NeurIPS 2022, appendix on data formats).

One field: `tensor` (sample, time, x[, y[, z]]) with `t-coordinate`, `x-coordinate`, ...; a coefficient that varies in
space beside it (`nu` of Darcy flow, whose `tensor` has a single time). Several fields: a group per sample, "0000",
"0001", ..., with `data` (time, x[, y[, z]], field) and `grid/t`, `grid/x`, ... Parameters are attributes.
"""

from __future__ import annotations

import warnings

import h5py
import numpy as np

from sciml.data.axes import SPACE, TIME
from sciml.data.exchange.trajectories import Source, Stored, Trajectories, attribute_text, axis, names_in, read_rows
from sciml.data.layout import Coordinate
from sciml.errors import ConfigError, DataError
from sciml.spec import Variable

TENSOR, DATA, GRID = "tensor", "data", "grid"


def recognizes(file: Stored) -> bool:
    """Whether a file has one of these layouts."""
    return TENSOR in file or ("0000" in file and f"0000/{DATA}" in file)


def write(file: Stored, view: Trajectories, dtype: str) -> None:
    """Fill `file`: as `tensor` where there is one field, as a group per sample where there are several."""
    fields = view.evolving or view.fixed[-1:]
    if not view.evolving and len(view.fixed) > 2:
        raise ConfigError("several steady fields have no place in this format", expected="one coefficient, one field")
    for name, value in view.constants.items():
        file.attrs[name] = value
    if len(fields) == 1:
        _write_tensor(file, view, fields[0], dtype)
    else:
        _write_groups(file, view, fields, dtype)


def _write_tensor(file: Stored, view: Trajectories, field: Variable, dtype: str) -> None:
    space = tuple(len(view.points(name).values) for name in view.space)
    shape = (len(view.rows), len(view.times), *space)
    tensor = file.create_dataset(TENSOR, shape, dtype=dtype, chunks=(1, *shape[1:]), fillvalue=np.nan)
    tensor.attrs["field"], tensor.attrs["unit"] = field.name, field.unit
    for start, values in view.slabs(field):
        tensor[start : start + len(values)] = values.reshape(len(values), *shape[1:])
    for other in (v for v in view.fixed if v is not field):
        stored = file.create_dataset(other.name, (len(view.rows), *space), dtype=dtype, chunks=(1, *space))
        stored.attrs["unit"] = other.unit
        for start, values in view.slabs(other):
            stored[start : start + len(values)] = values
    file.create_dataset("t-coordinate", data=view.times, dtype=dtype)
    for name in view.space:
        stored = file.create_dataset(f"{name}-coordinate", data=view.points(name).values, dtype=dtype)
        stored.attrs["unit"], stored.attrs["periodic"] = view.points(name).unit, view.points(name).periodic
    for variable in view.dataset.layout.parameters:
        stored = file.create_dataset(variable.name, data=view.parameter(variable.name), dtype=dtype)
        stored.attrs["unit"] = variable.unit


def _write_groups(file: Stored, view: Trajectories, fields: tuple[Variable, ...], dtype: str) -> None:
    if view.fixed:
        raise ConfigError(
            "a coefficient that varies in space beside several fields has no place in this format",
            got=[v.name for v in view.fixed],
            fix="--to well",
        )
    parameters = {v.name: view.parameter(v.name) for v in view.dataset.layout.parameters}
    for slabs in zip(*(view.slabs(v) for v in fields), strict=True):
        values = np.stack([part for _, part in slabs], axis=-1)
        for row, sample in enumerate(values, start=slabs[0][0]):
            group = file.create_group(f"{row:04d}")
            stored = group.create_dataset(DATA, data=sample, dtype=dtype)
            stored.attrs["fields"] = np.array([v.name for v in fields], dtype=h5py.string_dtype())
            stored.attrs["units"] = np.array([v.unit for v in fields], dtype=h5py.string_dtype())
            group.create_dataset(f"{GRID}/t", data=view.times, dtype=dtype)
            for name in view.space:
                points = group.create_dataset(f"{GRID}/{name}", data=view.points(name).values, dtype=dtype)
                points.attrs["unit"], points.attrs["periodic"] = view.points(name).unit, view.points(name).periodic
            for name, numbers in parameters.items():
                group.attrs[name] = float(numbers[row])


def read(file: Stored) -> Source:
    """The samples of a file in either layout. Raises DataError for what does not fit."""
    return _read_tensor(file) if TENSOR in file else _read_groups(file)


def _read_tensor(file: Stored) -> Source:
    tensor: Stored = file[TENSOR]
    space = [name for name in SPACE if f"{name}-coordinate" in file][: tensor.ndim - 2]
    if tensor.ndim != 2 + len(space):
        raise DataError(
            f"the axes of {TENSOR} in {file.filename} do not fit its coordinates",
            expected=f"(sample, time, {', '.join(space)})",
            got=tensor.shape,
        )
    coordinates = {name: _points(file[f"{name}-coordinate"]) for name in space}
    times = _times(file.get("t-coordinate"), tensor.shape[1], file.filename)
    steady = tensor.shape[1] == 1
    field, unit = attribute_text(tensor, "field", "u"), attribute_text(tensor, "unit")
    grid = tensor.shape[2:]
    found = [name for name in file if name != TENSOR and not name.endswith("-coordinate")]
    beside = {name: file[name] for name in found if file[name].shape == (tensor.shape[0], *grid)}
    numbers = {name: np.asarray(file[name][...], np.float64) for name in found if file[name].shape == tensor.shape[:1]}
    whole = Variable(field, unit, grid if steady else tensor.shape[1:], tuple(space) if steady else (TIME, *space))
    others = tuple(Variable(n, attribute_text(s, "unit"), grid, tuple(space)) for n, s in beside.items())

    def rows(indices: np.ndarray) -> dict[str, np.ndarray]:
        values = read_rows(tensor, indices)
        given = {name: read_rows(stored, indices) for name, stored in beside.items()}
        return {**given, field: values[:, 0] if steady else values}

    return Source(
        tensor.shape[0],
        (*others, whole),
        coordinates if steady else {TIME: times, **coordinates},
        rows,
        {**_constants(file, tensor.shape[0]), **numbers},
        str(tensor.dtype),
    )


def _read_groups(file: Stored) -> Source:
    keys = sorted((name for name in file if DATA in file[name]), key=lambda name: (len(name), name))
    first: Stored = file[f"{keys[0]}/{DATA}"]
    space = [name for name in SPACE if f"{keys[0]}/{GRID}/{name}" in file]
    expected = 2 + len(space)
    if first.ndim != expected:
        raise DataError(
            f"{keys[0]}/{DATA} has other axes", expected=f"(time, {', '.join(space)}, field)", got=first.shape
        )
    names = names_in(first, "fields") or (["u"] if first.shape[-1] == 1 else [f"u_{i}" for i in range(first.shape[-1])])
    units = names_in(first, "units") or ["1"] * len(names)
    shape, axes = first.shape[:-1], (TIME, *space)
    coordinates = {TIME: _times(file[f"{keys[0]}/{GRID}/t"], shape[0], file.filename)}
    coordinates |= {name: _points(file[f"{keys[0]}/{GRID}/{name}"]) for name in space}

    _refuse_other_grids(file, keys, space)

    def rows(indices: np.ndarray) -> dict[str, np.ndarray]:
        values = np.stack([file[f"{keys[int(i)]}/{DATA}"][...] for i in indices])
        return {name: values[..., number] for number, name in enumerate(names)}

    attributes = {key: np.array([file[k].attrs[key] for k in keys]) for key in file[keys[0]].attrs}
    numbers = {name: values.astype(np.float64) for name, values in attributes.items() if values.dtype.kind in "fiu"}
    return Source(
        len(keys),
        tuple(Variable(name, unit, shape, axes) for name, unit in zip(names, units, strict=True)),
        coordinates,
        rows,
        {**_constants(file, len(keys)), **numbers},
        str(first.dtype),
    )


def _refuse_other_grids(file: Stored, keys: list[str], space: list[str]) -> None:
    """DataError unless all samples have the shape, the points and the times of the first one."""
    places = [f"{GRID}/{name}" for name in ("t", *space)]
    shape, known = file[f"{keys[0]}/{DATA}"].shape, {place: file[f"{keys[0]}/{place}"][...] for place in places}
    for key in keys[1:]:
        if file[f"{key}/{DATA}"].shape != shape:
            raise DataError(
                f"sample {key} of {file.filename} has another shape than sample {keys[0]}",
                expected=f"{shape}, one grid for all samples",
                got=file[f"{key}/{DATA}"].shape,
                fix="one file for each grid",
            )
        for place, points in known.items():
            other = file[f"{key}/{place}"][...]
            if not np.array_equal(other, points):
                raise DataError(
                    f"{place} of sample {key} of {file.filename} is not that of sample {keys[0]}",
                    expected=f"one grid for all samples: {_ends(points)}",
                    got=_ends(other),
                    reason="samples on grids of their own cannot share one array",
                    fix="one file for each grid, or interpolate to one",
                )


def _ends(points: np.ndarray) -> str:
    return f"{len(points)} points from {points.flat[0]:g} to {points.flat[-1]:g}" if points.size else "no points"


def _constants(file: Stored, samples: int) -> dict[str, np.ndarray]:
    """Root attributes that are numbers: parameters of all samples."""
    numbers = {k: np.asarray(v) for k, v in file.attrs.items()}
    return {
        k: np.full(samples, float(v.reshape(()))) for k, v in numbers.items() if v.dtype.kind in "fiu" and v.size == 1
    }


def _points(stored: Stored) -> Coordinate:
    return axis(stored[...], attribute_text(stored, "unit", "m"), bool(stored.attrs.get("periodic", False)))


def _times(stored: Stored, steps: int, where: str) -> Coordinate:
    """The times of the steps; published files of PDEBench list one time more than there are steps."""
    if stored is None:
        return axis(np.arange(steps), "1", False)
    values = stored[...]
    if len(values) == steps + 1:
        warnings.warn(f"{where} lists {steps + 1} times for {steps} steps; the last one is not used", stacklevel=2)
    elif len(values) != steps:
        raise DataError(f"{where} has other times than steps", expected=f"{steps} times", got=len(values))
    return axis(values[:steps], "s", False)
