"""What formulas of traffic are made of: numbers that travel, a device's work, one implementation per network."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from functools import singledispatch
from typing import final

from flax import nnx

from sciml.operators.dense import Dense, Perceptron
from sciml.parallel.cost import ring_share
from sciml.parallel.plan import Plan


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
    def wide(self) -> int:
        """Numbers of the arithmetic that a float32 number counts as: spectra are never in half precision."""
        return 2 if self.plan.precision == "bfloat16" else 1

    @property
    def cells(self) -> int:
        """Grid points of this device."""
        return math.prod(self.shape) // self.plan.domain if self.shape else 1


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


def pair(network: Perceptron, places: int) -> int:
    """Sums of a perceptron: outputs of its narrowing layers, and inputs of its widening ones, at every place."""
    layers: list[Dense] = list(network.layers)
    outputs = sum(layer.weight.shape[1] for layer in layers if layer.names[0])
    return places * (outputs + sum(layer.weight.shape[0] for layer in layers if layer.names[1]))
