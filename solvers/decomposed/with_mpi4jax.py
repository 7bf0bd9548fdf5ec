"""MPI ranks whose messages are operations inside one compiled program, by mpi4jax where that is installed."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np

from sciml.errors import ConfigError
from sciml.registry import register
from sciml.solvers.decomposed import mpi
from sciml.solvers.decomposed.communicator import Communicator, Program
from sciml.solvers.decomposed.message import Kind, send
from sciml.types import Array


@register("communicator", "mpi4jax")
@final
@dataclass(frozen=True)
class Mpi4jax(Communicator):
    """The processes of `mpiexec`; messages are sent inside the compiled program, by the optional package mpi4jax."""

    @property
    def size(self) -> int:
        """Of the world."""
        return mpi.world().Get_size()

    @property
    def rank(self) -> int:
        """In the world."""
        return mpi.world().Get_rank()

    def exchange(self, blocks: Array) -> Array:
        """alltoall."""
        return send(self, "exchange", blocks)[0]

    def shift(self, first: Array, last: Array) -> tuple[Array, Array]:
        """Two sendrecv."""
        before, after = send(self, "shift", first, last)
        return before, after

    def total(self, value: Array) -> Array:
        """allgather, and the sum in the order of the ranks."""
        return send(self, "total", value)[0]

    @property
    def effects(self) -> Any:
        """That by which mpi4jax orders its operations."""
        return jax.make_jaxpr(lambda x: _total(mpi.world(), x))(0.0).effects

    def deliver(self, kind: Kind, *arrays: Array) -> tuple[Array, ...]:
        """Operations of mpi4jax, which keeps them in order."""
        return _DELIVERIES[kind](mpi.world(), *arrays)

    def run(self, program: Program, *inputs: Any) -> tuple[Any, Any]:
        """One compiled call."""
        _mpi4jax()
        return _compiled(program)(*inputs)

    def said(self, value: str) -> list[str]:
        """Of all ranks."""
        return mpi.world().allgather(value)

    def held(self, values: Any) -> tuple[np.ndarray, int]:
        """One slab."""
        return np.asarray(values), self.rank

    def gathered(self, rows: np.ndarray) -> np.ndarray | None:
        """On the first rank."""
        return mpi.gathered(mpi.world(), rows)


@lru_cache(maxsize=32)
def _compiled(program: Program) -> Any:
    return jax.jit(program)


@cache
def _mpi4jax() -> Any:
    try:
        return importlib.import_module("mpi4jax")
    except ImportError as error:
        raise ConfigError(
            "mpi4jax is not installed",
            reason=str(error),
            fix="pip install mpi4jax, or the communicator mpi4py",
        ) from error


def _exchange(comm: Any, blocks: Array) -> tuple[Array, ...]:
    return (_mpi4jax().alltoall(blocks, comm=comm),)


def _shift(comm: Any, first: Array, last: Array) -> tuple[Array, ...]:
    rank, size = comm.Get_rank(), comm.Get_size()
    before, after = (rank - 1) % size, (rank + 1) % size
    sendrecv = _mpi4jax().sendrecv
    from_before = sendrecv(last, last, source=before, dest=after, sendtag=1, recvtag=1, comm=comm)
    from_after = sendrecv(first, first, source=after, dest=before, sendtag=2, recvtag=2, comm=comm)
    return from_before, from_after


def _total(comm: Any, value: Array) -> tuple[Array, ...]:
    return (jnp.sum(_mpi4jax().allgather(value, comm=comm), axis=0),)


_DELIVERIES: dict[str, Callable[..., tuple[Array, ...]]] = {"exchange": _exchange, "shift": _shift, "total": _total}
