"""Writes the tables of plans.md from the cost model:   python docs/plan_tables.py

With --check nothing is written; the exit status tells whether the page agrees with the code.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import jax
import numpy as np
from flax import nnx
from generated import update

from sciml.operators.traffic import activation_traffic, space_limits
from sciml.parallel.choice import Choice, choose, duration, title
from sciml.parallel.hardware import PRESETS
from sciml.parallel.plan import Plan
from sciml.parallel.prediction import Prediction, predict
from sciml.parallel.profile import Profile, profile
from sciml.parallel.subject import Subject
from sciml.parallel.work import Work
from sciml.pipeline.planning import size
from sciml.registry import load
from sciml.spec import Spec, Statistics, Variable
from sciml.training.objective import Data
from sciml.training.state import Precision

PER_NODE, SHOWN = 8, 4
MODELS: dict[str, tuple[str, dict[str, Any], tuple[int, ...], int, Precision]] = {
    "transformer": (
        "transformer operator, 512 x 512 grid in patches of 8 (4096 tokens), width 1024, 16 heads, 24 layers, "
        "bfloat16, 4 samples per GPU",
        {"patch": (8,), "width": 1024, "heads": 16, "layers": 24, "hidden": 4096, "projection": 1024},
        (512, 512),
        4,
        "bfloat16",
    ),
    "fno": (
        "FNO, 256 x 256 grid, width 64, 32 x 32 modes, 4 layers, float32, 8 samples per GPU",
        {"width": 64, "modes": (32,), "layers": 4},
        (256, 256),
        8,
        "float32",
    ),
}


def subject(kind: str, devices: int) -> Subject:
    """The model as shapes, with a batch that grows with the devices."""
    _, options, grid, rows, precision = MODELS[kind]
    variables = [Variable(name, shape=grid, axes=("x", "y")) for name in ("u0", "u")]
    spec = Spec(
        inputs=(variables[0],),
        outputs=(variables[1],),
        coordinates={axis: tuple(np.arange(n) / n) for axis, n in zip("xy", grid, strict=True)},
        periodic=("x", "y"),
    )
    statistics = dict.fromkeys(("u0", "u"), Statistics(0.0, 1.0, -3.0, 3.0))
    model = nnx.eval_shape(lambda: load("model", kind)(**options).build(spec, statistics, seed=0))
    batch = {name: jax.ShapeDtypeStruct((rows * devices, *grid), np.float32) for name in ("u0", "u")}
    limits = space_limits(model, Plan())
    optimizer = load("optimizer", "adam")().build(1000)
    return Subject(model, Data(("u",)), optimizer, batch, precision, partial(activation_traffic, model), limits)


@cache
def chosen(kind: str, devices: int) -> Choice:
    """Plans for so many GPUs of the preset h100."""
    base = Plan(precision=MODELS[kind][4])
    machine, work = PRESETS["h100"], partial(scaled, kind, devices)
    return choose(subject(kind, devices), base, devices, devices // PER_NODE, machine, lambda _, __, remat: work(remat))


@cache
def _of_one(kind: str, remat: bool) -> Profile:
    return profile(subject(kind, 1), Plan(precision=MODELS[kind][4]), remat)


def scaled(kind: str, devices: int, remat: bool) -> Profile:
    """The work of a batch that grows with the devices, from that of one device."""
    one = _of_one(kind, remat)
    rows = Work(*(devices * getattr(one.per_batch, name) for name in ("flops", "moved", "peak")))
    return dataclasses.replace(one, per_batch=rows)


def text() -> str:
    """Cost tables, then the estimate of efficiency."""
    return "\n".join([*_costs(), *_efficiencies()])


def _costs() -> Iterator[str]:
    for kind, (words, *_) in MODELS.items():
        yield f"\n### {kind}: {words}\n"
        yield from ("| GPUs | plan | memory | sent per step | step |", "|---|---|---|---|---|")
        for devices in (8, 64):
            for found in chosen(kind, devices).predictions[:SHOWN]:
                yield f"| {devices} | {_cells(found)} |"
        for found in chosen(kind, 64).predictions[:SHOWN]:
            plan = dataclasses.replace(found.plan, data=8 * found.plan.data)
            yield f"| 512 | {_cells(_predicted(kind, plan, 512))} |"


def _cells(found: Prediction) -> str:
    sent = ", ".join(f"{name} {size(count)}" for name, count in found.sent.items()) or "nothing"
    return f"{title(found.plan)} | {size(found.memory)} | {sent} | {duration(found.seconds)}"


def _efficiencies() -> Iterator[str]:
    yield "\n### Paper estimate of parallel efficiency, batch growing with the GPUs\n"
    yield "| nodes x 8 GPUs | " + " | ".join(f"{kind} (plan of one node, times data)" for kind in MODELS) + " |"
    yield "|---|" + "---|" * len(MODELS)
    for nodes in (1, 8, 64, 512):
        yield f"| {nodes} ({nodes * PER_NODE}) | " + " | ".join(f"{_efficiency(k, nodes):.0%}" for k in MODELS) + " |"


def _efficiency(kind: str, nodes: int) -> float:
    """Step of one GPU with its rows, over that of `nodes` nodes with as many rows per GPU."""
    best = chosen(kind, PER_NODE).best.plan
    plan = dataclasses.replace(best, data=best.data * nodes)
    alone = dataclasses.replace(Plan(precision=best.precision), remat=best.remat)
    return _predicted(kind, alone, 1).seconds / _predicted(kind, plan, nodes * PER_NODE).seconds


def _predicted(kind: str, plan: Plan, devices: int) -> Prediction:
    return predict(subject(kind, devices), scaled(kind, devices, plan.remat), plan, PRESETS["h100"], PER_NODE)


if __name__ == "__main__":
    sys.exit(update("plans.md", "plan_tables.py", text()))
