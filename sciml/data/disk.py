"""Bytes to and from the disk: atomic writes, hashes, HDF5 files opened or refused with the reason."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import time
from pathlib import Path

import h5py

from sciml.errors import (
    BusyError,
    CannotCreateError,
    DataError,
    PermissionDeniedError,
    SciMLError,
    StorageError,
)

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
LOCKED = (errno.EAGAIN, errno.EACCES)
HDF5_MARGIN = 1.1  # HDF5 adds chunk indices and headers
SWMR = "h5clear"
LOCK_WAIT_SECONDS = 5.0


def write_atomically(path: Path, content: bytes) -> None:
    """Write `content` to `path` so that it is there in whole or not at all: `.part`, fsync, rename, fsync.

    Raises StorageError with the bytes needed and free when the disk is full, PermissionDeniedError or
    CannotCreateError when the file cannot be made. The unfinished `.part` is removed: its room is needed.
    """
    part = path.with_name(path.name + ".part")
    try:
        with open(part, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(part, path)
        sync_folder(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise explain(error, path, needed=len(content)) from error


def explain(error: OSError, path: Path, *, needed: int | None = None) -> SciMLError:
    """The error of ours that says what an `OSError` met while writing `path` means."""
    if error.errno in FULL:
        return StorageError(
            f"the disk is full: cannot write {path}",
            expected=None if needed is None else f"{needed} bytes needed",
            got=f"{free_bytes(path.parent)} bytes free (a quota or file size limit may allow less)",
            reason=error.strerror,
            fix="free some space and give the same command again: finished shards are kept",
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return PermissionDeniedError(f"may not write {path}", reason=error.strerror)
    if error.errno in (errno.ENAMETOOLONG, errno.ENOENT, errno.ENOTDIR, errno.EEXIST, errno.EISDIR):
        return CannotCreateError(f"cannot create {path}", reason=error.strerror)
    return StorageError(f"writing {path} failed", reason=error.strerror or str(error))


def refuse_no_room(path: Path, needed: int) -> None:
    """StorageError when the disk of `path` has no room for `needed` bytes of numbers and what HDF5 adds to them."""
    free = free_bytes(path.parent)
    if needed * HDF5_MARGIN > free:
        raise StorageError(
            f"the disk is too small for the data in {path.parent}",
            expected=f"{int(needed * HDF5_MARGIN)} bytes needed",
            got=f"{free} bytes free",
            fix="free some space, ask for fewer samples, or store dtype: float32",
        )


def free_bytes(folder: Path) -> int:
    """Bytes that can still be written under `folder`."""
    return shutil.disk_usage(folder).free


def sha256(path: Path) -> str:
    """Hash of a file, read in pieces."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def open_hdf5(path: Path, wait: float = LOCK_WAIT_SECONDS) -> h5py.File:
    """Open for reading. A lock is waited for (`wait` seconds), a file left open by a writer is read as SWMR.

    Raises DataError for what is missing or no whole HDF5 file (with its size), BusyError for a lasting lock.
    """
    deadline = time.monotonic() + wait
    while True:
        try:
            return h5py.File(path, "r")
        except FileNotFoundError as error:
            raise DataError(f"there is no file {path}", expected="an HDF5 file") from error
        except PermissionError as error:
            raise PermissionDeniedError(f"may not read {path}", reason=str(error)) from error
        except OSError as error:
            if SWMR in str(error):
                return _open_swmr(path, error)
            if error.errno not in LOCKED:
                raise _broken(path, error) from error
            if time.monotonic() >= deadline:
                raise BusyError(
                    f"{path} is locked by another process",
                    got=f"still locked after {wait:g} s",
                    fix="wait for the writer to finish, or find it with `lsof`",
                ) from error
            time.sleep(0.1)


def _open_swmr(path: Path, first: OSError) -> h5py.File:
    try:
        return h5py.File(path, "r", swmr=True)
    except OSError as error:
        raise _broken(path, first) from error


def _broken(path: Path, error: OSError) -> DataError:
    return DataError(
        f"{path} is not a whole HDF5 file",
        got=f"{path.stat().st_size} bytes; HDF5 says: {error}",
        reason="it was cut off, for example by a killed writer or an incomplete copy",
        fix="copy or generate this file again",
    )


def sync_folder(folder: Path) -> None:
    """Let the names in a folder reach the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
