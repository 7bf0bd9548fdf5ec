"""A data set in one HDF5 file: how it is recognized and verified.

The file has the objects of a shard (`docs/data-format.md`) and two more: `/manifest`, the manifest without shards, and
the attribute `content_sha256`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from sciml.data import disk
from sciml.data.manifest import identity_of
from sciml.data.shard import Identity, read_ids
from sciml.data.slabs import slabs
from sciml.data.storage import HDF5Storage, Piece
from sciml.errors import CannotCreateError, DataError, IntegrityError

HASH, MANIFEST = "content_sha256", "manifest"
_verified: dict[Path, tuple[int, int]] = {}  # path -> (mtime_ns, size), within this process only


def verified(file: Path) -> tuple[Identity, HDF5Storage]:
    """What `sciml data merge` wrote; every number is read and hashed first (again only after a change).

    Raises DataError (cut off, another format, samples missing) or IntegrityError (altered).
    """
    try:
        identity = identity_of(told(file), file)
    except (KeyError, ValueError, TypeError) as error:
        raise _unknown(file, error) from error
    ids = tuple(int(i) for i in read_ids(file, identity))
    if ids != tuple(range(identity.layout.samples)):
        raise DataError(f"{file} lacks samples", expected=f"{identity.layout.samples} in order", got=len(ids))
    storage = HDF5Storage([Piece(file, ids, {v.name: f"{group}/{v.name}" for group, v in identity.layout})])
    status = file.stat()
    if _verified.get(file.resolve()) != (status.st_mtime_ns, status.st_size):
        _refuse_altered(file, content_hash(identity, lambda name: _slabs(storage, identity, name)))
        _verified[file.resolve()] = (status.st_mtime_ns, status.st_size)
    return identity, storage


def is_one_file(file: Path) -> bool:
    """Whether this is a file that `sciml data merge` wrote."""
    if not file.is_file() or not h5py.is_hdf5(file):
        return False
    with disk.open_hdf5(file) as stored:
        return HASH in stored.attrs


def told(file: Path) -> dict[str, Any]:
    """What the file says about itself, not verified: the manifest without shards; DataError when it says nothing."""
    try:
        with disk.open_hdf5(file) as stored:
            found = stored[MANIFEST]
            assert isinstance(found, h5py.Dataset)
            return json.loads(found[()])
    except (KeyError, ValueError, TypeError, AssertionError) as error:
        raise _unknown(file, error) from error


def content_hash(identity: Identity, pieces: Callable[[str], Iterable[np.ndarray]]) -> str:
    """sha256 of layout, provenance and all values, by variable and then by sample; notes do not count."""
    digest = hashlib.sha256(identity.fingerprint.encode())
    for name in identity.layout.names:
        digest.update(f"{name};".encode())
        for values in pieces(name):
            digest.update(np.ascontiguousarray(values, identity.layout.dtype).data)
    return digest.hexdigest()


def refuse_existing(path: Path) -> None:
    """CannotCreateError for a file that is there."""
    if path.exists():
        raise CannotCreateError(f"{path} is already there", fix=f"another name, or delete {path}")


def _slabs(storage: HDF5Storage, identity: Identity, name: str) -> Iterable[np.ndarray]:
    for part in slabs(identity.layout.samples, 8 * identity.layout.variable(name).size):
        yield storage.rows(name, np.arange(part.start, part.stop))


def _unknown(file: Path, error: Exception) -> DataError:
    return DataError(
        f"{file} is not a data set in one file",
        expected=f"what `sciml data merge` writes, with /{MANIFEST}",
        reason=f"{type(error).__name__}: {error}",
        fix="give the folder of the shards",
    )


def _refuse_altered(file: Path, found: str) -> None:
    with disk.open_hdf5(file) as stored:
        expected = stored.attrs.get(HASH)
    if found != expected:
        raise IntegrityError(
            f"{file} was altered",
            expected=f"{HASH} {expected}",
            got=found,
            reason="damaged storage or a changed file: its numbers cannot be trusted",
            fix="merge the shards again",
        )
