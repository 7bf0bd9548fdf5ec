"""Watching the compiler: `with no_recompilation(): ...` fails when jax compiles anything inside."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import jax

_EVENT = "/jax/core/compile/backend_compile_duration"
_compilations = 0


def _count(event: str, duration: float, **_: object) -> None:
    global _compilations
    _compilations += event == _EVENT


jax.monitoring.register_event_duration_secs_listener(_count)


@contextlib.contextmanager
def no_recompilation() -> Iterator[None]:
    """Fail with the number of programs compiled inside the block, unless it is none."""
    before = _compilations
    yield
    compiled = _compilations - before
    assert compiled == 0, f"{compiled} program(s) compiled where none should be"
