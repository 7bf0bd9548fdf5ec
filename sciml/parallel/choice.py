"""All plans for a number of devices, and which of them is predicted to be the fastest."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import final

from sciml.errors import ConfigError
from sciml.parallel.hardware import Hardware
from sciml.parallel.names import AXES, DOMAIN, EXPERT, FSDP, PIPELINE, TENSOR
from sciml.parallel.plan import Plan
from sciml.parallel.prediction import Prediction, predict
from sciml.parallel.profile import Profile, profile
from sciml.parallel.subject import Subject

PORTIONS = (1, 2, 4)
"""Microbatches per stage that are tried."""
WHOLE = "axes that split nothing of this model"
WIDTHS = "widths, heads, layers or experts that do not divide"
GRID = "grids, tokens or their groups that do not divide"
ROWS = "rows of a batch that do not divide"
OPTIMIZER = "an optimizer that needs whole parameters"
LOSS = "a loss that needs whole fields"
UNKNOWN = "no formula for what the axis sends"
MEMORY = "memory of a device"


@final
@dataclass(frozen=True)
class Choice:
    """Predictions of all feasible plans, fastest first; why others were dropped, with their number."""

    predictions: tuple[Prediction, ...]
    dropped: Mapping[str, int]
    devices: int

    @property
    def best(self) -> Prediction:
        """The fastest."""
        return self.predictions[0]

    def reason(self) -> str:
        """One sentence."""
        best = self.best
        busy = best.compute / best.seconds
        words = f"{title(best.plan)}: {duration(best.seconds)} per step, of which {busy:.0%} is computing"
        plain = next((p for p in self.predictions if p.plan.data == self.devices > 1), None)
        if plain is best:
            return words + "; splitting anything but the batch would only add messages."
        if plain is not None:
            slower = plain.seconds / best.seconds - 1
            return words + f"; the batch over all devices alone would take {slower:.0%} longer."
        if self.devices == 1:
            return words + "."
        return words + "; the batch over all devices alone does not fit."


def choose(
    subject: Subject,
    base: Plan,
    devices: int,
    nodes: int,
    machine: Hardware,
    profiled: Callable[[Subject, Plan, bool], Profile] = profile,
    also: Plan | None = None,
) -> Choice:
    """Predictions for every way to use `devices`; ConfigError where none is possible.

    `also`: one more plan, which is not among them where it has other microbatches.

    `base` gives what is not chosen: precision, whole axes, attention, transform, schedule, accumulation, compression.
    `profiled` tells the work of a device. Activations are computed again only where the plan does not fit otherwise.
    """
    if nodes < 1 or devices < 1 or devices % nodes:
        raise ConfigError(
            "the nodes do not divide the devices",
            expected=f"nodes: one of {[n for n in range(1, devices + 1) if devices % n == 0]}",
            got=f"{devices} devices on {nodes} nodes",
            reason="every node has as many devices as the others",
            fix=f"--devices {max(devices // max(nodes, 1), 1) * max(nodes, 1)} --nodes {max(nodes, 1)}",
        )
    profiles, dropped, found = {False: profiled(subject, base, False)}, Counter[str](), []
    for sizes in factorizations(devices):
        why = unsuited(subject, profiles[False].limits, sizes)
        if why:
            dropped[why] += 1
            continue
        tried = list(variants(base, sizes))
        if also is not None and also.sizes == sizes and not any(same_layout(also, plan) for plan in tried):
            tried.append(dataclasses.replace(also, remat=False))
        for plan in tried:
            why = _undivided(subject, plan)
            if why:
                dropped[why] += 1
                continue
            prediction = predict(subject, profiles[False], plan, machine, devices // nodes)
            if prediction.memory > machine.memory:
                if True not in profiles:
                    profiles[True] = profiled(subject, base, True)
                again = dataclasses.replace(plan, remat=True)
                prediction = predict(subject, profiles[True], again, machine, devices // nodes)
            if prediction.memory > machine.memory:
                dropped[MEMORY] += 1
            else:
                found.append(prediction)
    if not found:
        _refuse(subject, base, dropped, devices)
    found.sort(key=lambda p: (float(f"{p.seconds:.2e}"), _complexity(p.plan), -p.plan.data, p.memory))
    return Choice(tuple(found), dict(dropped), devices)


def factorizations(devices: int) -> Iterator[dict[str, int]]:
    """All sizes of the mesh axes whose product is `devices`."""

    def over(names: tuple[str, ...], count: int) -> Iterator[dict[str, int]]:
        if len(names) == 1:
            yield {names[0]: count}
            return
        for size in (n for n in range(1, count + 1) if count % n == 0):
            for rest in over(names[1:], count // size):
                yield {names[0]: size, **rest}

    return over(AXES, devices)


def unsuited(subject: Subject, limits: Mapping[str, int], sizes: Mapping[str, int]) -> str | None:
    """Why a model cannot be split so; None where it can."""
    used = {name for name, size in sizes.items() if size > 1}
    for name in used & {TENSOR, PIPELINE, EXPERT}:
        if not limits[name]:
            return WHOLE
    if used & {TENSOR, PIPELINE, EXPERT, FSDP} and not subject.optimizer.is_elementwise:
        return OPTIMIZER
    if subject.traffic is None and used & {TENSOR, PIPELINE, EXPERT}:
        return UNKNOWN
    if any(limits[name] % sizes[name] for name in used & {TENSOR, PIPELINE, EXPERT}):
        return WIDTHS
    if DOMAIN in used and subject.has_grid:
        if limits[DOMAIN] % sizes[DOMAIN]:
            return GRID
        if not subject.objective.splits_space:
            return LOSS
    return None


def variants(base: Plan, sizes: Mapping[str, int]) -> Iterator[Plan]:
    """Plans with these sizes: ZeRO stages, and numbers of microbatches."""
    stages = tuple(s for s in (1, 2, 3) if s > 1 or base.compress == "none") if sizes[FSDP] > 1 else (0,)
    portions = [sizes[PIPELINE] * n for n in PORTIONS] if sizes[PIPELINE] > 1 else [1]
    for zero in stages:
        for count in portions:
            schedule = base.schedule if sizes[PIPELINE] > 1 else "gpipe"
            yield dataclasses.replace(base, **sizes, zero=zero, microbatches=count, schedule=schedule, remat=False)


def same_layout(one: Plan, other: Plan) -> bool:
    """Whether two plans use their devices in the same way; recomputation is a matter of memory."""
    return (one.sizes, one.zero, one.microbatches) == (other.sizes, other.zero, other.microbatches)


def _undivided(subject: Subject, plan: Plan) -> str | None:
    parts = math.prod(plan.row_parts(has_grid=subject.has_grid).values())
    if any(leaf.shape[0] % parts for leaf in subject.batch.values()):
        return ROWS
    return None


def _refuse(subject: Subject, base: Plan, dropped: Mapping[str, int], devices: int) -> None:
    rows = math.gcd(*(leaf.shape[0] for leaf in subject.batch.values())) // base.accumulate
    fewer = max((n for n in range(1, devices) if rows % n == 0), default=1)
    full = MEMORY in dropped
    raise ConfigError(
        f"no plan for {devices} devices",
        expected="at least one layout in which everything divides and fits",
        got="; ".join(f"{count} layouts dropped: {why}" for why, count in dropped.items()),
        reason="even the smallest part does not fit a device" if full else f"the batch divides by {rows} and its parts",
        fix="more devices, a smaller batch, or accumulate: 2" if full else f"--devices {fewer}",
    )


def title(plan: Plan) -> str:
    """The axes in use, with ZeRO stage, microbatches and recomputation."""
    words = [f"{name} {size}" for name, size in plan.sizes.items() if size > 1] or ["one device"]
    extra = [f"zero {plan.zero}"] * (plan.zero > 0) + [f"microbatches {plan.microbatches}"] * (plan.microbatches > 1)
    return ", ".join([" x ".join(words), *extra, *["remat"] * plan.remat])


def duration(seconds: float) -> str:
    """With a unit that suits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} us"


def _complexity(plan: Plan) -> int:
    return sum(size > 1 for size in plan.sizes.values()) + plan.zero
