"""Component classes read from their source text, so that a recipe can be checked without importing jax.

A component is a frozen dataclass: its fields, their annotations, literal defaults and limits are all in the
class body, where `ast` sees them. Nothing in the file is executed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from sciml.errors import ConfigError

OPTION_CALLS = ("option", "parameter")
LIMITS = ("minimum", "maximum", "above")


@dataclass(frozen=True)
class OptionInfo:
    """One recipe key of a component: a dataclass field.

    Limits are inclusive (`minimum`, `maximum`) or exclusive (`above`), in `unit`; for a tuple they hold for
    every entry. `declared` is "option", "parameter" (a coefficient of an equation) or "plain".
    """

    name: str
    annotation: str
    required: bool = False
    default: Any = None
    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    unit: str | None = None
    doc: str = ""
    declared: str = "plain"

    @property
    def range(self) -> str:
        """The admissible values in words: `> 0`, `>= 1 and <= 8`, or nothing."""
        limits = ((">", self.above), (">=", self.minimum), ("<=", self.maximum))
        return " and ".join(f"{sign} {limit:g}" for sign, limit in limits if limit is not None)


@dataclass(frozen=True)
class FieldInfo:
    """An unknown that an equation declares in `fields = (Field(name, unit=...), ...)`."""

    name: str
    unit: str = "1"


@dataclass(frozen=True)
class ComponentInfo:
    """What the source says about a component class.

    `fields` is None where the class does not list `Field(...)` literals; `bases` are the names of the base
    classes; `constants` are the class attributes with literal values, such as a method's order.
    """

    name: str
    module: str
    class_name: str
    summary: str
    options: tuple[OptionInfo, ...]
    path: Path
    line: int
    bases: tuple[str, ...] = ()
    fields: tuple[FieldInfo, ...] | None = None
    constants: tuple[tuple[str, Any], ...] = ()

    def option(self, name: str) -> OptionInfo | None:
        """The option called `name`, or None."""
        return next((option for option in self.options if option.name == name), None)


@dataclass(frozen=True)
class ClassSource:
    """A class as it stands in a file, with the `(kind, name)` pairs its decorators register."""

    registered: tuple[tuple[str, str], ...]
    decorators: tuple[str, ...]
    info: ComponentInfo


def read_classes(path: Path, module: str) -> tuple[ClassSource, ...]:
    """All top-level classes of a Python file; ConfigError names the line that cannot be read statically."""
    try:
        stamp = path.stat().st_mtime_ns
    except OSError as error:
        raise ConfigError(f"cannot read {path}", reason=error.strerror) from error
    return _read_classes(path, module, stamp)


@lru_cache(maxsize=1024)
def _read_classes(path: Path, module: str, stamp: int) -> tuple[ClassSource, ...]:
    del stamp  # part of the cache key: an edited file is read again
    try:
        tree = ast.parse(path.read_bytes(), filename=str(path))
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None) or 1
        raise ConfigError(f"{path}:{line}: not valid Python", reason=str(error)) from error
    nodes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    return tuple(_read_class(node, path, module) for node in nodes)


def _read_class(node: ast.ClassDef, path: Path, module: str) -> ClassSource:
    registered = tuple(_registrations(node))
    docstring = ast.get_docstring(node) or ""
    info = ComponentInfo(
        name=registered[0][1] if registered else node.name,
        module=module,
        class_name=node.name,
        summary=docstring.partition("\n")[0].strip(),
        options=tuple(_options(node, path)) if registered or _is_equation(node) else (),
        path=path,
        line=node.lineno,
        bases=tuple(_last_name(base) for base in node.bases),
        fields=_declared_fields(node),
        constants=tuple(_constants(node)),
    )
    return ClassSource(registered, tuple(_last_name(d) for d in node.decorator_list), info)


def _is_equation(node: ast.ClassDef) -> bool:
    """Whether `@equation` decorates a class, which makes it a component even in a user's file without a name."""
    return "equation" in (_last_name(decorator) for decorator in node.decorator_list)


def _last_name(node: ast.expr) -> str:
    """`register` for `register`, `registry.register`, `register(...)`, `register[...]`."""
    if isinstance(node, ast.Call):
        return _last_name(node.func)
    if isinstance(node, ast.Subscript):
        return _last_name(node.value)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _registrations(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """`@register("model", "fno")` gives (model, fno), and so does the short form `@model("fno")`."""
    for decorator in node.decorator_list:
        if not isinstance(decorator, ast.Call):
            continue
        texts = [arg.value for arg in decorator.args if isinstance(arg, ast.Constant)]
        texts = [text for text in texts if isinstance(text, str)]
        called = _last_name(decorator)
        if called == "register" and len(texts) == 2:
            yield texts[0], texts[1]
        elif called != "register" and len(texts) == 1:
            yield called, texts[0]


def _options(node: ast.ClassDef, path: Path) -> Iterator[OptionInfo]:
    for statement in node.body:
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        annotation = _annotation(statement.annotation)
        if annotation.startswith(("ClassVar", "typing.ClassVar")) or annotation.endswith("KW_ONLY"):
            continue
        yield _option(statement.target.id, annotation, statement.value, path)


def _annotation(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return ast.unparse(ast.parse(node.value, mode="eval"))
    return ast.unparse(node)


def _option(name: str, annotation: str, value: ast.expr | None, path: Path) -> OptionInfo:
    if value is None:
        return OptionInfo(name, annotation, required=True)
    if not isinstance(value, ast.Call):
        return OptionInfo(name, annotation, default=_literal(value, name, path))
    declared = _last_name(value)
    words = {word.arg: word.value for word in value.keywords if word.arg}
    if declared not in OPTION_CALLS:
        default = words.get("default")
        if default is None:
            raise _not_literal(value, name, path)
        return OptionInfo(name, annotation, default=_literal(default, name, path))
    if value.args:
        words["default"] = value.args[0]
    read = {word: _literal(node, name, path) for word, node in words.items()}
    if declared == "parameter":
        read.setdefault("unit", "1")
    required = "default" not in read
    return OptionInfo(name, annotation, required, **read, declared=declared)


def _literal(node: ast.expr, name: str, path: Path) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        raise _not_literal(node, name, path) from None


def _not_literal(node: ast.expr, name: str, path: Path) -> ConfigError:
    return ConfigError(
        f"{path}:{node.lineno}: the default and limits of {name!r} must be literals",
        expected="a number, text, true/false, None, a tuple of these, or option(default, minimum=...)",
        got=ast.unparse(node),
        reason="recipes are checked by reading this file, without running it",
    )


def _declared_fields(node: ast.ClassDef) -> tuple[FieldInfo, ...] | None:
    value = next((value for name, value in _assignments(node) if name == "fields"), None)
    if not isinstance(value, ast.Tuple | ast.List):
        return None
    found = [_declared_field(entry) for entry in value.elts]
    return None if None in found else tuple(field for field in found if field)


def _declared_field(node: ast.expr) -> FieldInfo | None:
    if not isinstance(node, ast.Call) or _last_name(node) != "Field":
        return None
    words = {word.arg: word.value for word in node.keywords}
    words |= dict(zip(("name", "unit"), node.args, strict=False))
    texts = {key: node.value for key, node in words.items() if isinstance(node, ast.Constant)}
    return FieldInfo(str(texts["name"]), str(texts.get("unit", "1"))) if "name" in texts else None


def _constants(node: ast.ClassDef) -> Iterator[tuple[str, Any]]:
    for name, value in _assignments(node):
        try:
            yield name, ast.literal_eval(value)
        except (ValueError, TypeError, SyntaxError):
            continue


def _assignments(node: ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
    """Class attributes: `name = value` and `name: ClassVar[...] = value`."""
    for statement in node.body:
        if isinstance(statement, ast.Assign):
            target = statement.targets[0]
        elif isinstance(statement, ast.AnnAssign) and "ClassVar" in ast.unparse(statement.annotation):
            target = statement.target
        else:
            continue
        if isinstance(target, ast.Name) and statement.value is not None:
            yield target.id, statement.value
