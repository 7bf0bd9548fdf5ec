"""The types that recipe values may have, and how the annotation text of an option becomes one.

Numbers are strict (text is never turned into a number, true is not 1), except that `1e4` counts as a whole
number. `on`, `off`, `yes`, `no` count as true or false where true or false is expected.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator
from functools import lru_cache, reduce
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le
from pydantic import AllowInfNan, BeforeValidator, Strict, TypeAdapter, ValidationError, WrapValidator

from sciml.errors import ConfigError
from sciml.recipe.messages import failure, problem
from sciml.registry import OptionInfo

SWITCHES = {"on": True, "yes": True, "off": False, "no": False}


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _switch(value: Any) -> Any:
    return SWITCHES.get(value.lower(), value) if isinstance(value, str) else value


WHOLE = BeforeValidator(_whole)
Integer = Annotated[int, Strict(), WHOLE]
Number = Annotated[float, Strict(), AllowInfNan(False)]
Text = Annotated[str, Strict()]
Switch = Annotated[bool, Strict(), BeforeValidator(_switch)]
Count = Annotated[int, Strict(), Ge(1), WHOLE]
Natural = Annotated[int, Strict(), Ge(0), WHOLE]
Positive = Annotated[Number, Gt(0)]

SCALARS: dict[str, Any] = {"int": Integer, "float": Number, "str": Text, "bool": Switch, "None": None}
NUMBERS = ("int", "float")
PLURALS = {"int": "whole numbers", "float": "numbers", "str": "texts", "bool": "true/false values"}
SINGULARS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "None": "null",
}


def in_one_message(words: str) -> WrapValidator:
    """For unions: say `must be <words>` instead of one message for each member."""

    def validate(value: Any, handler: Callable[[Any], Any]) -> Any:
        try:
            return handler(value)
        except ValidationError:
            raise failure([problem((), f"must be {words}", value)]) from None

    return WrapValidator(validate)


@lru_cache(maxsize=512)
def adapter(option: OptionInfo) -> TypeAdapter[Any]:
    """Checks values of an option: its type and its limits."""
    return TypeAdapter(option_type(option))


def option_type(option: OptionInfo) -> Any:
    """The pydantic type of an option; ConfigError for an annotation that recipes do not support."""
    return _type(ast.parse(option.annotation, mode="eval").body, option)


def supported(annotation: str) -> bool:
    """Whether an annotation is made of int, float, bool, str, tuple[...], Literal[...] and `X | None`."""
    try:
        option_type(OptionInfo("option", annotation))
    except ConfigError:
        return False
    return True


def describe(annotation: str) -> str:
    """An annotation in words: `a list of 2 numbers`, `"a" or "b"`."""
    return _describe(ast.parse(annotation, mode="eval").body)


def _type(node: ast.expr, option: OptionInfo) -> Any:
    text = ast.unparse(node)
    if text in SCALARS:
        return reduce(_limited, _limits(option), SCALARS[text]) if text in NUMBERS else SCALARS[text]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _union(node, option)
    if isinstance(node, ast.Subscript):
        build = GENERICS.get(ast.unparse(node.value).removeprefix("typing."))
        if build is not None:
            return build(node, option)
    raise ConfigError(
        f"the annotation of option {option.name!r} is not one that recipes can read",
        expected="int, float, bool, str, tuple[...], Literal[...], or one of these | None",
        got=option.annotation,
    )


def _limited(inner: Any, limit: Any) -> Any:
    return Annotated[inner, limit]


def _limits(option: OptionInfo) -> Iterator[Any]:
    for limit, build in ((option.above, Gt), (option.minimum, Ge), (option.maximum, Le)):
        if limit is not None:
            yield build(limit)


def _members(node: ast.expr) -> list[ast.expr]:
    """Members of `A | B | None`, from left to right."""
    if isinstance(node, ast.BinOp):
        return [*_members(node.left), *_members(node.right)]
    return [node]


def _union(node: ast.expr, option: OptionInfo) -> Any:
    members = _members(node)
    real = [member for member in members if ast.unparse(member) != "None"]
    types = [_type(member, option) for member in members]
    union = reduce(operator.or_, types) if len(types) > 1 else types[0]
    if len(real) == 1:
        return union
    limits = f", {option.range}" if option.range else ""
    return Annotated[union, in_one_message(_describe(node) + limits)]


def _tuple(node: ast.Subscript, option: OptionInfo) -> Any:
    inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if len(inner) == 2 and isinstance(inner[1], ast.Constant) and inner[1].value is Ellipsis:
        return tuple[_type(inner[0], option), ...]
    members = tuple(_type(member, option) for member in inner)
    words = _describe(node)

    def same_length(value: Any, handler: Callable[[Any], Any]) -> Any:
        if not isinstance(value, list | tuple) or len(value) != len(members):
            raise failure([problem((), f"must be {words}", value)])
        return handler(value)

    return Annotated[tuple.__class_getitem__(members), WrapValidator(same_length)]


def _literal(node: ast.Subscript, option: OptionInfo) -> Any:
    del option
    return Literal[_literal_values(node)]


def _literal_values(node: ast.Subscript) -> tuple[Any, ...]:
    values = ast.literal_eval(node.slice)
    return values if isinstance(values, tuple) else (values,)


GENERICS: dict[str, Callable[[ast.Subscript, OptionInfo], Any]] = {"tuple": _tuple, "Literal": _literal}


def _describe(node: ast.expr, names: dict[str, str] = SINGULARS) -> str:
    text = ast.unparse(node)
    if isinstance(node, ast.BinOp):
        return " or ".join(_describe(member, names) for member in _members(node))
    if not isinstance(node, ast.Subscript):
        return names.get(text, text)
    if text.startswith("Literal"):
        return " or ".join(repr(value) for value in _literal_values(node))
    inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    first = _describe(inner[0], PLURALS)
    endless = ast.unparse(inner[-1]) in ("...", "Ellipsis")
    return f"a list of {first}" if endless else f"a list of {len(inner)} {first}"
