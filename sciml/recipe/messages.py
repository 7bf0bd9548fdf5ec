"""Validation errors in the words of a recipe: `file:line:column: path: what is wrong (got ...)`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from pydantic import ValidationError
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from sciml.errors import ConfigError
from sciml.registry import suggestion

Location = tuple[str | int, ...]

PLAIN = "recipe"
"""Type of our own errors that show the value they got."""
AT_KEY = "recipe_key"
"""Type of our own errors that point to a key and show no value."""

KEY = "[key]"
"""What pydantic appends to the location of a mapping's key that is not allowed."""

WORDS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "missing": lambda ctx: "this key is required",
    "greater_than": lambda ctx: f"must be > {ctx['gt']:g}",
    "greater_than_equal": lambda ctx: f"must be >= {ctx['ge']:g}",
    "less_than": lambda ctx: f"must be < {ctx['lt']:g}",
    "less_than_equal": lambda ctx: f"must be <= {ctx['le']:g}",
    "int_type": lambda ctx: "must be a whole number",
    "float_type": lambda ctx: "must be a number",
    "finite_number": lambda ctx: "must be a finite number",
    "string_type": lambda ctx: "must be text",
    "bool_type": lambda ctx: "must be true or false",
    "dict_type": lambda ctx: "must be a mapping (key: value)",
    "model_type": lambda ctx: "must be a mapping (key: value)",
    "tuple_type": lambda ctx: "must be a list",
    "literal_error": lambda ctx: f"must be {ctx['expected']}",
    "too_short": lambda ctx: f"must have at least {ctx['min_length']} entries",
    "too_long": lambda ctx: f"must have at most {ctx['max_length']} entries",
}


class RecipeError(ConfigError):
    """A recipe with mistakes; `problems` has one line for each of them."""

    def __init__(self, name: str, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        count = "1 mistake" if len(self.problems) == 1 else f"{len(self.problems)} mistakes"
        super().__init__("\n".join([f"{name}: {count}", *self.problems]))


class Places(Protocol):
    """Where the parts of a recipe were written."""

    def where(self, location: Location, *, at_key: bool = False) -> str:
        """`file:line:column` or `command line: key=value`."""
        ...


def problem(location: Iterable[str | int], message: str, got: Any = None, *, at_key: bool = False) -> InitErrorDetails:
    """One mistake at `location`; `got` is shown unless `at_key`."""
    kind = AT_KEY if at_key else PLAIN
    error = PydanticCustomError(kind, "{message}", {"message": message})
    return InitErrorDetails(type=error, loc=tuple(location), input=got)


def unknown_key(location: Iterable[str | int], key: str, known: Iterable[str]) -> InitErrorDetails:
    """The mistake of a key that nothing reads, with the nearest one or all that would be read."""
    known = list(known)
    hint = suggestion(key, known) or f", known here: {', '.join(known) or 'none'}"
    return problem((*location, key), f"unknown key {key!r}{hint}", at_key=True)


def missing_key(location: Iterable[str | int], key: str) -> InitErrorDetails:
    """The mistake of a key that must be there."""
    return problem((*location, key), "this key is required", at_key=True)


def failure(problems: Iterable[InitErrorDetails]) -> ValidationError:
    """Mistakes as an exception that pydantic merges into the one of the surrounding section."""
    return ValidationError.from_exception_data("recipe", list(problems))


def again(details: ErrorDetails, prefix: Location = ()) -> InitErrorDetails:
    """A reported mistake made ready to be raised again, below `prefix`."""
    shown = "got" if details["type"] not in (AT_KEY, "missing") else None
    location = (*prefix, *details["loc"])
    return problem(location, words(details), details["input"] if shown else None, at_key=shown is None)


def words(details: ErrorDetails) -> str:
    """What is wrong, without the place and the value."""
    say = WORDS.get(details["type"])
    message = say(details.get("ctx", {})) if say else details["msg"]
    if details["type"] == "literal_error":
        known = re.findall(r"'([^']*)'", message)
        return message + suggestion(str(details["input"]), known)
    return message


def lines(errors: Iterable[ValidationError], places: Places) -> list[str]:
    """All mistakes, once each, in the order of the file, as `file:line:column: path: what (got ...)`."""
    details = [details for error in errors for details in error.errors(include_url=False)]
    return sorted({_line(one, places): None for one in details}, key=_position)


def _line(details: ErrorDetails, places: Places) -> str:
    at_key = details["type"] in (AT_KEY, "missing")
    about_key = details["loc"][-1:] == (KEY,)
    location = details["loc"][:-1] if about_key else details["loc"]
    path = ".".join(str(part) for part in location)
    message, comma, hint = words(details).partition(", did you mean")
    got = "" if at_key else f" (got {shorten(details['input'])})"
    head = places.where(location, at_key=at_key or about_key)
    return f"{head}: {path}: {message}{got}{comma}{hint}" if path else f"{head}: {message}{got}"


def _position(line: str) -> tuple[int, ...]:
    """Sort key: line and column where the message has them (overrides come last)."""
    numbers = [part for part in line.split(": ")[0].rsplit(":", 2)[1:] if part.isdigit()]
    return tuple(int(number) for number in numbers) or (10**9,)


def shorten(value: Any) -> str:
    """A value as the recipe spells it, in at most 60 characters."""
    names = {None: "null", True: "true", False: "false"}
    plain = isinstance(value, bool) or value is None
    text = names[value] if plain else repr(value)
    return text if len(text) <= 60 else f"{text[:28]}...{text[-29:]}"  # the end of a path says most
