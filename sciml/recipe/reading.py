"""From a file and the command line to a `Recipe`, or to one error that lists every mistake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from sciml.recipe import document
from sciml.recipe.checks import Sections, mistakes
from sciml.recipe.document import Document
from sciml.recipe.layout import PlanField
from sciml.recipe.messages import RecipeError, failure, lines
from sciml.recipe.overrides import overridden
from sciml.recipe.recipe import Recipe
from sciml.recipe.sections import DataSection, ModelSection, ProblemSection

DATA: TypeAdapter[Any] = TypeAdapter(DataSection)
PLAN: TypeAdapter[Any] = TypeAdapter(PlanField)


def read(path: Path | str, overrides: Sequence[str] = ()) -> Recipe:
    """The recipe in a YAML file, with `key.sub=value` overrides applied in order (the last one wins).

    Nothing is imported but the recipe layer, and nothing is written. Raises RecipeError (a ConfigError, exit
    code 78) whose `problems` name each mistake as `file:line:column: path: what is wrong (got ...)`.
    """
    path = Path(path).expanduser()
    return _validated(document.load(path), overrides, path.parent)


def read_text(text: str, name: str = "recipe", overrides: Sequence[str] = (), folder: Path | str = ".") -> Recipe:
    """Same as `read`, for a text; paths in it are relative to `folder`, and messages call it `name`."""
    return _validated(document.parse(text, name), overrides, Path(folder))


def _validated(written: Document, overrides: Sequence[str], folder: Path) -> Recipe:
    read = overridden(written, overrides)
    context = {"folder": folder.resolve()}
    try:
        return Recipe.model_validate(read.values, context=context)
    except ValidationError as error:
        sections = _sound_sections(read.values, context)
        raise RecipeError(read.name, lines([error, failure(mistakes(sections))], read)) from None


def _sound_sections(values: Mapping[str, Any], context: dict[str, Any]) -> Sections:
    """Sections that are right in themselves, so that those can still be compared with each other."""
    wrong = 0

    def sound(check: Any, value: Any) -> Any:
        nonlocal wrong
        try:
            return check(value, context=context)
        except ValidationError:
            wrong += 1
            return None

    models = values.get("models")
    checked = {
        name: sound(ModelSection.model_validate, model)
        for name, model in (models.items() if isinstance(models, Mapping) else ())
    }
    problem = sound(ProblemSection.model_validate, values["problem"]) if "problem" in values else None
    plan = sound(PLAN.validate_python, values.get("plan", {}))
    data = sound(DATA.validate_python, values.get("data"))
    sound_models = {name: model for name, model in checked.items() if model is not None}
    return Sections(problem, data, sound_models, plan, complete=False)
