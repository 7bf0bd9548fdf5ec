"""The same training on fewer or more devices: the batch stays, its portions change."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import final

import jax

from sciml.checkpoint import Checkpoints, Shapes, noted
from sciml.errors import ConfigError, PeerError
from sciml.launch.job import Job
from sciml.parallel.names import AXES
from sciml.parallel.plan import Plan
from sciml.pipeline.continuing import model_folder
from sciml.pipeline.tasks import Context
from sciml.recipe import ModelSection, PlanSection, Recipe

DEVICES = "devices"
"""In the meta of a checkpoint: for how many the training was laid out."""
PLAN = "plan"
"""In the meta of a checkpoint: the plan it was made under, as text."""
INSIDE, MEMORY, STATE = "opt_state/inner/", "opt_state/memory/", "opt_state/"
"""Names of what compression keeps: the state of the optimizer inside, what every device remembers."""


def began_with(job: Job, recorded: int = 0) -> int:
    """Devices that a training was laid out for: those of its job, or of an earlier one as its checkpoint tells."""
    return max(recorded, len(jax.devices()) * job.wanted // job.ranks.size)


def resized(plan: Plan, began: int, section: ModelSection) -> Plan:
    """The plan for the devices that there are, of `began` that the training was laid out for: see `fitted`."""
    return fitted(plan, began, len(jax.devices()), rows_of(section))


def is_open(section: PlanSection, processes: int) -> bool:
    """Whether a recipe leaves the layout over several processes to us: its plan, if any, names no devices."""
    return processes > 1 and not section.auto and all(getattr(section, name) == 1 for name in AXES)


def over_processes(plan: Plan, section: PlanSection, processes: int) -> Plan:
    """The plan, or where the recipe leaves it open the rows of a batch over all devices of all processes."""
    return dataclasses.replace(plan, data=-1) if is_open(section, processes) else plan


def rows_of(section: ModelSection) -> int | None:
    """Rows of a model's batch; None where all its readings and points are the batch."""
    return None if section.of_one_instance else section.train.batch


def fitted(plan: Plan, began: int, devices: int, batch: int | None) -> Plan:
    """The plan for `devices` devices, of `began` that the training was laid out for.

    The rows of a batch are spread over fewer devices, and each works through its share in more portions, so that the
    batch, the gradient and the memory per device stay. A training that has lost nothing keeps its plan. `batch` None:
    the number of rows is not known, and as many parts as before divide it. Raises PeerError (80) when the axes other
    than `data` need more devices than are left, or when the rows divide over no smaller number.
    """
    if devices >= began:
        return plan
    others = dataclasses.replace(plan, data=1).devices
    before = began // others if plan.data == -1 else plan.data
    now = min(before, devices // others)
    if now < 1:
        raise PeerError(
            "too few devices are left for the plan",
            expected=f"{others} for its axes other than data",
            got=f"{devices} of {began}",
            fix="the same command again when the lost ones are back, or a plan with smaller axes",
        )
    if now == before:
        return dataclasses.replace(plan, data=before)
    for data in range(now, 0, -1):
        portions = _portions(plan, before, data, batch)
        if portions:
            return dataclasses.replace(plan, data=data, accumulate=portions)
    raise PeerError(
        "the rows of a batch divide over no number of devices that is left",
        expected=f"a multiple of fsdp {plan.fsdp} x expert {plan.expert} x microbatches {plan.microbatches} rows, "
        "with a row in each portion",
        got=f"batch {batch}, {devices} of {began} devices",
        fix="the same command again when the lost ones are back, or a larger batch",
    )


def refuse_unshared(plan: PlanSection, section: ModelSection, job: Job) -> None:
    """Raise ConfigError (78) where no plan is given and the rows cannot go over all processes of a new job."""
    devices, rows = len(jax.devices()), rows_of(section)
    if not is_open(plan, job.wanted) or rows is None or job.ranks.size < job.wanted:
        return
    if rows % (devices * plan.accumulate):
        fits = max(n for n in range(1, devices + 1) if rows % (n * plan.accumulate) == 0)
        raise ConfigError(
            f"no plan is given, and the batch does not divide over {devices} devices of {job.ranks.size} processes",
            expected=f"a multiple of {devices * plan.accumulate} rows",
            got=f"batch: {rows}",
            fix=f"another batch, processes with {fits} devices in all, or a plan that splits the model as well",
        )


def suits(recipe: Recipe, folder: Path, processes: int, wanted: int, each: int) -> bool:
    """Whether so many processes of `wanted`, with `each` devices each, can train all models of a recipe."""
    context, devices = Context(recipe, folder), processes * each

    def fits(name: str, section: ModelSection) -> bool:
        rows, written = rows_of(section), recipe.plan
        if written.auto:  # chosen by the processes themselves; rows that divide always leave a choice
            return wanted % processes == 0 if rows is None else rows % (devices * written.accumulate) == 0
        with Checkpoints(model_folder(folder, name) / "checkpoints") as checkpoints:
            began = max(wanted * each, noted(checkpoints).get(DEVICES, 0))
        try:
            plan = fitted(over_processes(context.plan(section), written, wanted), began, devices, rows)
        except PeerError:
            return False
        return plan.data == -1 or devices - each < plan.devices <= devices  # each process has a part

    return all(fits(name, section) for name, section in recipe.models.items())


def _portions(plan: Plan, before: int, data: int, batch: int | None) -> int | None:
    """Portions of the rows of each of `data` parts, none larger than before; None where nothing divides."""
    parts = before * plan.accumulate
    if batch is None:
        return None if parts % data else parts // data
    fixed = plan.fsdp * plan.expert * plan.microbatches
    fitting = (a for a in range(math.ceil(parts / data), batch // data + 1) if batch % (data * a * fixed) == 0)
    return next(fitting, None)


@final
class Remembered:
    """Chooses what of a checkpoint a state takes when gradients were or are compressed, over any number of devices.

    What devices remember belongs to their number: on another one it starts anew, and `anew` tells so afterwards.
    """

    def __init__(self) -> None:
        self.anew = False

    def __call__(self, stored: Shapes, wanted: Shapes) -> dict[str, str]:
        """See `sciml.checkpoint.Choice`."""
        then, now = (any(name.startswith(INSIDE) for name in names) for names in (stored, wanted))
        lost = {name for name in wanted if now and name.startswith(MEMORY) and stored.get(name) != wanted[name]}
        gone = {name for name in stored if then and name.startswith(MEMORY) and name not in wanted}
        self.anew = bool(lost or gone)
        return {name: _elsewhere(name, then, now) for name in wanted if name not in lost}


def _elsewhere(name: str, then: bool, now: bool) -> str:
    """The name of an array in a checkpoint, made with compression or not; `now`: the name is of a state with it."""
    if not name.startswith(STATE) or then == now:
        return name
    return STATE + name.removeprefix(INSIDE) if now else INSIDE + name.removeprefix(STATE)
