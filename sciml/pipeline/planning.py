"""`sciml plan`: predictions for devices that need not be there, as a table."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from sciml.errors import ConfigError
from sciml.parallel.choice import Choice, choose, duration, title
from sciml.parallel.hardware import MEASURED, PRESETS, Hardware, hardware
from sciml.parallel.measured import measured
from sciml.parallel.plan import DATA, Plan
from sciml.pipeline.choosing import base_plan, subject_of
from sciml.pipeline.tasks import Context, task_of
from sciml.recipe import Recipe

SHOWN = 15
"""Plans in a table."""


def predictions(recipe: Recipe, model: str, devices: int, nodes: int, machine: str) -> Choice:
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
    return choose(subject, base_plan(recipe, section), devices, nodes, _machine(machine))


def _machine(name: str) -> Hardware:
    return measured() if name == MEASURED else hardware(name)


def plan_table(choice: Choice, machine: str, limit: int | None = SHOWN) -> str:
    """Predictions as text, the choice with its reason, and what was dropped."""
    shown = choice.predictions[:limit]
    lines = [f"{'plan':44} {'memory':>10} {'arguments':>10} {'sent':>10} {'step':>9} {'bubble':>7}  sent by axes"]
    for found in shown:
        axes = ", ".join(f"{name} {size(count)}" for name, count in found.sent.items()) or "nothing"
        bubble = f"{found.bubble:.0%}" if found.plan.pipeline > 1 else "-"
        lines.append(
            f"{title(found.plan):44} {size(found.memory):>10} {size(found.held.total):>10} "
            f"{size(sum(found.sent.values())):>10} {duration(found.seconds):>9} {bubble:>7}  {axes}"
        )
    more = len(choice.predictions) - len(shown)
    lines += [f"... and {more} slower ones (--all)"] if more else []
    lines += ["", f"choice: {choice.reason()}", f"plan: {_section(choice.best.plan)}"]
    lines += [f"{count} layouts dropped: {why}" for why, count in sorted(choice.dropped.items())]
    known = PRESETS.get(machine) or measured()
    lines.append(f"predicted, per device, for {known.name} ({known.source})")
    return "\n".join(lines)


def _section(plan: Plan) -> str:
    """As it is written in a recipe."""
    sizes: dict[str, Any] = {name: count for name, count in plan.sizes.items() if count > 1} or {DATA: 1}
    default = Plan()
    for field in dataclasses.fields(Plan):
        value = getattr(plan, field.name)
        if field.name not in (*plan.sizes, "precision", "whole") and value != getattr(default, field.name):
            sizes[field.name] = str(value).lower() if isinstance(value, bool) else value
    return "{" + ", ".join(f"{name}: {value}" for name, value in sizes.items()) + "}"


def size(count: float) -> str:
    """Bytes with a unit that suits."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6)):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count / 1e3:.3g} kB"
