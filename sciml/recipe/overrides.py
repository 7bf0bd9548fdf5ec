"""`key.sub=value` on the command line: changes to a recipe before it is checked."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

from sciml.recipe.document import Document, PlacedDict, parse
from sciml.recipe.messages import Location, RecipeError


def overridden(document: Document, assignments: Sequence[str]) -> Document:
    """The document with `key.sub=value` texts applied in order; a later one wins. All mistakes are raised at once.

    Values are read as in the file. Missing sections are made, a number is an entry of a list, and the options of
    a bare name can be set (`optimizer: adam`, then `optimizer.learning_rate=1e-4`).
    """
    changed = copy.deepcopy(document)
    problems = [problem for text in assignments for problem in _mistakes(changed, text)]
    if problems:
        raise RecipeError(document.name, problems)
    return changed


def _mistakes(document: Document, text: str) -> Iterator[str]:
    """Put one override in its place, or say what is wrong with it."""
    name, equals, written = text.partition("=")
    keys = name.strip().split(".")
    if not equals or not all(keys):
        yield f"command line: {text}: an override must read key.sub=value"
        return
    try:
        # Flow context would end plain text at a comma; a one-key block mapping reads it as the file would.
        inner = parse(f"value: {written}" if written.strip() else "value: null", text)
    except RecipeError as error:
        what = error.problems[0].removeprefix(f"{text}:").partition(": ")[2]
        yield f"command line: {text}: {what}"
        return
    try:
        container, location = _open(document.values, keys[:-1])
        last = _step(container, keys[-1])
    except LookupError as error:
        yield f"command line: {text}: {error.args[0]}"
        return
    container[last] = inner.values["value"]
    location = (*location, last)
    for table in (document.keys, document.marks, document.origins):
        for old in [known for known in table if known[: len(location)] == location]:
            del table[old]
    document.origins[location] = text


def _open(values: dict[str, Any], keys: Sequence[str]) -> tuple[Any, Location]:
    """What `keys` lead to; a missing mapping is made, a bare name becomes `{kind: name}`."""
    container: Any = values
    location: Location = ()
    for key in keys:
        step = _step(container, key)
        child = container[step] if isinstance(step, int) else container.get(step)
        if child is None:
            child = PlacedDict()
        elif isinstance(child, str):
            child = PlacedDict(kind=child)
        container[step] = child
        container, location = child, (*location, step)
    return container, location


def _step(container: Any, key: str) -> str | int:
    if isinstance(container, dict):
        return key
    if not isinstance(container, list):
        raise LookupError(f"{key!r} has no place in a single value (got {container!r})")
    if not key.isdecimal() or int(key) >= len(container):
        raise LookupError(f"{key!r} is not an entry of a list of {len(container)} (count from 0)")
    return int(key)
