"""A whole recipe: what to solve, which data to make or read, which models to train."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, Self

from annotated_types import MinLen
from pydantic import Field, model_validator

from sciml import registry
from sciml.recipe import document
from sciml.recipe.checks import Sections, mistakes
from sciml.recipe.components import plain
from sciml.recipe.layout import PlanField, PlanSection
from sciml.recipe.messages import failure
from sciml.recipe.paths import ADDRESS, ModelName, Name
from sciml.recipe.sections import DataSection, FileData, ModelSection, ProblemSection, Section
from sciml.recipe.values import Natural, Text


class Recipe(Section):
    """Exactly the YAML file, checked: components are known, options within limits, sections fit together.

    `name` names the run; its folder is `run`, or `runs/<name>` under the current folder. `seed` decides every
    random number. `problem` may be left out when `data` is a file.
    """

    name: Name
    seed: Natural = 0
    run: Annotated[Text, MinLen(1)] | None = Field(
        default=None, description="folder of the run; runs/<name> if left out"
    )
    problem: ProblemSection | None = None
    data: DataSection
    models: Annotated[dict[ModelName, ModelSection], MinLen(1)]
    plan: PlanField = PlanSection()

    @model_validator(mode="after")
    def _sections_fit_together(self) -> Self:
        found = list(mistakes(Sections(self.problem, self.data, self.models, self.plan)))
        if found:
            raise failure(found)
        return self

    @property
    def run_folder(self) -> Path:
        """Where everything that the run makes is put."""
        return Path(self.run).expanduser() if self.run else Path("runs") / self.name

    def plain(self) -> dict[str, Any]:
        """Plain values with every default filled in."""
        return plain(self.model_dump())

    def to_yaml(self) -> str:
        """The resolved recipe: every default filled in, files by absolute paths. Reads back as the same recipe."""
        return document.dump(self.plain())

    def hash(self, *parts: str) -> str:
        """SHA-256 of what decides the results: all but `name` and `run`, or only of `parts`.

        A part is a key or a dotted path, such as "problem", "data" or "models.fno". Folders do not count: a
        user's equation and a data file enter with their content (one in a store with its tag). KeyError for a part that
        is not there.
        """
        values = {key: value for key, value in self.plain().items() if key not in ("name", "run")}
        chosen = {part: _part(values, part) for part in parts} if parts else values
        canonical = json.dumps(_without_folders(chosen), sort_keys=True, allow_nan=False)
        return hashlib.sha256(canonical.encode()).hexdigest()


def _part(values: dict[str, Any], path: str) -> Any:
    inner: Any = values
    for key in path.split("."):
        inner = inner[key]
    return inner


def _without_folders(values: Any) -> Any:
    if isinstance(values, dict):
        return {key: _portable(key, inner) for key, inner in values.items()}
    return [_without_folders(inner) for inner in values] if isinstance(values, list) else values


def _portable(key: str, value: Any) -> Any:
    reference = registry.split_reference(value) if key == "kind" and isinstance(value, str) else None
    if reference:
        path, class_name = reference
        return [class_name, hashlib.sha256(path.read_bytes()).hexdigest()]
    is_file = key == "file" and isinstance(value, str)
    return _content_hash(value) if is_file else _without_folders(value)


def _content_hash(name: str) -> str:
    if ADDRESS in name:
        from sciml.data.remote import version  # asks the store

        return version(name)
    with Path(name).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


__all__ = ["FileData", "Recipe"]
