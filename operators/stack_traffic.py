"""Bytes that a transformer operator sends in one step, by formula; see `traffic`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import jax
from flax import nnx

from sciml import axes
from sciml.operators.attention import Attention
from sciml.operators.counts import Load, Sent, pair
from sciml.operators.experts import Experts, room_of
from sciml.operators.transformer import Block, TransformerNetwork
from sciml.parallel.plan import Plan


@final
@dataclass(frozen=True)
class _Tokens:
    """Rows and tokens of one device, and how many times it works through all rows' worth of one layer.

    forward: passes before each backward pass. The schedule 1F1B makes two, as it keeps nothing but inputs: one in
    which the stage's result leaves, and one later to differentiate.
    """

    rows: int
    tokens: int
    layers: float
    forward: int
    load: Load

    @property
    def remat(self) -> int:
        """1 where layers are computed again."""
        return int(self.load.plan.remat)

    @property
    def passes(self) -> int:
        """Forward, backward, and again."""
        return self.forward + 1 + self.remat


def sent(network: TransformerNetwork, load: Load) -> Sent:
    """Layers by pairs of products, attention, experts; stages of a pipeline; the two ends, which all stages have."""
    sent, block = Sent(), network.stack.block
    cells, width = math.prod(network.patch), network.config.width
    stages, ticks = load.parts(axes.LAYERS), _ticks(load)
    tokens = load.cells // cells
    here = _Tokens(load.rows, tokens, network.stack.count / stages * ticks, 1 + _interleaved(load), load)
    assert isinstance(block, Block)
    _count_attention(sent, block.attention, here, scaled=block.modulate is not None)
    if isinstance(block.perceptron, Experts):
        _count_experts(sent, block.perceptron, here, width)
    else:
        sent.sums[axes.HIDDEN] += here.layers * (here.forward + 1) * load.rows * tokens * width
    condition = 0 if network.condition is None else network.condition.layers[-1].weight.shape[1]
    ends = ticks if _interleaved(load) else 1.0  # 1F1B works on both ends in every tick, in every stage
    sent.sums[axes.HIDDEN] += ends * load.rows * (pair(network.project, tokens) + here.forward * condition)
    if stages > 1:
        groups = network.config.groups // load.parts(axes.SPACE) if network.config.experts else 0
        added = load.rows * (2 * tokens * width + condition + groups)  # unused after, and constant before the layers
        _count_stages(sent, network, load, load.rows * (tokens * width + condition + groups), added)
    return sent


def parts_of_space(network: TransformerNetwork, shape: tuple[int, ...], plan: Plan) -> int:
    """Tokens along the first axis, groups of tokens, and heads where these are exchanged for tokens."""
    limit = shape[0] // network.patch[0]
    if network.config.experts:
        limit = math.gcd(limit, network.config.groups)
    if plan.attention == "all_to_all":
        limit = math.gcd(limit, network.config.heads)
    return limit


def _ticks(load: Load) -> float:
    """Passes through the layers of a stage per row, those on nothing included."""
    stages, portions = load.parts(axes.LAYERS), load.plan.microbatches
    if stages == 1:
        return 1.0
    return (portions + (2 * stages - 2 if _interleaved(load) else stages - 1)) / portions


def _interleaved(load: Load) -> bool:
    return load.plan.schedule == "1f1b" and load.parts(axes.LAYERS) > 1


def _count_attention(sent: Sent, attention: Attention, here: _Tokens, scaled: bool) -> None:
    """A pair of products over the heads, whose two scales per row add their gradients too; keys and values in space."""
    load, (_, width, _, heads, size) = here.load, attention.pair.shape
    everything = here.rows * here.tokens * width
    sent.sums[axes.HEADS] += here.layers * (here.passes * everything + 2 * scaled * here.rows * width)
    parts = load.parts(axes.SPACE)
    if parts > 1:
        places = 2 * attention.nearness.shape[-1]
        own = here.rows * here.tokens * heads // load.parts(axes.HEADS)
        if load.plan.attention == "ring":
            again = here.remat * (parts - 1) if parts > 2 else 0  # a single rotation is that of the backward pass
            rounds = here.forward * (parts - 1) + 2 * parts - 1 + again
            sent.hops[axes.SPACE] += here.layers * rounds * own * (2 * size + places)
        else:
            sent.swaps[axes.SPACE] += here.layers * here.passes * own * 2 * (2 * size + places)


def _count_experts(sent: Sent, experts: Experts, here: _Tokens, width: int) -> None:
    """Buffers of all experts to their devices and back; each is a pair of products as well."""
    groups = experts.groups // here.load.parts(axes.SPACE)
    room = room_of(here.tokens // groups, experts.count, experts.chosen, experts.capacity)
    buffer = here.rows * groups * experts.count * room * width
    sent.swaps[axes.EXPERTS] += here.layers * 2 * here.passes * buffer
    sent.sums[axes.HIDDEN] += here.layers * here.passes * buffer


def _count_stages(sent: Sent, network: TransformerNetwork, load: Load, state: float, ends: float) -> None:
    """`state`: numbers between two stages, `ends`: added behind the last and before the first of GPipe."""
    stages, portions = load.parts(axes.LAYERS), load.plan.microbatches
    if not _interleaved(load):
        sent.hops[axes.LAYERS] += 2 * (portions + stages - 1) / portions * state
        sent.sums[axes.LAYERS] += ends
        return
    sent.hops[axes.LAYERS] += 2 * (portions + 2 * stages - 2) / portions * state
    params = nnx.state(network, nnx.Param)
    for variable in jax.tree.leaves(params, is_leaf=lambda leaf: isinstance(leaf, nnx.Variable)):
        names = variable.get_metadata().get("axes") or ()
        if axes.LAYERS not in names:
            sent.sums[axes.LAYERS] += jax.tree.leaves(variable)[0].size / math.prod(
                load.parts(name) for name in names if name
            )
