"""The JSON schema of a recipe, with every registered component, for editors that complete and check YAML."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from typing import Any

from sciml import registry
from sciml.recipe.components import MARK, is_parameter
from sciml.recipe.recipe import Recipe
from sciml.recipe.sections import TrainSection
from sciml.recipe.values import describe
from sciml.registry import ComponentInfo, OptionInfo

DIALECT = "https://json-schema.org/draft/2020-12/schema"
SCALARS: dict[str, dict[str, Any]] = {
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "str": {"type": "string"},
    "bool": {"type": "boolean"},
    "None": {"type": "null"},
}
USER_EQUATION = {
    "description": "a class in your own file, my_problem.py:MyEquation",
    "anyOf": [
        {"type": "string", "pattern": registry.REFERENCE.pattern.replace("?P<file>", "").replace("?P<name>", "")},
        {"type": "object", "properties": {"kind": {"type": "string", "pattern": r"\.py:\w+$"}}, "required": ["kind"]},
    ],
}


def schema() -> dict[str, Any]:
    """JSON schema (draft 2020-12) of the recipe file; it knows the components registered in this installation."""
    whole = copy.deepcopy(Recipe.model_json_schema())
    definitions = whole.setdefault("$defs", {})
    definitions |= {f"component-{kind}": _category(kind) for kind in registry.PACKAGES}
    definitions["ModelSection"] = _category("model", {"train": {"$ref": f"#/$defs/{TrainSection.__name__}"}})
    return {"$schema": DIALECT, **_resolved(whole), "title": "sciml recipe"}


def _resolved(node: Any) -> Any:
    """The schema with the marks that stand for components replaced by references to their definitions."""
    if isinstance(node, list):
        return [_resolved(inner) for inner in node]
    if not isinstance(node, dict):
        return node
    if MARK not in node:
        return {key: _resolved(inner) for key, inner in node.items()}
    rest = {key: inner for key, inner in node.items() if key not in (MARK, "number")}
    choices = [{"$ref": f"#/$defs/component-{kind}"} for kind in node[MARK]]
    return {**rest, "anyOf": [*([{"type": "number"}] if node["number"] else []), *choices]}


def _category(kind: str, beside: dict[str, Any] | None = None) -> dict[str, Any]:
    infos = [registry.describe(kind, name) for name in registry.names(kind)]
    by_name = {"enum": [i.name for i in infos if not any(option.required for option in i.options)]}
    objects = [_component(kind, info, beside or {}) for info in infos]
    users = [USER_EQUATION] if kind == "equation" else []
    return {"anyOf": [by_name, *objects, *users]}


def _component(kind: str, info: ComponentInfo, beside: dict[str, Any]) -> dict[str, Any]:
    options = {option.name: _option(kind, option) for option in info.options}
    required = [option.name for option in info.options if option.required]
    return {
        "type": "object",
        "title": info.name,
        "description": info.summary,
        "properties": {"kind": {"const": info.name, "description": info.summary}, **options, **beside},
        "required": ["kind", *required],
        "additionalProperties": False,
    }


def _option(kind: str, option: OptionInfo) -> dict[str, Any]:
    """Type, limits and default; parameters of equations may be distributions or fields as well."""
    unit = f" [{option.unit}]" if option.unit else ""
    words = {"description": f"{option.doc or option.name}{unit}"}
    default = {} if option.required else {"default": _plain(option.default)}
    if is_parameter(option, kind):
        choices = [{"$ref": f"#/$defs/component-{category}"} for category in ("distribution", "field")]
        return {**words, **default, "anyOf": [{"type": "number", **_limits(option)}, *choices]}
    return {**words, **default, **_type(ast.parse(option.annotation, mode="eval").body, option)}


def _limits(option: OptionInfo) -> dict[str, float]:
    limits = {"minimum": option.minimum, "maximum": option.maximum, "exclusiveMinimum": option.above}
    return {name: limit for name, limit in limits.items() if limit is not None}


def _plain(value: Any) -> Any:
    return [_plain(inner) for inner in value] if isinstance(value, tuple) else value


def _type(node: ast.expr, option: OptionInfo) -> dict[str, Any]:
    text = ast.unparse(node)
    if text in SCALARS:
        return SCALARS[text] | (_limits(option) if text in ("int", "float") else {})
    if isinstance(node, ast.BinOp):
        return {"anyOf": [_type(node.left, option), _type(node.right, option)]}
    if isinstance(node, ast.Subscript):
        build = GENERICS.get(ast.unparse(node.value))
        return build(node, option) if build else {}
    return {"description": describe(text)}


def _tuple(node: ast.Subscript, option: OptionInfo) -> dict[str, Any]:
    inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if ast.unparse(inner[-1]) == "...":
        return {"type": "array", "items": _type(inner[0], option)}
    count = {"minItems": len(inner), "maxItems": len(inner)}
    return {"type": "array", "prefixItems": [_type(member, option) for member in inner], **count}


def _literal(node: ast.Subscript, option: OptionInfo) -> dict[str, Any]:
    del option
    values = ast.literal_eval(node.slice)
    return {"enum": list(values) if isinstance(values, tuple) else [values]}


GENERICS: dict[str, Callable[[ast.Subscript, OptionInfo], dict[str, Any]]] = {"tuple": _tuple, "Literal": _literal}
