"""Whether a recipe may continue what a run folder holds: nothing in it may have been made with another one."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from sciml.checkpoint import MANIFEST, Checkpoints
from sciml.errors import ConfigError
from sciml.recipe import FileData, Recipe

RECIPE = "recipe.yaml"
HASH = "recipe_sha256"
SHOWN = 5
FREE = ("name", "run", "plan")
"""Keys that may change between two starts of a run."""


def data_hash(recipe: Recipe) -> str:
    """What decides the data."""
    return recipe.hash("seed", "problem", "data")


def model_hash(recipe: Recipe, name: str) -> str:
    """What decides the training of one model."""
    return recipe.hash("seed", "problem", "data", f"models.{name}")


def model_folder(folder: Path, name: str) -> Path:
    """Where checkpoints, metrics and logs of one model are."""
    return folder / "models" / name


def refuse_other_recipe(recipe: Recipe, folder: Path) -> None:
    """Raise ConfigError (78) when data or checkpoints in `folder` were made with another recipe; changes nothing.

    Models may be added, and those without checkpoints changed.
    """
    other = [what for what, found, wanted in _made(recipe, folder) if found not in (None, wanted)]
    if other:
        changes = _changes(folder / RECIPE, recipe)
        raise ConfigError(
            f"{folder} holds {', '.join(other)} made with another recipe; nothing was changed",
            expected="the seed, problem, data and models that the run was started with",
            got="; ".join(changes) or "another content of a file that the recipe names, or an edited recipe.yaml",
            reason="the recipe was edited after the run began",
            fix=f"--run-folder with a new folder, or `sciml run {folder}` to continue with the recipe it holds",
        )


def _made(recipe: Recipe, folder: Path) -> Iterator[tuple[str, str | None, str]]:
    """(what, hash of the recipe it was made with if known, hash of the recipe given) of all there is."""
    if not isinstance(recipe.data, FileData):
        yield "data", _recorded(folder / "data" / "manifest.json", "provenance"), data_hash(recipe)
    for name in recipe.models:
        checkpoints = model_folder(folder, name) / "checkpoints"
        with Checkpoints(checkpoints) as saved:
            steps = saved.steps()
        if steps:
            found = _recorded(checkpoints / str(steps[-1]) / MANIFEST, "meta")
            yield f"a training of {name!r}", found, model_hash(recipe, name)


def _recorded(manifest: Path, part: str) -> str | None:
    """The hash in a manifest; None where there is none, or a damaged one: whoever reads it will tell."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        return json.loads(manifest.read_text("utf-8"))[part].get(HASH)
    return None


def _changes(stored: Path, recipe: Recipe) -> list[str]:
    """`models.fno.width: was 8, is 16` for the first differences to the stored recipe."""
    before: Any = None
    with contextlib.suppress(OSError, yaml.YAMLError):
        before = yaml.safe_load(stored.read_text("utf-8"))
    then, now = _flat(before, ""), _flat(recipe.plain(), "")
    keys = [key for key in {**then, **now} if key.split(".")[0] not in FREE]
    changed = [key for key in keys if then.get(key) != now.get(key)]
    lines = [f"{key}: was {then.get(key)}, is {now.get(key)}" for key in changed[:SHOWN]]
    return lines + ([f"and {len(changed) - SHOWN} more"] if len(changed) > SHOWN else [])


def _flat(values: Any, prefix: str) -> dict[str, Any]:
    if not isinstance(values, dict):
        return {prefix: list(values) if isinstance(values, tuple) else values}
    parts = [_flat(inner, f"{prefix}.{key}".removeprefix(".")) for key, inner in values.items()]
    return {key: value for part in parts for key, value in part.items()}
