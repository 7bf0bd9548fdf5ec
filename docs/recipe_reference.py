"""Writes the tables of recipe-reference.md from the recipe's schema and the registry:   python docs/recipe_reference.py

With --check nothing is written; the exit status tells whether the page agrees with the code.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from generated import update

from sciml import recipe, registry

SECTIONS = {
    "the recipe": None,
    "problem": "ProblemSection",
    "problem.domain.x": "Axis",
    "problem.boundary.x-: dirichlet": "Dirichlet",
    "problem.boundary.x-: neumann": "Neumann",
    "problem.boundary.x-: robin": "Robin",
    "data: made by a solver": "GeneratedData",
    "data.samples": "Samples",
    "data: a file of yours": "FileData",
    "data.splits": "Splits",
    "models.<name>.train": "TrainSection",
    "models.<name>.train.objective": "ObjectiveSection",
    "plan": "PlanSection",
}
KINDS = {
    "equation": "Equations",
    "distribution": "Distributions of a parameter",
    "field": "Random and fixed fields",
    "method": "Methods of solution",
    "model": "Models",
    "optimizer": "Optimizers",
    "quantity": "Quantities of interest",
}
WORDS = {"integer": "whole number", "string": "text", "boolean": "`true` \\| `false`"}


def text() -> str:
    """All tables: sections in the order of a recipe, then components by kind."""
    return "\n".join([*_sections(recipe.schema()), *_components()])


def _sections(schema: Mapping[str, Any]) -> Iterator[str]:
    yield "## Sections"
    for title, name in SECTIONS.items():
        part = schema if name is None else schema["$defs"][name]
        yield f"\n### `{title}`\n" if name else f"\n### {title.capitalize()}\n"
        yield part["description"].split("\n\n")[0].replace("\n", " ") + "\n"
        yield from ("| key | value | default | meaning |", "|---|---|---|---|")
        required = set(part.get("required", ()))
        for key, value in part["properties"].items():
            default = "required" if key in required else _literal(value.get("default", ""))
            yield f"| `{key}` | {_escaped(_type(value))} | {default} | {_escaped(value.get('description', ''))} |"


def _type(value: Mapping[str, Any]) -> str:
    """A schema type in words."""
    if "$ref" in value:
        name = value["$ref"].rsplit("/", 1)[-1]
        return f"*{name.removeprefix('component-')}*" if name.startswith("component-") else "section"
    if "anyOf" in value:
        parts = [_type(choice) for choice in value["anyOf"] if choice.get("type") != "null"]
        return " or ".join(dict.fromkeys(parts))
    if "enum" in value or "const" in value:
        return " \\| ".join(f"`{choice}`" for choice in value.get("enum", [value.get("const")]))
    if value.get("type") == "array":
        return "list of " + _type(value.get("items", {})) if "items" in value else "list"
    if value.get("type") == "object":
        inner = value.get("additionalProperties")
        return "mapping of " + _type(inner) if isinstance(inner, dict) else "mapping"
    kind = str(value.get("type", "any"))
    return WORDS.get(kind, kind) + _limits(value)


def _limits(value: Mapping[str, Any]) -> str:
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    return "".join(f" {sign} {value[key]:g}" for key, sign in signs.items() if key in value)


def _components() -> Iterator[str]:
    for kind, title in KINDS.items():
        yield f"\n## {title}\n"
        for name in registry.names(kind):
            yield from _component(registry.describe(kind, name))


def _component(info: registry.ComponentInfo) -> Iterator[str]:
    yield f"\n### `{info.name}`\n"
    yield info.summary + "\n"
    if info.options:
        yield from ("| option | value | default | meaning |", "|---|---|---|---|")
    for option in info.options:
        default = "required" if option.required else _literal(option.default)
        value = " ".join(part for part in (option.annotation, option.range) if part)
        unit = f" [{option.unit}]" if option.unit not in (None, "1") else ""
        yield f"| `{option.name}` | {_escaped(value)} | {default} | {_escaped(option.doc)}{unit} |"


def _literal(value: Any) -> str:
    return "" if value in ("", None) else f"`{_escaped(str(value))}`"


def _escaped(words: str) -> str:
    return words.replace(" | ", " \\| ").replace("<", "&lt;").replace("\n", " ")


if __name__ == "__main__":
    sys.exit(update("recipe-reference.md", "recipe_reference.py", text()))
