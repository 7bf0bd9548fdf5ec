"""Components in a recipe, `{kind: name, option: value}` or just `name`, checked against their source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationError
from pydantic_core import InitErrorDetails, core_schema

from sciml import registry
from sciml.errors import ConfigError
from sciml.recipe.messages import again, failure, missing_key, problem, unknown_key
from sciml.recipe.values import adapter
from sciml.registry import ComponentInfo, OptionInfo

UPPER = ("high", "maximum")
LOWER = ("low", "minimum")
MARK = "x-sciml-component"
"""Marks the places of the JSON schema that `sciml.recipe.schema` fills with the registered components."""


@dataclass(frozen=True)
class Component:
    """A component with all its options, defaults included; nothing is imported until `load` or `build`.

    `category` is its kind in the registry ("model", "optimizer", ...), `kind` its name there (or
    `/path/file.py:Class`), `where` the place in the recipe (`heat.yaml:7:3`, or "" for a bare name).
    Parameters of an equation may be components themselves (distributions and fields).
    """

    category: str
    kind: str
    options: dict[str, Any] = field(default_factory=dict)
    where: str = field(default="", compare=False, repr=False)

    @property
    def info(self) -> ComponentInfo:
        """What the source says about the class."""
        return find(self.category, self.kind)

    def load(self) -> type:
        """The class; imports its module. ConfigError when a user's file fails while it is imported."""
        if registry.split_reference(self.kind):
            return registry.load_reference(self.kind)
        return registry.load(self.category, self.kind)

    def build(self, **changes: Any) -> Any:
        """The object: the class called with the options, some of them replaced by `changes`."""
        return self.load()(**{**self.options, **changes})

    def plain(self) -> dict[str, Any]:
        """Plain values that read back as this component."""
        return {"kind": self.kind, **{name: plain(value) for name, value in self.options.items()}}


def plain(value: Any) -> Any:
    """Components as mappings, tuples as lists, paths as text: what YAML and JSON can hold."""
    if isinstance(value, Component):
        return value.plain()
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return str(value) if isinstance(value, Path) else value


def find(category: str, kind: str) -> ComponentInfo:
    """The description of a registered component or, for equations, of a class in a user's file."""
    reference = registry.split_reference(kind)
    return registry.describe_file(*reference) if reference else registry.describe(category, kind)


@dataclass(frozen=True)
class Of:
    """Annotation for pydantic: a component of one of these kinds; with `number`, a number will do.

    `beside` are keys that the surrounding section reads from the same mapping, to be suggested as well.
    """

    categories: tuple[str, ...]
    number: bool = False
    beside: tuple[str, ...] = ()

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        """Validation by `check`; written back as plain values."""
        del source, handler
        return core_schema.with_info_plain_validator_function(
            lambda value, info: self.check(value, info.context),
            serialization=core_schema.plain_serializer_function_ser_schema(plain),
        )

    def __get_pydantic_json_schema__(self, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """A mark that `sciml.recipe.schema` replaces."""
        del schema, handler
        return {MARK: list(self.categories), "number": self.number}

    def check(self, value: Any, context: Mapping[str, Any] | None = None) -> Component | float:
        """The checked component; a pydantic ValidationError with every mistake in it."""
        if self.number and isinstance(value, int | float) and not isinstance(value, bool):
            return NUMBER.validate_python(value)
        return _component(value, self, context or {})


NUMBER = adapter(OptionInfo("number", "float"))


def _component(value: Any, wanted: Of, context: Mapping[str, Any]) -> Component:
    given, where = _spelled_out(value), getattr(value, "where", "")
    if given is None:
        what = " or a ".join(("number", *wanted.categories) if wanted.number else wanted.categories)
        raise failure([problem((), f"must be a {what}: {{kind: name, ...}}", value)])
    if "kind" not in given:
        raise failure([missing_key((), "kind")])
    kind, options = given["kind"], {key: inner for key, inner in given.items() if key != "kind"}
    at = () if isinstance(value, str) else ("kind",)
    category, kind, info = _lookup(kind, wanted.categories, at, context)
    known = [option.name for option in info.options]
    problems = [unknown_key((), key, [*known, *wanted.beside]) for key in options if key not in known]
    checked, mistakes = _options(options, info, category, context)
    if problems or mistakes:
        raise failure([*problems, *mistakes])
    return Component(category, kind, checked, where)


def _spelled_out(value: Any) -> Mapping[str, Any] | None:
    if isinstance(value, Component):
        return {"kind": value.kind, **value.options}
    if isinstance(value, str):
        return {"kind": value}
    return value if isinstance(value, Mapping) else None


def _lookup(
    kind: Any, categories: tuple[str, ...], at: tuple[str, ...], context: Mapping[str, Any]
) -> tuple[str, str, ComponentInfo]:
    what = " or ".join(categories)
    if not isinstance(kind, str):
        raise failure([problem(at, f"must be the name of a {what}", kind)])
    reference = registry.split_reference(kind, context.get("folder", "."))
    if reference and categories == ("equation",):
        path, class_name = reference
        try:
            info = registry.describe_file(path, class_name)
            if not registry.is_equation(info):
                raise ConfigError(f"{path}:{info.line}: {class_name} is not decorated with @equation")
        except ConfigError as error:
            raise failure([problem(at, error.what, kind)]) from None
        return "equation", f"{path.resolve()}:{class_name}", info
    known = {name: category for category in reversed(categories) for name in registry.names(category)}
    if kind not in known:
        hint = registry.suggestion(kind, known) or f", known: {', '.join(sorted(known)) or 'none'}"
        raise failure([problem(at, f"unknown {what}{hint}", kind)])
    return known[kind], kind, registry.describe(known[kind], kind)


def _options(
    given: Mapping[str, Any], info: ComponentInfo, category: str, context: Mapping[str, Any]
) -> tuple[dict[str, Any], list[InitErrorDetails]]:
    problems: list[InitErrorDetails] = []
    checked: dict[str, Any] = {}
    for option in info.options:
        if option.name not in given:
            checked[option.name] = option.default
            problems += [missing_key((), option.name)] if option.required else []
            continue
        try:
            check = _checker(option, category)
            checked[option.name] = check(given[option.name], context)
        except ValidationError as error:
            problems += [again(details, (option.name,)) for details in error.errors(include_url=False)]
    return checked, problems or list(_ordered(checked))


def _ordered(options: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
    """A component with both a lower and an upper bound wants them in this order."""
    for low, high in zip(LOWER, UPPER, strict=True):
        least, most = options.get(low), options.get(high)
        if isinstance(least, int | float) and isinstance(most, int | float) and least > most:
            yield problem((high,), f"must be >= {low}, which is {least:g}", most)


def _checker(option: OptionInfo, category: str) -> Callable[[Any, Mapping[str, Any]], Any]:
    if is_parameter(option, category):
        return lambda value, context: _parameter(value, option, context)
    return lambda value, context: adapter(option).validate_python(value)


def is_parameter(option: OptionInfo, category: str) -> bool:
    """Whether an option is a coefficient of an equation: a number, a distribution or a field."""
    other = ("int", "bool", "str", "Literal", "tuple")
    plain_type = option.declared != "parameter" and option.annotation.startswith(other)
    return category == "equation" and not plain_type


PARAMETER = Of(("distribution", "field"), number=True)


def _parameter(value: Any, option: OptionInfo, context: Mapping[str, Any]) -> Component | float:
    checked = PARAMETER.check(value, context)
    if not isinstance(checked, Component):
        return adapter(_as_number(option)).validate_python(checked)
    problems = [found for name, bound in _extremes(checked) for found in _outside(name, bound, option)]
    if problems:
        raise failure(problems)
    return checked


def _as_number(option: OptionInfo) -> OptionInfo:
    return replace(option, annotation="float")


def _extremes(component: Component) -> Iterator[tuple[str, float]]:
    """Options that bound the values a distribution or field can take."""
    for name in (*LOWER, *UPPER, "value"):
        bound = component.options.get(name)
        if isinstance(bound, int | float):
            yield name, bound


def _outside(name: str, bound: float, option: OptionInfo) -> Iterator[InitErrorDetails]:
    try:
        adapter(_as_number(option)).validate_python(bound)
    except ValidationError:
        unit = f" {option.unit}" if option.unit and option.unit != "1" else ""
        yield problem((name,), f"{option.name} must be {option.range}{unit}", bound)
