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
from sciml.parallel.plan import FSDP, Plan
from sciml.parallel.volumes import ring_share
from sciml.types import PyTree


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


def gradient_traffic(layout: Layout, params: PyTree) -> dict[str, float]:
    """Bytes per device and step for gradients and parameters, by the mesh axes over which they travel.

    For P bytes of parameters per device before storage in shards: 2rP without ZeRO and with stage 2, 3rP with stage
    1, and with stage 3 2rP, or 3rP for stacks of layers that gather again in the backward pass. What cannot be
    stored in shards is reduced whole.
    """
    plan, sent = layout.plan, defaultdict[str, float](float)
    for leaf, value in zip(layout.leaves, jax.tree.leaves(params), strict=True):
        size = _bytes(value) / math.prod(plan.sizes[name] for name in leaf.split if name)
        over = tuple(name for name in layout.sums if name not in leaf.split)
        sharded = plan.zero > 0 and leaf.storage is not None
        if sharded:
            sent[FSDP] += size * ring_share(plan.fsdp) * _gathers(plan, leaf.stacked)
        if sharded and plan.zero >= 2:
            sent[FSDP] += size * ring_share(plan.fsdp)
            size, over = size / plan.fsdp, tuple(name for name in over if name != FSDP)
        if over:
            sent["+".join(over)] += 2 * ring_share(math.prod(plan.sizes[name] for name in over)) * size
    return dict(sent)


def _gathers(plan: Plan, stacked: bool) -> int:
    """How often a sharded parameter is gathered in a step."""
    return 2 if plan.zero == 3 and stacked and plan.remat else 1


def held(layout: Layout, params: PyTree, opt_state: PyTree, batch: PyTree) -> Held:
    """What one device stores before a step."""
    plan = layout.plan
    return Held(
        _stored(layout, params, layout.specs(params, sharded=plan.zero == 3)),
        _stored(layout, opt_state, layout.specs(opt_state, sharded=plan.zero >= 1)),
        _stored(layout, batch, layout.batch(batch)),
    )


def _stored(layout: Layout, tree: PyTree, specs: PyTree) -> int:
    shardings = layout.shardings(specs)
    flat = jax.tree.map(lambda sharding, part: jax.tree.map(lambda _: sharding, part), shardings, tree)
    pairs = zip(jax.tree.leaves(tree), jax.tree.leaves(flat), strict=True)
    return sum(math.prod(sharding.shard_shape(value.shape)) * value.dtype.itemsize for value, sharding in pairs)


def _bytes(value: Any) -> int:
    return value.size * np.dtype(value.dtype).itemsize
