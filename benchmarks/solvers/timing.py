"""CPU time of several contenders, measured in turn in one process on one core."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any

import jax


def one_core() -> None:
    """Keep this process, and every thread it will start, on its first core."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def interleaved(contenders: Mapping[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """The smallest CPU time of each contender in seconds, after one call of each to compile.

    They take turns, so that a slow phase of the machine meets all of them.
    """
    for run in contenders.values():
        jax.block_until_ready(run())
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(repeats):
        for name, run in contenders.items():
            start = time.process_time()
            jax.block_until_ready(run())
            best[name] = min(best[name], time.process_time() - start)
    return best
