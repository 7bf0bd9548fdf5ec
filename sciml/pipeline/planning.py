"""`sciml plan`: predictions for devices that need not be there, as a table."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from sciml.errors import ConfigError
from sciml.parallel.choice import Choice, choose, duration, same_layout, title
from sciml.parallel.hardware import MEASURED, PRESETS, Hardware, hardware
from sciml.parallel.measured import measured
from sciml.parallel.plan import Plan
from sciml.parallel.prediction import Prediction
from sciml.pipeline.choosing import base_plan, subject_of
from sciml.pipeline.tasks import Context, task_of
from sciml.recipe import PlanSection, Recipe

SHOWN = 15
"""Plans in a table."""
MARK = "*"
"""In front of the plan that the recipe names."""


@dataclass(frozen=True)
class Planned:
    """All feasible plans of a model, and the one that its recipe names, if it names any."""

    choice: Choice
    given: Plan | None


def predictions(recipe: Recipe, model: str, devices: int, nodes: int, machine: str) -> Planned:
    """All feasible plans of one model of a recipe. ConfigError for unknown names and impossible numbers."""
    if model not in recipe.models:
        raise ConfigError(
            f"no model {model!r} in the recipe {recipe.name!r}",
            expected=" | ".join(recipe.models),
            got=model,
            fix=f"--model {next(iter(recipe.models))}",
        )
    section, context = recipe.models[model], Context(recipe, Path())
    subject = subject_of(recipe, section, task_of(section).outline(context, section), context.simulation)
    given = _given(recipe, context.plan(section), devices) if not recipe.plan.auto else None
    return Planned(choose(subject, base_plan(recipe, section), devices, nodes, _machine(machine), also=given), given)


def _given(recipe: Recipe, plan: Plan, devices: int) -> Plan | None:
    """The recipe's plan with as many parts of a batch as the devices allow where it says so; None for no plan."""
    if recipe.plan == PlanSection():
        return None
    others = dataclasses.replace(plan, data=1).devices
    return dataclasses.replace(plan, data=max(devices // others, 1)) if plan.data == -1 else plan


def _machine(name: str) -> Hardware:
    return measured() if name == MEASURED else hardware(name)


def plan_table(planned: Planned, machine: str, limit: int | None = SHOWN) -> str:
    """Predictions as text, the recipe's own plan marked, the choice with its reason, and what was dropped."""
    choice, given = planned.choice, planned.given
    shown = choice.predictions[:limit]
    own = [p for p in choice.predictions if given is not None and same_layout(p.plan, given)]
    lines = [f"  {'plan':44} {'memory':>10} {'arguments':>10} {'sent':>10} {'step':>9} {'bubble':>7}  sent by axes"]
    lines += [_row(found, MARK if found in own else " ") for found in shown]
    more = len(choice.predictions) - len(shown)
    lines += [f"  ... and {more} slower ones (--all)"] if more else []
    lines += [_row(found, MARK) for found in own if found not in shown]
    if own:
        rank = choice.predictions.index(own[0]) + 1
        lines.append(f"{MARK} the plan of the recipe, number {rank} of {len(choice.predictions)}")
    elif given is not None:
        lines.append(f"{MARK} the plan of the recipe, {given.written()}, is none of these: {_why_not(given, choice)}")
    lines += ["", f"choice: {choice.reason()}", f"plan: {choice.best.plan.written()}"]
    lines += [f"{count} layouts dropped: {why}" for why, count in sorted(choice.dropped.items())]
    known = PRESETS.get(machine) or measured()
    lines.append(f"predicted, per device, for {known.name} ({known.source})")
    return "\n".join(lines)


def _row(found: Prediction, mark: str) -> str:
    axes = ", ".join(f"{name} {size(count)}" for name, count in found.sent.items()) or "nothing"
    bubble = f"{found.bubble:.0%}" if found.plan.pipeline > 1 else "-"
    return (
        f"{mark} {title(found.plan):44} {size(found.memory):>10} {size(found.held.total):>10} "
        f"{size(sum(found.sent.values())):>10} {duration(found.seconds):>9} {bubble:>7}  {axes}"
    )


def _why_not(given: Plan, choice: Choice) -> str:
    if given.devices != choice.devices:
        return f"it uses {given.devices} devices, not {choice.devices}"
    return "it is among the layouts that were dropped, see below and `sciml validate`"


def size(count: float) -> str:
    """Bytes with a unit that suits."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6)):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count / 1e3:.3g} kB"
