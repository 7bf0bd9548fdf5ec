"""Errors that say what was expected, what came, why it probably happened, and what to write instead.

Every class carries the exit code of the command line (the table is in `docs/exit-codes.md`):
0 ok, 2 usage, 65 bad data, 70 internal, 73 cannot create, 74 I/O, 75 interrupted or busy (try again),
76 integrity, 77 permission, 78 bad configuration, 79 numerical failure, 80 lost peer, 130 Ctrl-C.
"""

from __future__ import annotations

from typing import ClassVar


class SciMLError(Exception):
    """A failure explained in four parts; any part but the first may be left out."""

    exit_code: ClassVar[int] = 70

    def __init__(
        self,
        what: str,
        *,
        expected: object = None,
        got: object = None,
        reason: str | None = None,
        fix: str | None = None,
    ) -> None:
        parts = (("expected", expected), ("got", got), ("likely reason", reason), ("write instead", fix))
        lines = [f"  {label}: {text}" for label, text in parts if text is not None]
        super().__init__("\n".join([what, *lines]))
        self.what, self.expected, self.got, self.reason, self.fix = what, expected, got, reason, fix


class DataError(SciMLError):
    """Data that are missing, malformed, or do not fit what they are used for."""

    exit_code = 65


class CannotCreateError(SciMLError):
    """An output file or folder that cannot be made."""

    exit_code = 73


class StorageError(SciMLError):
    """An input/output failure, such as a full disk."""

    exit_code = 74


class BusyError(SciMLError):
    """A resource held by another process; trying again later can succeed."""

    exit_code = 75


class Interrupted(SciMLError):
    """A run that saved its state because it was asked to stop; `exit_code` 75 (requeue) or 130 (Ctrl-C)."""

    exit_code = 75


class IntegrityError(SciMLError):
    """A file whose hash is not the recorded one."""

    exit_code = 76


class PermissionDeniedError(SciMLError):
    """A file or folder that may not be read or written."""

    exit_code = 77


class ConfigError(SciMLError):
    """A recipe or argument that asks for something impossible."""

    exit_code = 78


class NumericalError(SciMLError):
    """A computation that is unstable, diverged, or did not converge."""

    exit_code = 79


class PeerError(SciMLError):
    """Another process of the same job that is gone, cannot be reached, or does not move."""

    exit_code = 80
