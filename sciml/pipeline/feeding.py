"""What this process of a job of several holds of batches and states: its part of arrays over all devices."""

from __future__ import annotations

import math
from typing import Any, TypeVar, final

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from sciml.data.loader import Batches as Loaded
from sciml.data.ranks import Ranks
from sciml.errors import ConfigError
from sciml.parallel.names import ROW_AXES
from sciml.parallel.plan import Plan
from sciml.training.loop import Batches
from sciml.training.objective import Batch

T = TypeVar("T")


@final
class Shared:
    """A stream of batches of which each process holds the rows of its own devices.

    The order of samples is that of a single process, and so is the position: `{"next_index": batches taken}`.
    """

    def __init__(self, whole: Batches, mesh: Mesh) -> None:
        self.whole, self.mesh = whole, mesh
        self._placed: tuple[Batch, dict[str, jax.Array]] | None = None

    def __next__(self) -> Batch:
        batch = next(self.whole)
        if self._placed is None or self._placed[0] is not batch:  # the same batch for ever is placed once
            self._placed = batch, {name: self._place(np.asarray(values)) for name, values in batch.items()}
        return self._placed[1]

    def get_state(self) -> dict[str, Any]:
        """The position of the whole."""
        return self.whole.get_state()

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from there."""
        self.whole.set_state(state)

    def _place(self, values: np.ndarray) -> jax.Array:
        total, first = len(values), 0
        if isinstance(self.whole, Loaded):
            total, first = self.whole.batch_size, self.whole.first_row

        def part(index: Any) -> np.ndarray:
            start, stop, _ = index[0].indices(total)
            return values[start - first : stop - first]

        return jax.make_array_from_callback((total, *values.shape[1:]), rows(self.mesh, total), part)


@final
class Together:
    """A jitted function of several processes whose first call begins when all have compiled it.

    What they then send finds all of them there: gloo gives up after 30 s of waiting for a process that still compiles.
    """

    def __init__(self, function: Any, ranks: Ranks) -> None:
        self.function, self.ranks = function, ranks
        self.trace = function.trace
        self._met = ranks.size == 1

    def __call__(self, *arguments: Any) -> Any:
        if not self._met:
            failure = None
            try:
                self.function.lower(*arguments).compile()  # the call below finds it
            except Exception as error:
                failure = error
            self.ranks.agree(failure)
            self._met = True
        return self.function(*arguments)


def share(batches: Batches, plan: Plan) -> Batches:
    """The stream for this process: it reads the rows that its devices need, and no others."""
    mesh = plan.mesh()
    if isinstance(batches, Loaded):
        total = batches.batch_size
        parts = rows(mesh, total).addressable_devices_indices_map((total,)).values()
        bounds = [part[0].indices(total) for part in parts if part is not None]
        first, last = min(b[0] for b in bounds), max(b[1] for b in bounds)
        batches = batches.only(first, last - first)
    return Shared(batches, mesh)


def refuse_idle(mesh: Mesh, processes: int) -> None:
    """Raise ConfigError (78) where a plan uses no device of some process: it would have no part in the training."""
    used = {device.process_index for device in mesh.devices.flat}
    if len(used) == processes:
        return
    devices, others = len(jax.devices()), mesh.size // mesh.shape["data"]
    sizes = {name: size for name, size in mesh.shape.items() if size > 1}
    fits = {**{name: size for name, size in sizes.items() if name != "data"}, "data": devices // others}
    whole = ", ".join(f"{name}: {size}" for name, size in fits.items())
    raise ConfigError(
        f"the plan leaves {processes - len(used)} of {processes} processes without a device",
        expected=f"sizes that multiply to {devices}, the number of devices of all processes",
        got=" x ".join(f"{name} {size}" for name, size in sizes.items() or [("data", 1)]) + f" = {mesh.size}",
        fix=f"plan: {{{whole}}}" if devices % others == 0 else f"fewer processes, or sizes that divide {devices}",
    )


def rows(mesh: Mesh, total: int) -> NamedSharding:
    """How so many rows are spread, by the step further still where it can.

    Whole on every device where they do not divide, which the step will refuse.
    """
    parts = math.prod(mesh.shape[name] for name in ROW_AXES)
    return NamedSharding(mesh, P(ROW_AXES) if total % parts == 0 else P())


def spread(state: T, shardings: Any) -> T:
    """A state that every process has whole, as arrays over all devices; `shardings` may be a prefix of its tree."""
    return jax.tree.map(_placed, state, jax.tree.broadcast(shardings, state))


def _placed(leaf: Any, sharding: NamedSharding) -> jax.Array:
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        data = _placed(jax.random.key_data(leaf), sharding)
        return jax.random.wrap_key_data(data, impl=jax.random.key_impl(leaf))
    values = np.asarray(leaf)
    return jax.make_array_from_callback(values.shape, sharding, lambda index: values[index or ()])
