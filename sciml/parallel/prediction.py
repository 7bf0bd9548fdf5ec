"""Memory and time of a training step under a plan, predicted: formulas for bytes, traced programs for arithmetic.

T = arithmetic or memory, whichever is slower, idle stages of a pipeline included
    + sum over mesh axes of (messages x hops x latency + bytes / bandwidth) + the start of a step.
Nothing is assumed to overlap. A message over n devices makes 2 log2(n) hops, one device's worth on each side of a ring
or tree. Axes lie on the devices in the order of `AXES`, the last one on neighbors; an axis whose devices are in
several nodes is as fast as the links between nodes. Sums over rows use the links of all its devices in a node.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import singledispatch
from typing import final

import jax

from sciml.parallel.compression import compressed_traffic, compressing
from sciml.parallel.cost import Held, gradient_traffic, held, least_squares_traffic, ring_share
from sciml.parallel.hardware import Hardware, Link
from sciml.parallel.layout import Layout
from sciml.parallel.names import AXES, DATA, DOMAIN, FSDP, PIPELINE
from sciml.parallel.plan import Plan
from sciml.parallel.profile import Profile
from sciml.parallel.subject import Subject
from sciml.training.objective import Data, Objective, Weighted
from sciml.training.optimizer import Optimizer
from sciml.training.optimizers.levenberg_marquardt import LevenbergMarquardt
from sciml.training.state import BYTES
from sciml.types import PyTree

NUMBERS = 3
"""Sums of single numbers that end a step: loss, its terms, norm of the gradient."""


@final
@dataclass(frozen=True)
class Prediction:
    """One device in one step: bytes stored and needed in between, bytes sent by mesh axes, seconds."""

    plan: Plan
    held: Held
    temporary: float
    sent: Mapping[str, float]
    compute: float
    waiting: Mapping[str, float]
    start: float

    @property
    def memory(self) -> float:
        """Bytes in all."""
        return self.held.total + self.temporary

    @property
    def seconds(self) -> float:
        """Of one step."""
        return self.compute + sum(self.waiting.values()) + self.start

    @property
    def bubble(self) -> float:
        """Part of the time of the layers in which a stage of the pipeline has nothing to do."""
        stages, portions = self.plan.pipeline, self.plan.microbatches
        return (stages - 1) / (portions + stages - 1)


def sent_bytes(subject: Subject, layout: Layout) -> dict[str, float]:
    """Bytes that one device sends in a step, by mesh axes."""
    plan, sent = layout.plan, dict(gradients_of(subject.optimizer, layout, subject.state.params))
    kind = 4 if plan.precision == "bfloat16" else _itemsize(plan)
    if layout.sums:
        over = math.prod(plan.sizes[name] for name in layout.sums)
        key = "+".join(layout.sums)
        sent[key] = sent.get(key, 0.0) + 2 * ring_share(over) * 2 * kind
    rows = rows_per_device(subject, layout)
    if subject.traffic is not None and plan.used("tensor", "pipeline", "expert", "domain"):
        for name, count in subject.traffic(plan, rows).items():
            sent[name] = sent.get(name, 0.0) + count
    if plan.domain > 1 and subject.has_grid:
        norms = 2 * ring_share(plan.domain) * rows * relative_outputs(subject.objective) * _itemsize(plan)
        sent[DOMAIN] = sent.get(DOMAIN, 0.0) + norms
    return {name: count for name, count in sent.items() if count > 0}


def predict(subject: Subject, profile: Profile, plan: Plan, machine: Hardware, per_node: int) -> Prediction:
    """Memory, bytes and time under `plan` on devices of which a node holds `per_node`."""
    params = subject.state.params
    layout = Layout.abstract(subject.model, plan, params)
    work = profile.work(layout, params)
    sent = sent_bytes(subject, layout)
    waiting = {name: _waiting(plan, name, count, profile, machine, per_node) for name, count in sent.items()}
    opt_state = subject.state.opt_state
    if _compresses(plan):
        opt_state = jax.eval_shape(compressing(subject.optimizer, layout).init, params)
    stored = held(layout, params, opt_state, subject.rows)
    added = held(layout, params, opt_state, subject.batch).batch - stored.batch
    return Prediction(
        plan,
        stored,
        work.peak + max(added, 0),
        sent,
        machine.compute(work.flops, work.moved, plan.precision),
        waiting,
        machine.per_step,
    )


def rows_per_device(subject: Subject, layout: Layout) -> int:
    """Rows of the batch on one device; of the longest array where there are several kinds of rows."""
    rows = max(leaf.shape[0] for leaf in subject.batch.values())
    return rows // math.prod(layout.plan.sizes[name] for name in layout.rows)


@singledispatch
def gradients_of(optimizer: Optimizer, layout: Layout, params: PyTree) -> dict[str, float]:
    """What an optimizer's sums over devices send; those of first order: gradients."""
    del optimizer
    return compressed_traffic(layout, params) if _compresses(layout.plan) else gradient_traffic(layout, params)


@gradients_of.register
def _(optimizer: LevenbergMarquardt, layout: Layout, params: PyTree) -> dict[str, float]:
    del optimizer
    return least_squares_traffic(layout, params)


@singledispatch
def relative_outputs(objective: Objective) -> int:
    """Number of outputs whose norm over the whole grid a loss needs."""
    del objective
    return 0


@relative_outputs.register
def _(objective: Data) -> int:
    return len(objective.outputs) if objective.relative else 0


@relative_outputs.register
def _(objective: Weighted) -> int:
    return sum(relative_outputs(inner) for inner, _ in objective.terms.values())


def link_of(plan: Plan, names: str, machine: Hardware, per_node: int) -> Link:
    """Of messages over mesh axes `data+fsdp`, say: the slowest on their way."""
    axes = names.split("+")
    widest = max(_extent(plan, name) for name in axes if plan.sizes[name] > 1)
    if widest <= per_node:
        return machine.inside
    if set(axes) <= {DATA, FSDP}:  # each member of a node has a link of its own to the others
        neighbors = math.prod(_members(plan, name, per_node) for name in axes)
        return Link(machine.across.latency, min(machine.inside.bandwidth, neighbors * machine.across.bandwidth))
    return machine.across


def _extent(plan: Plan, name: str) -> int:
    """Devices from the first to the last one of a group along an axis."""
    return math.prod(plan.sizes[n] for n in AXES[AXES.index(name) :])


def _members(plan: Plan, name: str, per_node: int) -> int:
    """Devices of one group that share a node."""
    stride = _extent(plan, name) // plan.sizes[name]
    return max(min(plan.sizes[name], per_node // stride), 1)


def _waiting(plan: Plan, names: str, sent: float, profile: Profile, machine: Hardware, per_node: int) -> float:
    count = math.prod(plan.sizes[name] for name in names.split("+"))
    messages = profile.messages.get(names, NUMBERS) * plan.accumulate
    if names == PIPELINE:
        messages = 2 * (plan.microbatches + plan.pipeline - 1)
    elif set(names.split("+")) <= {DATA, FSDP}:
        messages = NUMBERS + 2 * (plan.zero > 0)
    return link_of(plan, names, machine, per_node).seconds(sent, messages, 2 * math.log2(count))


def _compresses(plan: Plan) -> bool:
    return plan.compress != "none" and bool(plan.used(DATA))


def _itemsize(plan: Plan) -> int:
    return BYTES[plan.precision]
