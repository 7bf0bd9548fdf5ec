"""MPI ranks, each with its own jax, that send with mpi4py between compiled segments."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, final

import jax
import numpy as np

from sciml.registry import register
from sciml.solvers.decomposed import mpi
from sciml.solvers.decomposed.communicator import Communicator, Program
from sciml.solvers.decomposed.message import Kind, send
from sciml.solvers.decomposed.staged import Staged
from sciml.types import Array


@register("communicator", "mpi4py")
@final
@dataclass(frozen=True)
class Mpi4py(Communicator):
    """The processes of `mpiexec`; messages are sent with mpi4py between compiled parts of the program."""

    @property
    def size(self) -> int:
        """Of the world."""
        return mpi.world().Get_size()

    @property
    def rank(self) -> int:
        """In the world."""
        return mpi.world().Get_rank()

    def exchange(self, blocks: Array) -> Array:
        """Alltoall."""
        return send(self, "exchange", blocks)[0]

    def shift(self, first: Array, last: Array) -> tuple[Array, Array]:
        """Two Sendrecv."""
        before, after = send(self, "shift", first, last)
        return before, after

    def total(self, value: Array) -> Array:
        """Allgather, and the sum in the order of the ranks."""
        return send(self, "total", value)[0]

    @property
    def effects(self) -> frozenset[Any]:
        """None: the order is that in which the segments are called."""
        return frozenset()

    def deliver(self, kind: Kind, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        """Send arrays outside of jax."""
        return mpi.DELIVERIES[kind](mpi.world(), *arrays)

    def run(self, program: Program, *inputs: Any) -> tuple[Any, Any]:
        """Segment by segment."""
        leaves, tree = jax.tree.flatten(inputs)
        shapes = tuple(jax.typeof(np.asarray(leaf) if isinstance(leaf, float | int) else leaf) for leaf in leaves)
        staged, result = _staged(program, tree, shapes)
        return jax.tree.unflatten(result, staged(*leaves))

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
def _staged(program: Program, tree: Any, shapes: tuple[Any, ...]) -> tuple[Staged, Any]:
    arguments = [jax.ShapeDtypeStruct(s.shape, s.dtype) for s in shapes]

    def flat(*leaves: Any) -> Any:
        return program(*jax.tree.unflatten(tree, leaves))

    closed, result = jax.make_jaxpr(flat, return_shape=True)(*arguments)
    return Staged(closed), jax.tree.structure(result)
