"""`master.h5`: all shards of a folder seen as one HDF5 file, for people and other tools.

Its arrays are virtual: row i is sample i, read from the shard that holds it, and NaN where no shard does. Names of
shards are relative, so the folder can be moved. HDF5 gives NaN as well for a shard that was lost, and says nothing;
`Dataset.open` and `sciml data check` therefore read the shards and their hashes, never this file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t  # pyright: ignore[reportAttributeAccessIssue] -- no stubs for these modules

from sciml.data import disk
from sciml.data.layout import SAMPLE_IDS
from sciml.data.manifest import Manifest
from sciml.data.shard import describe_variable, write_header
from sciml.spec import Variable

FILE = "master.h5"


def write(folder: Path, manifest: Manifest) -> Path:
    """Write `folder/master.h5` over the shards of `manifest`; StorageError when the disk is full."""
    identity = manifest.identity
    with h5py.File("master", "w", driver="core", backing_store=False, libver="latest") as file:
        write_header(file, identity)
        for group, variable in identity.layout:
            stored = _create_virtual(file, manifest, f"{group}/{variable.name}", variable)
            describe_variable(stored, variable)
        file.create_dataset(SAMPLE_IDS, data=np.arange(identity.layout.samples))
        file.attrs["complete"] = not manifest.missing
        file.attrs["virtual"] = True
        file.flush()
        content = file.id.get_file_image()
    disk.write_atomically(folder / FILE, content)
    return folder / FILE


def _create_virtual(file: h5py.File, manifest: Manifest, name: str, variable: Variable) -> h5py.Dataset:
    """One mapping per shard: a thousand small ones, as h5py's own `VirtualLayout` makes them, take seconds."""
    layout = manifest.identity.layout
    shape = (layout.samples, *variable.shape)
    kind = h5t.py_create(np.dtype(layout.dtype), logical=True)
    created = h5p.create(h5p.DATASET_CREATE)
    created.set_fill_value(np.asarray(np.nan, layout.dtype))
    for shard in manifest.shards:
        for rows, ids in _increasing(np.asarray(shard.ids)):
            source = _selected((len(shard.ids), *variable.shape), rows)
            created.set_virtual(_selected(shape, ids), shard.file.encode(), name.encode(), source)
    links = h5p.create(h5p.LINK_CREATE)
    links.set_create_intermediate_group(True)
    return h5py.Dataset(h5d.create(file.id, name.encode(), kind, h5s.create_simple(shape), created, lcpl=links))


def _increasing(ids: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(rows, ids) in parts whose ids increase: HDF5 pairs what is selected on both sides in increasing order."""
    breaks = np.flatnonzero(np.diff(ids) < 1) + 1
    yield from zip(np.split(np.arange(len(ids)), breaks), np.split(ids, breaks), strict=True)


def _selected(shape: tuple[int, ...], rows: np.ndarray) -> h5s.SpaceID:
    """The rows of an array, as a selection of HDF5."""
    space = h5s.create_simple(shape)
    space.select_none()
    ends = [0, *(np.flatnonzero(np.diff(rows) != 1) + 1).tolist(), len(rows)]
    for first, last in zip(ends[:-1], ends[1:], strict=True):
        corner, block = (int(rows[first]), *(0 for _ in shape[1:])), (last - first, *shape[1:])
        space.select_hyperslab(corner, (1,) * len(shape), block=block, op=h5s.SELECT_OR)
    return space
