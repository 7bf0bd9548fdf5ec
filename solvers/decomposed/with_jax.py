"""Devices of jax, of one process or of several that have joined by `jax.distributed`: one program for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, final

import jax
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from sciml.errors import ConfigError
from sciml.registry import option, register
from sciml.solvers.decomposed.communicator import ROWS, Communicator, Program
from sciml.types import Array

AXIS = "ranks"


@register("communicator", "jax")
@final
@dataclass(frozen=True)
class JaxDevices(Communicator):
    """The devices of jax, those of other processes included; messages are operations inside one compiled program."""

    devices: int = option(0, minimum=0, doc="how many of the devices take part; 0: all")

    @property
    def size(self) -> int:
        """Raises `ConfigError` if there are fewer devices than asked for."""
        there = jax.device_count()
        if self.devices > there:
            raise ConfigError(
                "there are not as many devices",
                expected=f"at most {there}",
                got=f"devices: {self.devices}",
                fix="XLA_FLAGS=--xla_force_host_platform_device_count=8 for simulated ones, or jax.distributed",
            )
        return self.devices or there

    @property
    def rank(self) -> Array:
        """Inside of a program only."""
        return lax.axis_index(AXIS)

    def exchange(self, blocks: Array) -> Array:
        """all_to_all."""
        return lax.all_to_all(blocks, AXIS, 0, 0)

    def shift(self, first: Array, last: Array) -> tuple[Array, Array]:
        """Two ppermute."""
        up = [(i, (i + 1) % self.size) for i in range(self.size)]
        return lax.ppermute(last, AXIS, up), lax.ppermute(first, AXIS, [(b, a) for a, b in up])

    def total(self, value: Array) -> Array:
        """psum."""
        return lax.psum(value, AXIS)

    def run(self, program: Program, *inputs: Any) -> tuple[Any, Any]:
        """One compiled call of all devices."""
        return _compiled(program, self.size)(*(_everywhere(leaves, self.size) for leaves in inputs))

    def said(self, value: str) -> list[str]:
        """Of all processes."""
        if jax.process_count() == 1:
            return [value]
        from jax.experimental import multihost_utils

        data = np.zeros(4096, np.uint8)
        text = value.encode()[: data.size]
        data[: len(text)] = np.frombuffer(text, np.uint8)
        rows = np.asarray(multihost_utils.process_allgather(data))
        return [bytes(row).rstrip(b"\0").decode(errors="replace") for row in rows]

    def held(self, values: Any) -> tuple[np.ndarray, int]:
        """The slabs of the devices of this process, which stand next to each other."""
        shards = sorted(values.addressable_shards, key=lambda shard: shard.index[ROWS].start or 0)
        parts = [np.asarray(shard.data) for shard in shards]
        return np.concatenate(parts, axis=ROWS), (shards[0].index[ROWS].start or 0) // parts[0].shape[ROWS]

    def gathered(self, rows: np.ndarray) -> np.ndarray | None:
        """On the first process."""
        if jax.process_count() == 1:
            return rows
        from jax.experimental import multihost_utils

        parts = np.asarray(multihost_utils.process_allgather(rows))
        return np.concatenate(list(parts), axis=ROWS) if jax.process_index() == 0 else None


def _mesh(size: int) -> Mesh:
    return Mesh(np.asarray(jax.devices()[:size]), (AXIS,))


def _everywhere(leaves: Any, size: int) -> Any:
    if jax.process_count() == 1:
        return leaves
    whole = NamedSharding(_mesh(size), PartitionSpec())
    return jax.tree.map(
        lambda leaf: jax.make_array_from_callback(np.shape(leaf), whole, np.asarray(leaf).__getitem__), leaves
    )


@lru_cache(maxsize=32)
def _compiled(program: Program, size: int) -> Any:
    shared = PartitionSpec(*(None,) * ROWS, AXIS)
    return jax.jit(
        jax.shard_map(
            program,
            mesh=_mesh(size),
            in_specs=PartitionSpec(),
            out_specs=(shared, PartitionSpec()),
            check_vma=False,  # a rank chooses its case of walls by its number, which jax cannot follow
        )
    )
