"""A class is abstract or final: what is instantiated is not subclassed, and no working method is overridden."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import textwrap
from typing import Any

import pytest
from comparison import assert_none


@pytest.fixture(scope="module")
def classes(sources) -> list[type]:
    """Every class that the package defines, exceptions (a hierarchy by nature) left out."""
    modules = [importlib.import_module(source.module) for source in sources]
    found = {
        value: None
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == module.__name__
    }
    return [cls for cls in found if not issubclass(cls, BaseException)]


def _own_bases(cls: type) -> list[type]:
    return [base for base in cls.__mro__[1:] if base.__module__.startswith("sciml")]


def _fields(cls: type) -> set[str]:
    """Instance fields that the class itself declares, as a dataclass or a pydantic model."""
    own = set(inspect.get_annotations(cls))
    declared = {f.name for f in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else set()
    declared |= set(getattr(cls, "model_fields", {}))
    return own & declared


def _is_neutral(method: Any) -> bool:
    """A part that may be left out: besides words, the method only returns a constant, nothing, or its argument."""
    try:
        (function,) = ast.parse(textwrap.dedent(inspect.getsource(method))).body
    except (OSError, TypeError, SyntaxError):
        return False
    if not isinstance(function, ast.FunctionDef):
        return False
    body = [n for n in function.body if not isinstance(n, ast.Delete | ast.Expr)]
    return all(isinstance(n, ast.Return) and _is_literal(n.value) for n in body)


def _is_literal(value: ast.expr | None) -> bool:
    if value is None or isinstance(value, ast.Constant | ast.Name):
        return True
    return isinstance(value, ast.Dict | ast.Tuple | ast.List) and not list(ast.iter_child_nodes(value))[1:]


def test_fields_live_in_one_class(classes):
    """A class with fields is final: nothing inherits from it."""
    assert_none(
        f"{cls.__module__}.{cls.__qualname__} inherits from {base.__qualname__}, which has the fields {_fields(base)}"
        for cls in classes
        for base in _own_bases(cls)
        if _fields(base)
    )


def test_no_working_method_is_overridden(classes):
    """What a base class does is not undone; abstract methods and parts with a neutral default are filled in."""
    assert_none(
        f"{cls.__module__}.{cls.__qualname__}.{name} overrides {base.__qualname__}.{name}"
        for cls in classes
        for base in _own_bases(cls)
        for name, method in vars(base).items()
        if name in vars(cls)
        and not name.startswith("__")
        and inspect.isfunction(method)
        and name not in getattr(base, "__abstractmethods__", ())
        and not _is_neutral(method)
    )


def test_dataclasses_are_frozen(classes):
    assert_none(
        f"{cls.__module__}.{cls.__qualname__}"
        for cls in classes
        if dataclasses.is_dataclass(cls) and not cls.__dataclass_params__.frozen and cls.__name__[0] != "_"
    )
