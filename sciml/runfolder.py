"""A run is a folder of plain files: written atomically, used by one process at a time."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import logging
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from sciml.errors import (
    BusyError,
    CannotCreateError,
    PermissionDeniedError,
    SciMLError,
    StorageError,
)

LOCK = ".lock"
logger = logging.getLogger(__name__)

_CANNOT_CREATE = {errno.ENAMETOOLONG, errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ELOOP, errno.ENOENT}
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}


def write_text(path: Path | str, text: str) -> None:
    """Replace a file by `text` in one step: a reader sees the old content or the new one, never a part.

    Raises StorageError (disk full), PermissionDeniedError, CannotCreateError; the old file is then intact.
    """
    path = Path(path)
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.", suffix=".part")
        try:
            os.fchmod(handle, 0o666 & ~_umask())
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        sync_folder(path.parent)


def write_json(path: Path | str, value: Any) -> None:
    """Like `write_text`, as indented JSON; not-a-number is refused because JSON has no word for it."""
    write_text(path, json.dumps(value, indent=1, allow_nan=False) + "\n")


def write_yaml(path: Path | str, value: Any) -> None:
    """Like `write_text`, as YAML of plain values in the given order."""
    write_text(path, yaml.safe_dump(value, sort_keys=False, allow_unicode=True, default_flow_style=None))


def sync_folder(folder: Path) -> None:
    """Make renames inside `folder` durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def explained(path: Path | str, needed: int | None = None) -> Iterator[None]:
    """Turn operating-system errors about `path` into errors with a cause and an exit code.

    `needed` is the number of bytes about to be written, if known.
    """
    try:
        yield
    except OSError as error:
        raise explain(error, path, needed) from error


def explain(error: OSError, path: Path | str, needed: int | None = None) -> SciMLError:
    """The error to raise for an operating-system error about `path`."""
    what, text = f"cannot write {path}", f"{type(error).__name__}: {error.strerror or error}"
    if error.errno in _FULL:
        return disk_full(path, text, needed)
    if error.errno in _FORBIDDEN:
        return PermissionDeniedError(what, got=text, fix="choose a folder that you may write to")
    if error.errno in _CANNOT_CREATE:
        return CannotCreateError(what, got=text, fix="choose another name or folder")
    return StorageError(what, got=text, reason="the file system reported a failure")


def disk_full(path: Path | str, text: str, needed: int | None = None) -> StorageError:
    """The error for a full disk, quota or file-size limit; says what is needed and what is free."""
    folder = next(p for p in [Path(path), *Path(path).absolute().parents] if p.exists())
    free = shutil.disk_usage(folder).free
    return StorageError(
        f"cannot write {path}: no space left",
        expected=None if needed is None else f"{needed:,} bytes",
        got=f"{free:,} bytes free; {text}",
        reason="the disk, a quota or a file-size limit is full; nothing that was there is lost",
        fix="free some space and start the same command again",
    )


class FolderLock:
    """The right of one process to write in a run folder; a context manager.

    The lock is an flock on `<folder>/.lock`, which the system releases when its holder dies, so a lock left
    by a dead process is taken over. Raises BusyError (exit code 75) naming the process and host that hold it.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self._handle: int | None = None

    def __enter__(self) -> FolderLock:
        path = self.folder / LOCK
        with explained(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = _read_holder(handle)
            os.close(handle)
            if error.errno not in {errno.EAGAIN, errno.EACCES}:
                raise explain(error, path) from error
            raise _busy(self.folder, holder) from None
        left = _read_holder(handle)
        if left:
            logger.warning("%s: taking over from %s, which ended without a word", self.folder, _name(left))
        facts = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}
        _write_holder(handle, json.dumps(facts))
        self._handle = handle
        return self

    def __exit__(self, *_: object) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            _write_holder(handle, "")
            os.close(handle)


def _busy(folder: Path, holder: dict[str, Any]) -> BusyError:
    return BusyError(
        f"run folder {folder} is in use by another process",
        expected="one process per run folder",
        got=_name(holder),
        reason="the same run was started twice, or its predecessor has not ended yet",
        fix="wait for it, or give this run its own folder with `run: runs/<other name>`",
    )


def _name(holder: dict[str, Any]) -> str:
    pid, host = holder.get("pid", "?"), holder.get("host", "?")
    return f"process {pid} on {host}, since {holder.get('since', '?')}"


def _read_holder(handle: int) -> dict[str, Any]:
    text = os.pread(handle, 4096, 0).decode("utf-8", errors="replace").strip()
    try:
        value = json.loads(text or "{}")
    except ValueError:
        value = {"pid": "?"}
    return value if isinstance(value, dict) else {"pid": "?"}


def _write_holder(handle: int, text: str) -> None:
    os.ftruncate(handle, 0)
    os.pwrite(handle, text.encode(), 0)


def _umask() -> int:
    value = os.umask(0o022)
    os.umask(value)
    return value
