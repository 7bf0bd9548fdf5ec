"""The world of mpi4py, imported on first use, and how arrays travel in it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from sciml.errors import ConfigError
from sciml.solvers.decomposed.communicator import ROWS


@cache
def world() -> Any:
    """The communicator of all ranks; raises `ConfigError` without mpi4py."""
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise ConfigError(
            "ranks of MPI need mpi4py, which is not installed",
            reason=str(error),
            fix="pip install 'sciml[mpi]', or the communicator jax or serial",
        ) from error
    return MPI.COMM_WORLD


def _exchange(comm: Any, blocks: np.ndarray) -> tuple[np.ndarray, ...]:
    received = np.empty_like(blocks)
    comm.Alltoall(np.ascontiguousarray(blocks), received)
    return (received,)


def _shift(comm: Any, first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, ...]:
    rank, size = comm.Get_rank(), comm.Get_size()
    before, after = (rank - 1) % size, (rank + 1) % size
    from_before, from_after = np.empty_like(last), np.empty_like(first)
    comm.Sendrecv(np.ascontiguousarray(last), after, 1, from_before, before, 1)
    comm.Sendrecv(np.ascontiguousarray(first), before, 2, from_after, after, 2)
    return from_before, from_after


def _total(comm: Any, value: np.ndarray) -> tuple[np.ndarray, ...]:
    parts = np.empty((comm.Get_size(), *value.shape), value.dtype)
    comm.Allgather(np.ascontiguousarray(value), parts)
    return (parts.sum(axis=0),)


DELIVERIES: dict[str, Callable[..., tuple[np.ndarray, ...]]] = {
    "exchange": _exchange,
    "shift": _shift,
    "total": _total,
}
"""The messages of a `Communicator`, by kind."""


def gathered(comm: Any, rows: np.ndarray) -> np.ndarray | None:
    """All rows on the first rank, frame by frame, so that no message is larger than one frame of all fields."""
    frames = []
    for frame in rows:
        parts = comm.gather(np.ascontiguousarray(frame), root=0)
        frames.append(None if parts is None else np.concatenate(parts, axis=ROWS - 1))
    return np.stack(frames) if comm.Get_rank() == 0 else None
