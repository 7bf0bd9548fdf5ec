"""The points of a sweep: one recipe per combination of values, all of them checked before anything is run."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sciml.errors import ConfigError
from sciml.recipe.messages import RecipeError
from sciml.recipe.reading import read
from sciml.recipe.recipe import Recipe
from sciml.registry import suggestion

NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
RANGE = re.compile(rf"(?P<low>{NUMBER}):(?P<high>{NUMBER}):(?P<count>\d+)(?P<log>:log)?")
OPENING, CLOSING, QUOTES = "[{", "]}", "'\""
KEPT = re.compile(r"[^\w.+=-]+")
LONGEST = 120
FIXED = ("name", "run")
EXAMPLE = "models.fno.width=16,32 or seed=0:4:5"


@dataclass(frozen=True)
class Point:
    """One combination: the name of its folder, the values as text by swept key, and the whole recipe."""

    name: str
    values: Mapping[str, str]
    recipe: Recipe


@dataclass(frozen=True)
class Swept:
    """A key and the values it takes, spelled as in a recipe."""

    key: str
    values: tuple[str, ...]


def points(path: Path | str, assignments: Sequence[str], *, grid: bool = True) -> tuple[Point, ...]:
    """All points of `key=v1,v2 key=low:high:count key=low:high:count:log`; a key with one value is the same in all.

    `grid`: every combination; otherwise the first values of all keys, the second ones, and so on. Raises ConfigError
    (78) for keys that the recipe does not have, values it does not accept, points that are the same, and lists of
    different lengths.
    """
    swept = [_swept(text) for text in assignments]
    fixed = [f"{s.key}={s.values[0]}" for s in swept if len(s.values) == 1]
    varied = [s for s in swept if len(s.values) > 1]
    _refuse_bad_keys(swept, varied)
    base = read(path, fixed)
    combinations = itertools.product(*(s.values for s in varied)) if grid else _paired(varied)
    keys = [s.key for s in varied]
    chosen = [dict(zip(keys, values, strict=True)) for values in combinations]
    recipes = _recipes(path, fixed, chosen, base)
    labels = _labels(keys)
    names = [_name(labels, values) for values in chosen]
    unique = [name if names.count(name) == 1 else _hashed(name, v) for name, v in zip(names, chosen, strict=True)]
    _refuse_twins(unique, recipes)
    return tuple(Point(n, v, r) for n, v, r in zip(unique, chosen, recipes, strict=True))


def split(text: str) -> tuple[str, ...]:
    """The values in `v1,v2` or `low:high:count`; commas inside brackets or quotes do not separate."""
    found = RANGE.fullmatch(text.strip())
    return tuple(_range(found, text)) if found else tuple(_pieces(text))


def _swept(text: str) -> Swept:
    key, equals, written = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError("a swept key must read key=v1,v2 or key=low:high:count", got=text, fix=EXAMPLE)
    values = split(written)
    twice = sorted({value for value in values if values.count(value) > 1})
    if twice:
        kept = ",".join(dict.fromkeys(values))
        raise ConfigError(f"{key}: the value {twice[0]} is there twice", got=text, fix=f"{key}={kept}")
    return Swept(key.strip(), values)


def _pieces(text: str) -> Iterator[str]:
    depth, quote, start = 0, "", 0
    for index, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in QUOTES:
            quote = letter
        elif letter == "," and not depth:
            yield text[start:index].strip()
            start = index + 1
        else:
            depth += (letter in OPENING) - (letter in CLOSING)
    yield text[start:].strip()


def _range(found: re.Match[str], text: str) -> Iterator[str]:
    low, high, count = float(found["low"]), float(found["high"]), int(found["count"])
    if count < 2:
        raise ConfigError("a range needs at least two values", expected="low:high:count", got=text, fix=EXAMPLE)
    if found["log"] and (low <= 0 or high <= 0):
        raise ConfigError("a logarithmic range needs positive ends", expected="low > 0 and high > 0", got=text)
    for index in range(count):
        share = index / (count - 1)
        value = low ** (1 - share) * high**share if found["log"] else low + (high - low) * share
        whole = value == int(value) and "." not in found["low"] + found["high"] and not found["log"]
        yield str(int(value)) if whole else f"{value:.10g}"


def _refuse_bad_keys(swept: Sequence[Swept], varied: Sequence[Swept]) -> None:
    keys = [s.key for s in swept]
    for key in keys:
        if key in FIXED:
            raise ConfigError(f"{key} cannot be swept", reason="each point has a folder of its own", fix="-o FOLDER")
        if keys.count(key) > 1:
            raise ConfigError(f"the key {key} is given twice", fix=f"all its values in one word: {key}=v1,v2")
    if not varied:
        raise ConfigError("nothing to sweep: no key has more than one value", got=" ".join(keys) or None, fix=EXAMPLE)


def _paired(varied: Sequence[Swept]) -> Iterator[tuple[str, ...]]:
    if len({len(s.values) for s in varied}) > 1:
        raise ConfigError(
            "--list takes the first values of all keys, then the second ones: all need the same number of values",
            got=", ".join(f"{s.key}: {len(s.values)}" for s in varied),
            fix="--grid, for every combination",
        )
    return zip(*(s.values for s in varied), strict=True)


def _recipes(path: Path | str, fixed: list[str], chosen: list[dict[str, str]], base: Recipe) -> list[Recipe]:
    """The recipe of each point; the mistakes of all points at once."""
    recipes, problems = [], {}
    for values in chosen:
        try:
            recipes.append(read(path, [*fixed, *(f"{key}={value}" for key, value in values.items())]))
        except RecipeError as error:
            problems |= dict.fromkeys(error.problems)
    if problems:
        known = list(_keys(base.plain(), ""))
        told = any("unknown key" in line for line in problems)
        absent = [] if told else [key for key in chosen[0] if key not in known]
        hints = [f"the recipe has no key {key}{suggestion(key, known)}" for key in absent]
        raise RecipeError(str(path), [*problems, *hints])
    return recipes


def _keys(values: Any, prefix: str) -> Iterator[str]:
    for key, inner in values.items() if isinstance(values, Mapping) else ():
        yield f"{prefix}{key}"
        yield from _keys(inner, f"{prefix}{key}.")


def _labels(keys: Sequence[str]) -> dict[str, str]:
    """The shortest ending of each key that no other key shares: `width` for `models.fno.width`."""
    endings = {key: [".".join(key.split(".")[-n:]) for n in range(1, key.count(".") + 2)] for key in keys}
    others = {key: {e for other in keys if other != key for e in endings[other]} for key in keys}
    return {key: next((e for e in endings[key] if e not in others[key]), key) for key in keys}


def _name(labels: Mapping[str, str], values: Mapping[str, str]) -> str:
    """`width=16,modes=8-8`: usable as the name of a folder in any shell without quotes."""
    parts = [f"{labels[key]}={KEPT.sub('-', value).strip('-') or 'none'}" for key, value in values.items()]
    name = ",".join(parts)
    return name if len(name) <= LONGEST else _hashed(name[: LONGEST // 2], values)


def _hashed(name: str, values: Mapping[str, str]) -> str:
    return f"{name}-{hashlib.sha256(repr(sorted(values.items())).encode()).hexdigest()[:8]}"


def _refuse_twins(names: Sequence[str], recipes: Sequence[Recipe]) -> None:
    seen: dict[str, str] = {}
    for name, recipe in zip(names, recipes, strict=True):
        first = seen.setdefault(recipe.hash(), name)
        if first != name or names.count(name) > 1:
            raise ConfigError(
                "two points of the sweep are the same recipe",
                got=f"{first} and {name}",
                reason="the same value is spelled in two ways, or a key changes nothing",
                fix="each value once",
            )
