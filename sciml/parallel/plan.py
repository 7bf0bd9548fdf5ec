"""How a training is laid over devices: data, not code. Models and objectives never mention devices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import jax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from sciml.errors import ConfigError
from sciml.training.state import Precision
from sciml.types import PyTree

DATA = "data"


@final
@dataclass(frozen=True)
class Plan:
    """Layout of a training over devices.

    data: number of devices over which the rows of a batch are spread; -1 takes all.
    accumulate: number of portions in which each device works through its rows, to save memory.
    precision: type of parameters, batches and arithmetic.
    Raises ConfigError where there are not enough devices or rows do not divide.
    """

    data: int = 1
    accumulate: int = 1
    precision: Precision = "float64"

    def __post_init__(self) -> None:
        if self.data < -1 or self.data == 0 or self.accumulate < 1:
            raise ConfigError(
                "a plan's sizes are whole numbers from 1 (data: or -1 for all devices)",
                got=f"data {self.data}, accumulate {self.accumulate}",
                fix="Plan(data=1, accumulate=1)",
            )

    @property
    def shards(self) -> int:
        """Number of devices in use."""
        return len(jax.devices()) if self.data == -1 else self.data

    def mesh(self) -> Mesh:
        """The device mesh with its one axis `data`."""
        devices = jax.devices()
        if self.shards > len(devices):
            raise ConfigError(
                "the plan asks for more devices than there are",
                expected=f"data <= {len(devices)}",
                got=f"data = {self.data}",
                fix=f"plan: {{data: {len(devices)}}}",
            )
        return jax.make_mesh((self.shards,), (DATA,), axis_types=(AxisType.Auto,), devices=devices[: self.shards])

    def replicated(self) -> NamedSharding:
        """Every device holds everything: parameters, optimizer state."""
        return NamedSharding(self.mesh(), P())

    def check_rows(self, batch: PyTree) -> None:
        """Refuse a batch whose rows cannot be spread evenly."""
        parts = self.shards * self.accumulate
        rows = {jax.tree_util.keystr(path): leaf.shape[:1] for path, leaf in jax.tree.leaves_with_path(batch)}
        bad = {name: n for name, n in rows.items() if not n or n[0] == 0 or n[0] % parts}
        if bad:
            raise ConfigError(
                "the rows of a batch do not divide over the devices",
                expected=f"a multiple of {parts} rows (data {self.shards} x accumulate {self.accumulate})",
                got=", ".join(f"{name}: {n[0] if n else 'a scalar'}" for name, n in bad.items()),
                fix="choose the batch size or the number of points as such a multiple, or a smaller plan",
            )
