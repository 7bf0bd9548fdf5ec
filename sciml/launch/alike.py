"""Whether the processes of a job are the same program with the same recipe at the same time of day."""

from __future__ import annotations

import hashlib
import platform
import socket
import sys
import time
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import sciml
from sciml.data.ranks import Ranks
from sciml.errors import ConfigError

PACKAGES = ("jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "grain", "h5py", "numpy")
CLOCK, HOST = "clock", "host"
CLOCK_SECONDS = 5.0
"""Clocks further apart make times in logs, locks and requeues mean nothing."""


def refuse_unlike(ranks: Ranks, **given: Any) -> None:
    """Compare code, packages, clock and what is `given` (name -> plain value) over all processes.

    Raises ConfigError (78) on every process, which names those that differ from most.
    """
    if ranks.size == 1:
        return
    ranks.gather(None)  # all are here: their clocks are read at the same moment
    facts = {CLOCK: time.time(), HOST: socket.gethostname(), **program(), **given}
    compare(ranks.gather(facts))


def program() -> dict[str, str]:
    """The code that runs here: hash of every source file of this package, and versions of what it stands on."""
    digest = hashlib.sha256()
    root = Path(sciml.__file__).parent
    for path in sorted(p for folder in _folders(root) for p in folder.rglob("*.py")):
        digest.update(f"{path.relative_to(root)}\n".encode() + path.read_bytes())
    found = {"sciml": f"{sciml.__version__}, sources {digest.hexdigest()[:12]}", "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return {**found, "byte order": sys.byteorder}


def compare(facts: Sequence[dict[str, Any]]) -> None:
    """Raise ConfigError where the facts of some process are not those of most, or a clock goes wrong."""
    names = [name for name in facts[0] if name not in (CLOCK, HOST)]
    lines = [line for name in names for line in _differences(name, facts)]
    if lines:
        raise ConfigError(
            "the processes of this job do not run the same",
            expected="the same code, packages, recipe and run folder on all",
            got="; ".join(lines),
            reason="a node has another environment, or its file system shows an older state",
            fix="start all processes from the same folder and environment on a shared file system",
        )
    clocks = [fact[CLOCK] for fact in facts]
    middle = sorted(clocks)[len(clocks) // 2]
    wrong = [f"process {r} on {facts[r][HOST]}: {c - middle:+.1f} s" for r, c in enumerate(clocks) if _far(c, middle)]
    if wrong:
        raise ConfigError(
            "the clocks of this job's machines are apart",
            expected=f"at most {CLOCK_SECONDS:g} s",
            got=", ".join(wrong),
            reason="a node without time synchronization",
            fix="leave that node out (--exclude), or have its clock set",
        )


def _folders(root: Path) -> list[Path]:
    """The package, and the folders that are linked into it."""
    return [root, *(p for p in sorted(root.iterdir()) if p.is_symlink() and p.is_dir())]


def _differences(name: str, facts: Sequence[dict[str, Any]]) -> list[str]:
    values = [str(fact.get(name)) for fact in facts]
    usual = values[0] if len(facts) < 3 else Counter(values).most_common(1)[0][0]
    return [
        f"{name}: {value} on process {rank} ({facts[rank][HOST]}), {usual} on process {values.index(usual)}"
        for rank, value in enumerate(values)
        if value != usual
    ]


def _far(clock: float, middle: float) -> bool:
    return abs(clock - middle) > CLOCK_SECONDS
