"""How the work of one device falls with the size of every mesh axis: a few traced programs, formulas between."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import final

import jax

from sciml import axes
from sciml.parallel.cost import gathered_bytes, local_bytes
from sciml.parallel.layout import Layout
from sciml.parallel.names import DOMAIN, EXPERT, PIPELINE, TENSOR
from sciml.parallel.plan import SPLIT_BY, Plan
from sciml.parallel.subject import Subject, fewer, traced
from sciml.parallel.work import Work
from sciml.types import PyTree

MEASURES = ("flops", "moved", "peak")
FEW = 16
"""Part of the rows of a batch that count as few."""


@final
@dataclass(frozen=True)
class Profile:
    """fixed: work that does not depend on the rows; per_batch: of all rows of a batch on one device.

    split: mesh axis -> measure -> the part of the work that its devices share. messages: mesh axis -> messages that
    activations need in a step. least: bytes of memory that few rows need, where the optimizer needs more than the
    backward pass. parameters: bytes. limits: mesh axis -> what its size must divide, 0 for nothing to
    split.
    """

    fixed: Work
    per_batch: Work
    split: Mapping[str, Mapping[str, float]]
    messages: Mapping[str, float]
    least: float
    parameters: float
    limits: Mapping[str, int]

    def work(self, layout: Layout, params: PyTree) -> Work:
        """Of one device under a plan."""
        plan, local = layout.plan, local_bytes(layout, params)
        row_parts = math.prod(plan.sizes[name] for name in layout.rows)
        kept = {}
        for name in MEASURES:
            part = math.prod(self._share(plan, axis, name) for axis in self.split)
            rows = getattr(self.per_batch, name) / row_parts * part
            fixed = getattr(self.fixed, name) * (local / self.parameters)
            kept[name] = fixed + (rows / plan.accumulate if name == "peak" else rows)
        kept["peak"] = max(kept["peak"], self.least * local / self.parameters)
        return Work(kept["flops"], kept["moved"], kept["peak"] + gathered_bytes(layout, params), self.messages)

    def _share(self, plan: Plan, axis: str, measure: str) -> float:
        """What is left for one device of the rows' work, relative to one device for all."""
        whole, size = self.split[axis][measure], plan.sizes[axis]
        if axis == PIPELINE and size > 1:
            return 1 - whole + whole * _stage_share(plan, measure)
        return 1 - whole + whole / size


def profile(subject: Subject, base: Plan, remat: bool) -> Profile:
    """Traces the step on one device, with half of the rows, and with each axis that splits something cut once."""
    alone = Plan(precision=base.precision, whole=base.whole, attention=base.attention, transform=base.transform)
    alone = dataclasses.replace(alone, remat=remat)
    whole, half = traced(subject, alone), traced(subject, alone, parts=2)
    part = _fraction(subject)
    per_batch = _combined(whole, half, lambda a, b: max((a - b) / (1 - part), 0.0) if part < 1 else a)
    fixed = _combined(whole, per_batch, lambda a, b: max(a - b, 0.0))
    limits = axis_limits(subject, base)
    bytes_of_parameters = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(subject.state.params))
    split, messages = {}, {}
    for axis, parts in _first_cuts(subject, limits).items():
        sizes = {axis: parts, "microbatches": 2 if axis == PIPELINE else 1}
        plan = dataclasses.replace(alone, **sizes)
        found = traced(subject, plan)
        messages[axis] = found.messages.get(axis, 0.0)
        if axis != EXPERT:  # its devices share the rows
            params = subject.state.params
            local = local_bytes(Layout.abstract(subject.model, plan, params), params)
            split[axis] = _split_parts(whole, fixed, found, plan, axis, local / bytes_of_parameters)
    least = traced(subject, alone, parts=FEW).peak
    return Profile(fixed, per_batch, split, messages, least, bytes_of_parameters, limits)


def axis_limits(subject: Subject, base: Plan) -> dict[str, int]:
    """Mesh axis -> greatest common divisor of all that it would split; 0 where there is nothing."""
    found: dict[str, int] = dict.fromkeys((TENSOR, DOMAIN, PIPELINE, EXPERT), 0)
    for logical, size in subject.splits.items():
        mesh_axis = None if logical in base.whole else SPLIT_BY.get(logical)
        if mesh_axis in found and (logical != axes.SPACE or subject.has_grid):
            found[mesh_axis] = math.gcd(found[mesh_axis], size)
    return found


def _first_cuts(subject: Subject, limits: Mapping[str, int]) -> dict[str, int]:
    """Mesh axes that can be used, with the smallest number of parts."""
    usable = dict(limits) if subject.optimizer.is_elementwise and subject.traffic else {DOMAIN: limits[DOMAIN]}
    if not subject.objective.splits_space:
        usable.pop(DOMAIN)
    return {axis: parts for axis, limit in usable.items() if (parts := _smallest_divisor(limit)) > 1}


def _split_parts(whole: Work, fixed: Work, found: Work, plan: Plan, axis: str, local: float) -> dict[str, float]:
    parts = {}
    for name in MEASURES:
        rows = getattr(whole, name) - getattr(fixed, name)
        left = (getattr(found, name) - getattr(fixed, name) * local) / rows if rows > 0 else 1.0
        most = 1 - (_stage_share(plan, name) if axis == PIPELINE else 1 / plan.sizes[axis])
        parts[name] = min(max((1 - left) / most, 0.0), 1.0)
    return parts


def _stage_share(plan: Plan, measure: str) -> float:
    """Of the work of all layers, one stage's, idle ticks included: they compute on nothing.

    GPipe takes M + S - 1 ticks, 1F1B takes M + 2S - 2 with one more forward pass and keeps 2S - 1 portions.
    """
    stages, portions = plan.pipeline, plan.microbatches
    if plan.schedule == "gpipe":
        return (portions + stages - 1) / portions / stages
    if measure == "peak":
        return min(2 * stages - 1, portions) / portions / stages
    return 4 / 3 * (portions + 2 * stages - 2) / portions / stages


def _fraction(subject: Subject) -> float:
    """Of all numbers of a batch, those that are there with half of the rows."""
    full = sum(math.prod(leaf.shape) for leaf in subject.batch.values())
    return sum(math.prod(fewer(leaf, 2, 1).shape) for leaf in subject.batch.values()) / full


def _combined(a: Work, b: Work, function: Callable[[float, float], float]) -> Work:
    flops, moved, peak = (function(getattr(a, name), getattr(b, name)) for name in MEASURES)
    return Work(flops, moved, peak)


def _smallest_divisor(number: int) -> int:
    return next((n for n in range(2, number + 1) if number % n == 0), 1)
