"""From exceptions to one message on stderr and an exit code; the table of codes is in `sciml.errors`."""

from __future__ import annotations

import functools
import os
import signal
import sys
import traceback
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

import typer

from sciml.errors import Interrupted, PeerError, SciMLError
from sciml.launch.leaving import leave, peer_is_gone

F = TypeVar("F", bound=Callable[..., None])

INTERNAL, STORAGE, PERMISSION, INTERRUPTED = 70, 74, 77, 130
JAX_NOTE = "JAX_TRACEBACK_FILTERING"  # jax adds it to what is raised while a program is traced
CONTINUE = "the same command again; what was finished and verified is kept"


def guarded(command: F) -> F:
    """Decorator: a failure of the command is explained on stderr and becomes its exit code."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        before = {number: signal.signal(number, _terminated) for number in (signal.SIGTERM, signal.SIGUSR1)}
        try:
            command(*args, **kwargs)
            sys.stdout.flush()
            leave(0)
        except BrokenPipeError:
            # The reader (`| head`) is gone; what is still buffered must not fail at interpreter exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(STORAGE) from None
        except (Exception, KeyboardInterrupt) as error:
            if isinstance(error, typer.Exit | typer.Abort | typer.BadParameter):
                raise
            if os.environ.get("SCIML_DEBUG"):
                traceback.print_exc()
            message, code = explain(error)
            leave(code, message)
            typer.echo(message, err=True)
            raise typer.Exit(code) from None
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    return run  # pyright: ignore[reportReturnType] -- functools.wraps keeps the signature


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGUSR1 outside of a training, which has handlers that save the step under way first."""


def _terminated(number: int, frame: FrameType | None) -> None:
    del frame
    raise Terminated(signal.Signals(number).name)


@functools.singledispatch
def explain(error: BaseException) -> tuple[str, int]:
    """Message and exit code of a failure; those that no one foresaw are internal errors."""
    if peer_is_gone(error):
        return explain(PeerError("another process of this job ended without a word", got=_line(error), fix=CONTINUE))
    hint = "set SCIML_DEBUG=1 for the traceback"
    return f"internal error: {type(error).__name__}: {error} ({hint})", INTERNAL


@explain.register
def _(error: SciMLError) -> tuple[str, int]:
    notes = [note for note in getattr(error, "__notes__", []) if JAX_NOTE not in note]
    return "\n".join([str(error), *notes]), error.exit_code


@explain.register
def _(error: KeyboardInterrupt) -> tuple[str, int]:
    del error
    return f"interrupted\n  write instead: {CONTINUE}", INTERRUPTED


@explain.register
def _(error: Terminated) -> tuple[str, int]:
    return explain(Interrupted(f"stopped by {error}", fix=CONTINUE))


@explain.register
def _(error: OSError) -> tuple[str, int]:
    return f"{error.filename or 'input/output'}: {error.strerror or error}", STORAGE


@explain.register
def _(error: PermissionError) -> tuple[str, int]:
    return f"{error.filename}: {error.strerror}", PERMISSION


def _line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0][:200]
