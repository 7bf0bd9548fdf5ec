"""Grid and time step for a target error: chosen once for a run, told, and kept beside its data."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sciml.pipeline.continuing import data_hash
from sciml.pipeline.family import Family, grid_of, saved_times
from sciml.recipe import Component, GeneratedData, Recipe
from sciml.runfolder import write_json
from sciml.solvers.target import settings_for

FILE = "settings.json"
FEWEST = 16  # intervals along the shortest axis that the search begins with
SAMPLES = 2  # that must reach the error


def settled(recipe: Recipe, folder: Path | None = None, say: Callable[[str], None] | None = None) -> GeneratedData:
    """The data section with the grid and the step that reach its `error`; as it is where it names them itself.

    What `choose` kept in `folder` for this recipe is taken, else the search is done now. Raises `NumericalError` when
    no grid reaches the error.
    """
    assert isinstance(recipe.data, GeneratedData)
    if recipe.data.error is None:
        return recipe.data
    kept = None if folder is None else _kept(folder / FILE, recipe)
    return _with(recipe.data, kept or _searched(recipe, recipe.data, say))


def choose(recipe: Recipe, folder: Path, say: Callable[[str], None]) -> None:
    """Search grid and step where the recipe asks for an error, and keep them in `folder`; nothing if that was done."""
    data = recipe.data
    if isinstance(data, GeneratedData) and data.error is not None and _kept(folder / FILE, recipe) is None:
        write_json(folder / FILE, {"recipe": data_hash(recipe), **_searched(recipe, data, say)})


def told(folder: Path | None, recipe: Recipe) -> dict[str, Any]:
    """What the data should say of a choice: the error asked for and the one estimated while choosing."""
    kept = None if folder is None else _kept(folder / FILE, recipe)
    return {} if kept is None else {f"{key}_relative_error": kept[key] for key in ("target", "estimated")}


def _kept(file: Path, recipe: Recipe) -> dict[str, Any] | None:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        found = json.loads(file.read_text("utf-8"))
        return found if found.get("recipe") == data_hash(recipe) else None
    return None


def _with(data: GeneratedData, settings: Mapping[str, Any]) -> GeneratedData:
    method = data.method
    if settings["dt"] is not None:
        method = replace(method, options={**method.options, "dt": settings["dt"]})
    return data.model_copy(update={"grid": settings["grid"], "method": method, "error": None})


def _searched(recipe: Recipe, data: GeneratedData, say: Callable[[str], None] | None) -> dict[str, Any]:
    family = Family.of(recipe)
    times = saved_times(family, data) if family.is_evolution else None
    has_step = any(option.name == "dt" for option in data.method.info.options)
    longest = None if times is None else float(np.diff([0.0, *times]).min())
    grid = grid_of(family, data.model_copy(update={"grid": _first_grid(recipe, family, data)}))
    method = data.method.build(**({"dt": longest} if has_step else {}))
    error, estimated = float(data.error or 0.0), 0.0
    for sample in range(min(SAMPLES, data.samples.total)):
        problem = family.problem(sample)
        found = settings_for(problem, grid, method, error=error, times=times, tell=_prefixed(sample, say))
        grid, method, estimated = found.grid, found.method, max(estimated, found.error)
    points = dict(zip(family.box.names, grid.shape, strict=True))
    dt = float(getattr(method, "dt", 0.0)) if has_step else None
    if say is not None:
        step = "" if dt is None else f", dt = {dt:g}"
        text = " x ".join(map(str, grid.shape))
        say(f"data.error {error:g}: chose {text} points{step}, estimated error {estimated:.1e}")
    return {"grid": points, "dt": dt, "target": error, "estimated": estimated}


def _prefixed(sample: int, say: Callable[[str], None] | None) -> Callable[[str], None] | None:
    return None if say is None else lambda text: say(f"choosing for sample {sample}: {text}")


def _first_grid(recipe: Recipe, family: Family, data: GeneratedData) -> dict[str, int]:
    """Equal spacings, and the modes of every field and model within half of the points."""
    modes = 2 * max(_modes(recipe), default=0)
    fewest = 2 ** math.ceil(math.log2(max(FEWEST, modes)))
    shortest, cells = min(family.box.lengths), getattr(data.method.load(), "cells", False)
    return {
        name: fewest * max(1, round(length / shortest)) + (0 if periodic or cells else 1)
        for name, length, periodic in zip(family.box.names, family.box.lengths, family.box.periodic, strict=True)
    }


def _modes(recipe: Recipe) -> list[int]:
    section = recipe.problem
    assert section is not None
    given = [*section.equation.options.values(), *section.initial.values(), *section.source.values()]
    given += [model.component for model in recipe.models.values()]
    counts = [c.options.get("modes") for c in given if isinstance(c, Component)]
    return [m for count in counts for m in (count if isinstance(count, tuple) else (count,)) if isinstance(m, int)]
