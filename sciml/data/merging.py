"""All shards of a data set into one HDF5 file, a few samples in memory at a time."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np

from sciml.data import disk
from sciml.data.dataset import Dataset
from sciml.data.layout import SAMPLE_IDS
from sciml.data.manifest import described
from sciml.data.onefile import HASH, MANIFEST, content_hash, refuse_existing, verified
from sciml.data.shard import create_variable, write_header
from sciml.data.sink import write_hdf5
from sciml.errors import DataError, SciMLError


@dataclass(frozen=True)
class Merged:
    """One finished file: its samples and size, the sha256 of the file and that of what it holds."""

    path: Path
    samples: int
    bytes: int
    sha256: str
    content_sha256: str


def merge(folder: str | Path, file: str | Path) -> Merged:
    """Write the data of `folder` into one HDF5 file, samples in the order of their ids.

    Every shard is hashed before; what is in the file is read again and hashed, and the file removed if it is not the
    same. `content_sha256` depends on layout, provenance and values alone; with the same code version, the bits of the
    file neither depend on ranks and interruptions. Raises what `Dataset.open` raises, CannotCreateError
    for a file that is there, StorageError when the disk is full.
    """
    target = Path(file)
    refuse_existing(target)
    dataset = Dataset.open(folder, memory=0)
    identity = dataset.identity
    if identity is None:
        raise DataError(f"{folder} was not made by `sciml generate`", expected="a folder of shards")
    disk.refuse_no_room(target, len(dataset) * identity.layout.sample_bytes)
    rows = np.arange(len(dataset))
    content = content_hash(identity, lambda name: dataset.slabs(name, rows))

    def fill(stored: h5py.File, check: Callable[[], None]) -> None:
        write_header(stored, identity)
        stored.create_dataset(MANIFEST, data=json.dumps(described(identity), default=str))
        for group, variable in identity.layout:
            array = create_variable(stored, group, variable, identity.layout.dtype, len(rows))
            start = 0
            for values in dataset.slabs(variable.name, rows):
                array[start : start + len(values)] = values
                start += len(values)
                check()
        stored.create_dataset(SAMPLE_IDS, data=rows, chunks=rows.shape, fletcher32=True)
        stored.attrs[HASH] = content
        stored.attrs["complete"] = True

    written = write_hdf5(target, fill)
    try:
        verified(target)
    except SciMLError:
        target.unlink()
        raise
    return Merged(target, len(rows), written.bytes, written.sha256, content)
