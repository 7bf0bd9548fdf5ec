"""Bytes of activations that a step sends between devices, by formula, for models whose layers can be split.

A sum over N devices sends 2r of what it sums, an all-to-all r, with r = (N - 1)/N. Every sum of the forward pass has
a counterpart in the backward pass where all devices share the value that enters the split layers.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any, final

from flax import nnx

from sciml import axes
from sciml.operators.deeponet import DeepONetNetwork
from sciml.operators.dense import Dense, Perceptron
from sciml.operators.fno import FNOBlock, FNONetwork
from sciml.operators.mlp import GatedResidual
from sciml.parallel.plan import Plan
from sciml.parallel.volumes import ring_share


@final
@dataclass(frozen=True)
class Sent:
    """Numbers that enter sums and all-to-alls, or go to a neighbor, in one step, by the logical axis that is split."""

    sums: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    swaps: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    hops: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def bytes(self, plan: Plan, itemsize: int) -> dict[str, float]:
        """Bytes that one device sends, by mesh axis."""
        sent: dict[str, float] = defaultdict(float)
        for numbers, factor in ((self.sums, 2), (self.swaps, 1), (self.hops, 0)):
            for logical, count in numbers.items():
                name = plan.mesh_axis(logical)
                if name and count:
                    share = factor * ring_share(plan.sizes[name]) if factor else 1.0
                    sent[name] += share * count * itemsize
        return dict(sent)


@final
@dataclass(frozen=True)
class Load:
    """One device's work: rows (samples), the whole grid, and the plan."""

    rows: int
    shape: tuple[int, ...]
    plan: Plan

    def parts(self, logical: str) -> int:
        """Number of parts of a logical axis."""
        name = self.plan.mesh_axis(logical)
        return self.plan.sizes[name] if name else 1

    @property
    def cells(self) -> int:
        """Grid points of this device."""
        return math.prod(self.shape) // self.plan.domain if self.shape else 1


def activation_traffic(model: Any, plan: Plan, rows: int) -> dict[str, float]:
    """Bytes by mesh axis for one step with `rows` samples per device.

    Recomputation counts in stacks of layers only: compilers find that elsewhere the first result is still there.
    `model` is a predictor of this package. Raises TypeError for a network without formulas.
    """
    itemsize = 2 if plan.precision == "bfloat16" else model.network.dtype.itemsize
    return count(model.network, Load(rows, _grid(model), plan)).bytes(plan, itemsize)


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


@singledispatch
def space_parts(network: nnx.Module, shape: tuple[int, ...], plan: Plan) -> int:
    """A number that the parts of space must divide; `shape` is that of the grid, empty without one."""
    del network, plan
    return shape[0] if shape else 0


@singledispatch
def count(network: nnx.Module, load: Load) -> Sent:
    """What one step of a network sends; one implementation per class."""
    del load
    raise TypeError(f"no formulas for {type(network).__name__}")


@count.register
def _(network: FNONetwork, load: Load) -> Sent:
    sent = Sent()
    rows, cells = load.rows, load.cells
    sent.sums[axes.HIDDEN] += rows * pair(network.project, cells)
    for block in network.blocks:
        width = block.inner.weight.shape[0]
        spectrum = block.conv.parts * math.prod(s.size for s in block.conv.series) * width
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


def pair(network: Perceptron, places: int) -> int:
    """Sums of a perceptron: outputs of its narrowing layers, and inputs of its widening ones, at every place."""
    layers: list[Dense] = list(network.layers)
    outputs = sum(layer.weight.shape[1] for layer in layers if layer.names[0])
    return places * (outputs + sum(layer.weight.shape[0] for layer in layers if layer.names[1]))


def _filled(block: FNOBlock, load: Load) -> int:
    """Numbers per index of the first axis when the other axes are frequencies, one of them filled up."""
    others = [series.size for series in block.conv.series[1:]]
    others[0] += -others[0] % load.plan.domain
    return block.conv.parts * math.prod(others) * block.inner.weight.shape[0]


@space_parts.register
def _(network: FNONetwork, shape: tuple[int, ...], plan: Plan) -> int:
    del plan
    padded = network.config.bounded == "pad" and not network.periodic[0]
    return 1 if padded else shape[0]
