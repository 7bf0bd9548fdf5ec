"""Bytes of activations that a step sends between devices, by formula, for models whose layers can be split.

A sum over N devices sends 2r of what it sums, an all-to-all r, with r = (N - 1)/N. Every sum of the forward pass has
a counterpart in the backward pass where all devices share the value that enters the split layers.
"""

from __future__ import annotations

import math
from typing import Any

from sciml import axes
from sciml.operators import stack_traffic
from sciml.operators.counts import Load, Sent, count, pair, space_parts
from sciml.operators.deeponet import DeepONetNetwork
from sciml.operators.fno import FNOBlock, FNONetwork
from sciml.operators.mlp import GatedResidual
from sciml.operators.transformer import TransformerNetwork
from sciml.parallel.plan import Plan
from sciml.training.state import BYTES


def activation_traffic(model: Any, plan: Plan, rows: int) -> dict[str, float]:
    """Bytes by mesh axis for one step with `rows` samples per device.

    Recomputation counts in stacks of layers only: compilers find that elsewhere the first result is still there.
    `model` is a predictor of this package. Raises TypeError for a network without formulas.
    """
    return count(model.network, Load(rows, _grid(model), plan)).bytes(plan, BYTES[plan.precision])


def space_limits(model: Any, plan: Plan) -> dict[str, int]:
    """A number that the parts of space must divide, by logical axis; nothing for a model without a grid."""
    parts = space_parts(model.network, _grid(model), plan)
    return {axes.SPACE: parts} if parts else {}


def has_formulas(model: Any) -> bool:
    """Whether `activation_traffic` knows the model."""
    network = getattr(model, "network", None)
    return hasattr(model, "spec") and count.dispatch(type(network)) is not count.dispatch(object)


def _grid(model: Any) -> tuple[int, ...]:
    first = model.spec.outputs[0]
    return first.shape[len(first.shape) - len(first.spatial) :] if first.spatial else ()


@count.register
def _(network: FNONetwork, load: Load) -> Sent:
    sent = Sent()
    rows, cells = load.rows, load.cells
    sent.sums[axes.HIDDEN] += rows * pair(network.project, cells)
    for block in network.blocks:
        width = block.inner.weight.shape[0]
        spectrum = load.wide * block.conv.parts * math.prod(s.size for s in block.conv.series) * width
        sent.sums[axes.HIDDEN] += rows * (2 * cells * width + (math.prod(block.gain_shape) if block.gain else 0))
        sent.sums[axes.SPECTRAL] += rows * cells * width
        portions = load.parts(axes.SPECTRAL)
        if load.plan.transform == "pencil" and len(load.shape) > 1 and load.plan.domain > 1:
            sent.sums[axes.SPECTRAL] += rows * _filled(block, load) * block.conv.series[0].size // load.plan.domain
            swapped = load.shape[0] // load.plan.domain * _filled(block, load)
            sent.swaps[axes.SPACE] += 2 * rows * swapped * (1 + 1 / portions)
        else:
            sent.sums[axes.SPECTRAL] += rows * spectrum
            sent.sums[axes.SPACE] += 2 * rows * spectrum / portions
    return sent


@count.register
def _(network: DeepONetNetwork, load: Load) -> Sent:
    """The trunk of space is evaluated once for all rows, that of time once per row."""
    sent = Sent()
    sent.sums[axes.HIDDEN] += load.rows * pair(network.branch.nonlinear, 1)
    sent.sums[axes.HIDDEN] += pair(network.space.nonlinear, load.cells)
    if network.time is not None:
        sent.sums[axes.HIDDEN] += load.rows * pair(network.time.nonlinear, network.steps)
    return sent


@count.register
def _(network: GatedResidual, load: Load) -> Sent:
    """Gate and value enter the split layers apart: two sums in the backward pass."""
    return Sent(sums={axes.HIDDEN: load.rows * sum(3 * mix.weight.shape[1] for mix in network.mixes)})


def _filled(block: FNOBlock, load: Load) -> int:
    """Numbers per index of the first axis when the other axes are frequencies, one of them filled up."""
    others = [series.size for series in block.conv.series[1:]]
    others[0] += -others[0] % load.plan.domain
    return load.wide * block.conv.parts * math.prod(others) * block.inner.weight.shape[0]


@space_parts.register
def _(network: FNONetwork, shape: tuple[int, ...], plan: Plan) -> int:
    del plan
    padded = network.config.bounded == "pad" and not network.periodic[0]
    return 1 if padded else shape[0]


count.register(TransformerNetwork, stack_traffic.sent)
space_parts.register(TransformerNetwork, stack_traffic.parts_of_space)
