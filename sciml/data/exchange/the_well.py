"""The HDF5 schema of The Well (Ohana et al., NeurIPS 2024; `docs/data_format.md` of PolymathicAI/the_well).

Root attributes `dataset_name`, `grid_type`, `n_spatial_dims`, `n_trajectories`, `simulation_parameters`; groups
`dimensions`, `boundary_conditions`, `scalars`, and fields by their tensor order, `t0_fields` to `t2_fields`, with axes
(trajectory, step, x, y, z[, D[, D]]) and the attributes `dim_varying`, `sample_varying`, `time_varying`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import h5py
import numpy as np

from sciml.data.axes import TIME
from sciml.data.exchange.trajectories import Source, Stored, Trajectories, attribute_text, axis, names_in, read_rows
from sciml.data.layout import Coordinate
from sciml.errors import DataError
from sciml.spec import Variable

ORDERS = {"t0_fields": 0, "t1_fields": 1, "t2_fields": 2}
WALLS = ("dirichlet", "neumann", "robin")


def recognizes(file: Stored) -> bool:
    """Whether a file says that it is of this schema."""
    return "dataset_name" in file.attrs and "t0_fields" in file and "dimensions" in file


def write(file: Stored, view: Trajectories, dtype: str) -> None:
    """Fill `file` with the trajectories, in `dtype`."""
    file.attrs["dataset_name"] = view.name
    file.attrs["grid_type"] = "cartesian"
    file.attrs["n_spatial_dims"] = len(view.space)
    file.attrs["n_trajectories"] = len(view.rows)
    file.attrs["simulation_parameters"] = _texts(view.constants)
    for name, value in view.constants.items():
        file.attrs[name] = value
    _write_dimensions(file.create_group("dimensions"), view, dtype)
    _write_boundaries(file.create_group("boundary_conditions"), view, dtype)
    _write_scalars(file.create_group("scalars"), view, dtype)
    fields = (*view.evolving, *view.fixed)
    for group, order in ORDERS.items():
        stored = file.create_group(group)
        stored.attrs["field_names"] = _texts([v.name for v in fields] if order == 0 else [])
    for variable in fields:
        _write_field(file["t0_fields"], view, variable, dtype)


def _write_dimensions(group: Stored, view: Trajectories, dtype: str) -> None:
    group.attrs["spatial_dims"] = _texts(view.space)
    times = group.create_dataset("time", data=view.times, dtype=dtype)
    times.attrs["sample_varying"] = False
    for name in view.space:
        stored = group.create_dataset(name, data=np.asarray(view.points(name).values), dtype=dtype)
        stored.attrs["sample_varying"] = False
        stored.attrs["time_varying"] = False
        stored.attrs["unit"] = view.points(name).unit


def _write_boundaries(group: Stored, view: Trajectories, dtype: str) -> None:
    """One entry per axis and kind of condition; `values` are NaN where the condition sets none."""
    for name in view.space:
        points = view.points(name)
        kinds = {"PERIODIC": ((0, np.nan), (-1, np.nan))} if points.periodic else _faces(view, name)
        for kind, places in kinds.items():
            stored = group.create_group(f"{name}_{kind.lower()}")
            stored.attrs["associated_dims"] = _texts([name])
            stored.attrs["associated_fields"] = _texts([])
            stored.attrs["bc_type"] = kind
            stored.attrs["sample_varying"] = False
            stored.attrs["time_varying"] = False
            mask = np.zeros(len(points.values), bool)
            mask[[place for place, _ in places]] = True
            stored.create_dataset("mask", data=mask)
            stored.create_dataset("values", data=np.array([value for _, value in places]), dtype=dtype)


def _faces(view: Trajectories, name: str) -> dict[str, tuple[tuple[int, float], ...]]:
    """Kind -> ((index, value), ...) of the two ends of a bounded axis; open where nothing is known."""
    found: dict[str, tuple[tuple[int, float], ...]] = {}
    for place, side in ((0, "-"), (-1, "+")):
        face: Mapping[str, Any] = view.boundary.get(f"{name}{side}", {})
        kind = "WALL" if face.get("kind") in WALLS else "OPEN"
        value = face.get("value") if face.get("kind") == "dirichlet" else None
        found[kind] = (*found.get(kind, ()), (place, float(value) if isinstance(value, int | float) else np.nan))
    return found


def _write_scalars(group: Stored, view: Trajectories, dtype: str) -> None:
    varying = [v.name for v in view.dataset.layout.parameters]
    group.attrs["field_names"] = _texts([*view.constants, *varying])
    for name in (*view.constants, *varying):
        values = np.asarray(view.constants[name]) if name in view.constants else view.parameter(name)
        stored = group.create_dataset(name, data=values, dtype=dtype)
        stored.attrs["sample_varying"] = name not in view.constants
        stored.attrs["time_varying"] = False


def _write_field(group: Stored, view: Trajectories, variable: Variable, dtype: str) -> None:
    evolves = variable.axes[:1] == (TIME,)
    steps = (len(view.times),) if evolves else ()
    shape = (len(view.rows), *steps, *(len(view.points(name).values) for name in view.space))
    stored = group.create_dataset(variable.name, shape, dtype=dtype, chunks=(1, *shape[1:]), fillvalue=np.nan)
    for start, values in view.slabs(variable):
        stored[start : start + len(values)] = values
    stored.attrs["dim_varying"] = np.ones(len(view.space), bool)
    stored.attrs["sample_varying"] = True
    stored.attrs["time_varying"] = evolves
    stored.attrs["unit"] = variable.unit


def read(file: Stored) -> Source:
    """The samples of a file of this schema. Raises DataError for what it does not fit, naming the place."""
    dimensions = _group(file, "dimensions")
    space = names_in(dimensions, "spatial_dims")
    coordinates = {TIME: axis(_values(dimensions, TIME), "s", False)}
    periodic = _periodic(_group(file, "boundary_conditions"))
    for name in space:
        unit = attribute_text(dimensions[name], "unit", "m")
        coordinates[name] = axis(_values(dimensions, name), unit, name in periodic)
    parts = list(_parts(file, space, coordinates))
    samples = int(file.attrs["n_trajectories"])

    def rows(indices: np.ndarray) -> dict[str, np.ndarray]:
        return {v.name: _read(stored, v, indices, component, len(space)) for v, stored, component in parts}

    if all(v.axes[:1] != (TIME,) for v, _, _ in parts):
        del coordinates[TIME]
    return Source(
        samples,
        tuple(v for v, _, _ in parts),
        coordinates,
        rows,
        _scalars(_group(file, "scalars"), samples),
        str(parts[0][1].dtype) if parts else "float32",
        {"dataset_name": attribute_text(file, "dataset_name", "")},
    )


def _parts(file: Stored, space: list[str], coordinates: Mapping[str, Coordinate]) -> Any:
    """(variable, stored array, component) of each scalar field, and of each component of a vector or tensor."""
    for group, order in ORDERS.items():
        for name in names_in(_group(file, group), "field_names"):
            stored = file[group][name]
            if not all(stored.attrs["dim_varying"]):
                raise DataError(f"{group}/{name} does not vary along every axis", expected="a field on the whole grid")
            axes = (*((TIME,) if stored.attrs["time_varying"] else ()), *space)
            shape = tuple(len(coordinates[a].values) for a in axes)
            expected = (*((int(file.attrs["n_trajectories"]),) if stored.attrs["sample_varying"] else ()), *shape)
            if stored.shape[: len(expected)] != expected:
                raise DataError(f"{group}/{name} has another shape", expected=expected, got=stored.shape)
            for component in itertools.product(range(len(space)), repeat=order):
                suffix = "".join(["_", *(space[i] for i in component)]) if component else ""
                yield Variable(f"{name}{suffix}", attribute_text(stored, "unit"), shape, axes), stored, component


def _read(stored: Stored, variable: Variable, rows: np.ndarray, component: tuple, dims: int) -> np.ndarray:
    if stored.attrs["sample_varying"]:
        values = read_rows(stored, rows)
    else:
        values = np.broadcast_to(stored[...], (len(rows), *stored.shape))
    tensor = values.reshape(*values.shape[: 1 + len(variable.axes)], *(dims for _ in component))
    return tensor[(..., *component)]


def _scalars(group: Stored, samples: int) -> dict[str, np.ndarray]:
    """Scalars per sample; what varies in time is no parameter and is left out."""
    found = {}
    for name in names_in(group, "field_names"):
        stored = group[name]
        if not stored.attrs["time_varying"]:
            values = np.asarray(stored[...], np.float64)
            found[name] = values if stored.attrs["sample_varying"] else np.full(samples, float(values.reshape(-1)[0]))
    return found


def _periodic(group: Stored) -> set[str]:
    entries = [entry for entry in group.values() if attribute_text(entry, "bc_type").upper() == "PERIODIC"]
    return {name for entry in entries for name in names_in(entry, "associated_dims")}


def _group(file: Stored, name: str) -> Stored:
    found = file.get(name)
    if not isinstance(found, h5py.Group):
        raise DataError(f"{file.filename} has no group {name}", expected="a file of The Well", got=sorted(file))
    return found


def _values(group: Stored, name: str) -> np.ndarray:
    stored = group[name]
    if bool(stored.attrs.get("sample_varying", False)):
        raise DataError(f"the points of {name} differ from sample to sample", expected="one grid for all samples")
    return stored[...]


def _texts(values: Any) -> np.ndarray:
    """A list of texts, possibly empty, as an attribute that h5py gives back as texts."""
    return np.array(list(values), dtype=h5py.string_dtype())
