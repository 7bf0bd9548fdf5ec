"""What a plan costs: bytes that a device holds and sends, by formula. Tests compare them with compiled programs.

Notation: a mesh axis (or a product of axes) with N parts has r = (N - 1)/N; a ring all-reduce of b bytes sends 2rb
per device, a reduce-scatter of b, and an all-gather to b, send rb.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, final

import jax
import numpy as np

from sciml.parallel.layout import Layout
from sciml.parallel.names import FSDP
from sciml.parallel.plan import Plan
from sciml.types import PyTree


def ring_share(parts: int) -> float:
    """r = (N - 1)/N."""
    return (parts - 1) / parts


@final
@dataclass(frozen=True)
class Held:
    """Bytes that one device stores: parameters, optimizer state, its share of a batch."""

    params: int
    optimizer: int
    batch: int

    @property
    def total(self) -> int:
        """All of them: the arguments of a compiled step."""
        return self.params + self.optimizer + self.batch


def gradient_traffic(layout: Layout, params: PyTree, apart: tuple[str, ...] = ()) -> dict[str, float]:
    """Bytes per device and step for gradients and parameters, by the mesh axes over which they travel.

    For P bytes of parameters per device before storage in shards: 2rP without ZeRO and with stage 2, 3rP with stage
    1, and with stage 3 2rP, or 3rP for stacks of layers that gather again in the backward pass. Stacks do so in every
    pass: with accumulation or a pipeline there are several. What cannot be stored in shards is reduced whole. The
    mesh axes `apart` are left out.
    """
    plan, sent = layout.plan, defaultdict[str, float](float)
    for leaf, value in zip(layout.leaves, jax.tree.leaves(params), strict=True):
        size = _bytes(value) / math.prod(plan.sizes[name] for name in leaf.split if name)
        over = tuple(name for name in layout.sums if name not in (*leaf.split, *apart))
        sharded = plan.zero > 0 and leaf.storage is not None
        gathers, scatters = _stack_passes(plan) if plan.zero == 3 and leaf.stacked else (1, 1)
        if sharded:
            sent[FSDP] += gathers * size * ring_share(plan.fsdp)
        if sharded and plan.zero >= 2:
            sent[FSDP] += scatters * size * ring_share(plan.fsdp)
            size, over = size / plan.fsdp, tuple(name for name in over if name != FSDP)
        if over:
            sent["+".join(over)] += 2 * ring_share(math.prod(plan.sizes[name] for name in over)) * size
    return dict(sent)


def _stack_passes(plan: Plan) -> tuple[int, int]:
    """How often a step gathers the parameters of a stack of layers, and scatters their gradients.

    Forward and again in the backward pass with `remat`, in every portion. GPipe gathers once for all its forward
    ticks; 1F1B makes two forward passes per tick.
    """
    count, again, stages = plan.accumulate, int(plan.remat), plan.pipeline
    if stages == 1:
        return count * (1 + again), count
    if plan.schedule == "gpipe":
        ticks = plan.microbatches + stages - 1
        return count * (1 + again * ticks), count * ticks
    ticks = plan.microbatches + 2 * stages - 2
    return count * (2 + again) * ticks, count * ticks


def held(layout: Layout, params: PyTree, opt_state: PyTree, batch: PyTree) -> Held:
    """What one device stores before a step."""
    plan = layout.plan
    return Held(
        _stored(layout, params, layout.specs(params, sharded=plan.zero == 3)),
        _stored(layout, opt_state, layout.specs(opt_state, sharded=plan.zero >= 1)),
        _stored(layout, batch, layout.batch(batch)),
    )


def local_bytes(layout: Layout, params: PyTree) -> float:
    """Bytes of one device's part of the parameters, whole along `fsdp`."""
    return sum(
        _bytes(value) / math.prod(layout.plan.sizes[name] for name in leaf.split if name)
        for leaf, value in zip(layout.leaves, jax.tree.leaves(params), strict=True)
    )


def gathered_bytes(layout: Layout, params: PyTree) -> float:
    """Bytes of whole parameters that ZeRO stage 3 makes from shards for a while: of stacks one layer at a time."""
    if layout.plan.zero < 3:
        return 0.0
    found = 0.0
    for leaf, value in zip(layout.leaves, jax.tree.leaves(params), strict=True):
        if leaf.storage is not None:
            parts = math.prod(layout.plan.sizes[name] for name in leaf.split if name)
            found += _bytes(value) / parts / (value.shape[0] // layout.plan.pipeline if leaf.stacked else 1)
    return found


def least_squares_traffic(layout: Layout, params: PyTree) -> dict[str, float]:
    """Normal equations of n unknowns once per step, then a curvature and a loss per damping tried; one is counted."""
    count, kind = sum(leaf.size for leaf in jax.tree.leaves(params)), jax.tree.leaves(params)[0].dtype
    over = math.prod(layout.plan.sizes[name] for name in layout.sums)
    return {"+".join(layout.sums): 2 * ring_share(over) * count * (count + 2) * kind.itemsize} if layout.sums else {}


def _stored(layout: Layout, tree: PyTree, specs: PyTree) -> int:
    shardings = layout.shardings(specs)
    flat = jax.tree.map(lambda sharding, part: jax.tree.map(lambda _: sharding, part), shardings, tree)
    pairs = zip(jax.tree.leaves(tree), jax.tree.leaves(flat), strict=True)
    return sum(math.prod(sharding.shard_shape(value.shape)) * value.dtype.itemsize for value, sharding in pairs)


def _bytes(value: Any) -> int:
    return value.size * np.dtype(value.dtype).itemsize
