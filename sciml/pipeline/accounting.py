"""What a training step costs: arithmetic and messages, read from its program, and energy where it can be read."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any, final

from jax.sharding import Mesh

from sciml.launch.energy import NOT_MEASURED, Energy
from sciml.parallel.groups import axes_of
from sciml.parallel.hardware import preset_of
from sciml.parallel.step import Step
from sciml.parallel.traffic import collectives
from sciml.parallel.work import work_of
from sciml.runfolder import write_json
from sciml.training.hooks.base import Hook, Record
from sciml.training.hooks.watching import STEPPING, WAITING
from sciml.training.loop import Run

COSTS = "costs.json"
UTILIZATION = "flops_utilization"


@final
class Account(Hook):
    """Adds the part of the devices' peak that is used to the records, and writes a summary to `path` at the end.

    Every process of a job has this hook, since the program of a step may have to be compiled by all of them together;
    only one has a `path`. The arithmetic is that of the traced program, so that `remat` counts what it computes twice.
    """

    def __init__(self, step: Step, precision: str, path: Path | None) -> None:
        self.step, self.precision, self.path = step, precision, path
        self.mesh = _mesh(step)
        self.kind = self.mesh.devices.flat[0].device_kind
        self.peak = peak(self.kind, precision)
        self.costs: dict[str, Any] | None = None
        self._first = 0
        self._energy: Energy | None = None

    def on_start(self, run: Run) -> None:
        """Energy is counted from here."""
        self._first = run.step
        self._energy = Energy() if self.path is not None else None

    def on_step(self, run: Run) -> None:
        """The program is known after the first step, and neither traced nor compiled again."""
        if self.costs is None:
            self.costs = program_costs(self.step, run)

    def on_records(self, run: Run, records: list[Record]) -> None:
        """Where a rate was measured, what it is of the peak."""
        del run
        if self._energy is not None:
            self._energy.update()
        if self.peak is not None and self.costs is not None and "steps_per_second" in records[-1]:
            used = self.costs["flops_per_device"] * records[-1]["steps_per_second"]
            records[-1][UTILIZATION] = used / self.peak

    def on_end(self, run: Run) -> None:
        """The summary, of this process of the training."""
        if self.path is None or self.costs is None or self._energy is None:  # another process, or not one step
            return
        self._energy.update()
        spent, later = run.clock.spent, max(run.step - self._first - 1, 1)  # the first step is compiled
        seconds = (spent[STEPPING] + spent[WAITING]) / later
        flops, devices = self.costs["flops_per_device"], self.mesh.size
        costs = {
            "devices": devices,
            "device": self.kind,
            "seconds_per_step": seconds,
            "wait_fraction": spent[WAITING] / max(sum(spent.values()), 1e-9),
            "samples_per_second_per_device": (run.rows or 0) / max(seconds, 1e-9) / devices,
            **self.costs,
            UTILIZATION: NOT_MEASURED if self.peak is None else flops / max(seconds, 1e-9) / self.peak,
            "joules_of_this_node": self._energy.joules,
        }
        write_json(self.path, costs)


def program_costs(step: Step, run: Run) -> dict[str, Any]:
    """Of one step on one device: operations, and bytes sent along each mesh axis (`data+fsdp`: over both at once)."""
    traced = step.function.trace(run.state, run.batch)
    sent: dict[str, float] = defaultdict(float)
    mesh = _mesh(step)
    if mesh.size > 1:
        for found in collectives(traced.lower().compile().as_text()):
            sent[axes_of(found.groups, mesh)] += found.sent * found.times / step.repeat
    return {"flops_per_device": work_of(traced.jaxpr).flops / step.repeat, "bytes_sent_per_device": dict(sent)}


def _mesh(step: Step) -> Mesh:
    sharding: Any = step.shardings.step  # shardings stand where a state has arrays
    return sharding.mesh


def peak(kind: str, precision: str) -> float | None:
    """Operations per second of a known device; float32 is that without the shortened products of tensor cores."""
    known = preset_of(kind)
    return None if known is None else known.peak[precision]


def kept_costs(place: Path) -> dict[str, Any]:
    """What the last process of a training has written; {} where it has not."""
    try:
        return json.loads((place / COSTS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
