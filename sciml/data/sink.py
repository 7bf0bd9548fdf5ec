"""HDF5 files written straight to disk: whole or not at all, hashed on the way, and safe on a full disk."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py

from sciml.data import disk

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

SYNC_BYTES = 16 << 20
Fill = Callable[[h5py.File, Callable[[], None]], None]


@dataclass(frozen=True)
class Written:
    """A finished file: its size and sha256."""

    bytes: int
    sha256: str


def write_hdf5(path: Path, fill: Fill, needed: int | None = None) -> Written:
    """Write an HDF5 file as `.part`, sync it, rename it. The disk works while HDF5 does, and while the hash is made.

    `fill(file, check)` writes, and calls `check` between large pieces: it raises when the disk is full. Raises
    StorageError (with the bytes `needed`) when it is, PermissionDeniedError or CannotCreateError when the file cannot
    be made; the unfinished `.part` is removed then.
    """
    part = path.with_name(path.name + ".part")
    try:
        with open(part, "wb+", buffering=0) as raw, ThreadPoolExecutor(1) as background:
            patient = _Patient(raw, background)
            with h5py.File(patient, "w") as stored:
                fill(stored, patient.check)
            patient.syncing.result()  # the system tells an error of the disk once, to whoever syncs first
            patient.check()
            synced = background.submit(os.fsync, raw.fileno())
            raw.seek(0)
            written = Written(os.fstat(raw.fileno()).st_size, hashlib.file_digest(raw, "sha256").hexdigest())
            synced.result()
        os.replace(part, path)
        disk.sync_folder(path.parent)
        return written
    except OSError as error:
        raise disk.explain(error, path, needed=needed) from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


class _Patient:
    """A file that keeps the first error of the disk for `check`, and afterwards takes everything and keeps nothing.

    HDF5 must not be told: what it cannot write when it is closed ends the process with a segmentation fault.
    """

    def __init__(self, raw: io.FileIO, background: ThreadPoolExecutor) -> None:
        self.raw, self.background = raw, background
        self.error: OSError | None = None
        self.unsynced, self.syncing = 0, Future[None]()
        self.syncing.set_result(None)

    def check(self) -> None:
        """Raise the first error of the disk, if there was one."""
        if self.error is not None:
            raise self.error

    def write(self, content: ReadableBuffer) -> int:
        """All of `content`, or nothing after an error."""
        rest = memoryview(content).cast("B")
        size = len(rest)
        try:
            while len(rest) and self.error is None:
                rest = rest[self.raw.write(rest) :]
            self._sync_some(size)
        except OSError as error:
            self.error = self.error or error
        return size

    def truncate(self, size: int) -> int:
        """As far as the disk allows."""
        try:
            return size if self.error is not None else self.raw.truncate(size)
        except OSError as error:
            self.error = error
            return size

    def _sync_some(self, size: int) -> None:
        """Have the disk begin with what was written, as soon as it is done with what came before."""
        self.unsynced += size
        if self.unsynced >= SYNC_BYTES and self.syncing.done():
            self.syncing.result()
            self.syncing = self.background.submit(os.fdatasync, self.raw.fileno())
            self.unsynced = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)
