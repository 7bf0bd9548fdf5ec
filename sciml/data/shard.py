"""One HDF5 file of samples: the schema as written and as read.

Fields are stored one sample per chunk, with a checksum per chunk (fletcher32) and NaN where nothing was written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from sciml.data.disk import open_hdf5
from sciml.data.layout import SAMPLE_IDS, Layout
from sciml.data.slabs import slabs
from sciml.errors import DataError
from sciml.spec import Variable

FORMAT = "sciml-data"
VERSION = 1
LONG_TEXT = 16_000  # an HDF5 attribute of the oldest file format holds 64 KB; longer texts become data sets


@dataclass(frozen=True)
class Identity:
    """What makes shards belong together: layout and provenance (in the fingerprint), notes (recorded)."""

    layout: Layout
    provenance: Mapping[str, Any]
    notes: Mapping[str, Any]
    fingerprint: str


def fill(
    file: h5py.File,
    identity: Identity,
    ids: Sequence[int],
    arrays: Mapping[str, Sequence[np.ndarray]],
    check: Callable[[], None],
) -> None:
    """Write a shard with samples `ids`; the pieces of `arrays[name]` have shape (n, *variable.shape), in order.

    `check` is called between the pieces.
    """
    write_header(file, identity)
    for group, variable in identity.layout:
        stored = create_variable(file, group, variable, identity.layout.dtype, len(ids))
        pieces, start = arrays[variable.name], 0
        for values in pieces if variable.shape else [np.concatenate(pieces)]:
            stored[start : start + len(values)] = values
            start += len(values)
            check()
    file.create_dataset(SAMPLE_IDS, data=np.asarray(ids, np.int64), chunks=(len(ids),), fletcher32=True)
    file.attrs["complete"] = True


def write_header(file: h5py.File, identity: Identity) -> None:
    """Everything but the samples: attributes, layout, provenance and coordinates."""
    file.attrs["format"] = FORMAT
    file.attrs["format_version"] = VERSION
    file.attrs["fingerprint"] = identity.fingerprint
    file.attrs["float_dtype"] = identity.layout.dtype
    file.create_dataset("layout", data=json.dumps(identity.layout.to_json()))
    for key, value in {**identity.notes, **identity.provenance}.items():
        plain = value if isinstance(value, (str, int, float)) else json.dumps(value, default=str)
        if isinstance(plain, str) and len(plain.encode()) > LONG_TEXT:
            file.create_dataset(f"provenance/{key}", data=plain)
        else:
            file.attrs[key] = plain
    for axis, coordinate in identity.layout.coordinates.items():
        stored = file.create_dataset(f"coordinates/{axis}", data=np.asarray(coordinate.values))
        stored.attrs["unit"] = coordinate.unit
        stored.attrs["periodic"] = coordinate.periodic
        if coordinate.period is not None:
            stored.attrs["period"] = coordinate.period


def create_variable(file: h5py.File, group: str, variable: Variable, dtype: str, samples: int) -> h5py.Dataset:
    """The data set of one variable, (samples, *shape), one sample per chunk; NaN where nothing is written."""
    chunk = (1, *variable.shape) if variable.shape else (samples,)
    options = {"chunks": chunk, "fletcher32": True, "fillvalue": np.nan}
    shape = (samples, *variable.shape)
    stored = file.create_dataset(f"{group}/{variable.name}", shape, dtype=dtype, **options)
    describe_variable(stored, variable)
    return stored


def describe_variable(stored: h5py.Dataset, variable: Variable) -> None:
    """Unit, axes and role as attributes."""
    stored.attrs["unit"] = variable.unit
    stored.attrs["axes"] = ["sample", *variable.axes]
    stored.attrs["role"] = variable.role


def read_ids(path: Path, identity: Identity) -> np.ndarray:
    """Sample ids of the shard at `path`, int64, shape (n,), after checking that it is one of `identity`.

    Raises DataError naming the file (and variable) for another format, another layout or a wrong shape.
    """
    with open_hdf5(path) as file:
        if file.attrs.get("format") != FORMAT or not bool(file.attrs.get("complete", False)):
            raise DataError(
                f"{path} is no finished shard of this format",
                expected=f"attributes format = {FORMAT!r} and complete = true",
                got=dict(file.attrs) or "no attributes",
            )
        if file.attrs.get("fingerprint") != identity.fingerprint:
            raise DataError(
                f"{path} belongs to another data set",
                expected=f"fingerprint {identity.fingerprint}",
                got=file.attrs.get("fingerprint"),
                reason="a shard was copied here from elsewhere: units, grid or problem may differ",
                fix="move the shard away, then give the command that generated the data again",
            )
        ids = np.asarray(_dataset(file, SAMPLE_IDS, path)[...], np.int64)
        for group, variable in identity.layout:
            _check_dataset(_dataset(file, f"{group}/{variable.name}", path), path, variable, len(ids))
        return ids


def check_values(path: Path, identity: Identity) -> None:
    """Read every number of a shard (checksums included); DataError when one is not finite or unreadable."""
    ids = read_ids(path, identity)
    with open_hdf5(path) as file:
        for group, variable in identity.layout:
            for start, values in _slabs(file, f"{group}/{variable.name}", path):
                refuse_non_finite(variable.name, values, ids[start : start + len(values)], str(path))


def refuse_non_finite(name: str, values: np.ndarray, ids: Sequence[int] | np.ndarray, where: str) -> None:
    """DataError naming `where`, sample, variable and count when `values` (samples first) has NaN or inf."""
    bad = finite_count(values) < values[0].size if len(values) else np.zeros(0, bool)
    if bad.any():
        row = int(np.argmax(bad))
        count = int(values[row].size - np.isfinite(values[row]).sum())
        raise DataError(
            f"{name} of sample {ids[row]} in {where} is not finite",
            expected="finite numbers",
            got=f"{count} of {values[row].size} values are NaN or infinite; {int(bad.sum())} such samples",
            reason="the solver blew up, or the values were never written",
            fix="remove these samples, or generate them again",
        )


def finite_count(values: np.ndarray) -> np.ndarray:
    """Number of finite values in each row of `values` (rows, ...): int array (rows,)."""
    return np.isfinite(values).reshape(len(values), -1).sum(axis=1)


def _dataset(file: h5py.File, name: str, path: Path) -> h5py.Dataset:
    found = file.get(name)
    if not isinstance(found, h5py.Dataset):
        raise DataError(f"{path} has no data set {name!r}", expected=name, got=sorted(file))
    return found


def _check_dataset(stored: h5py.Dataset, path: Path, variable: Variable, samples: int) -> None:
    expected = (samples, *variable.shape)
    if stored.shape != expected or stored.attrs.get("unit") != variable.unit:
        raise DataError(
            f"{variable.name} in {path} does not fit the layout",
            expected=f"shape {expected} in {variable.unit}",
            got=f"shape {stored.shape} in {stored.attrs.get('unit')}",
        )


def _slabs(file: h5py.File, name: str, path: Path) -> Iterator[tuple[int, np.ndarray]]:
    stored = _dataset(file, name, path)
    for part in slabs(len(stored), stored.dtype.itemsize * int(np.prod(stored.shape[1:]))):
        try:
            yield part.start, np.asarray(stored[part])
        except OSError as error:
            raise DataError(f"{name} in {path} cannot be read", reason=str(error)) from error
