"""A YAML text as plain values, with the line and column of every key and value.

Only plain data come out: mappings, lists, text, whole numbers, numbers, true/false, null, spelled as in
YAML 1.2 (`1e-3` is a number; `on`, `no` and `12:30` are text). Tags, repeated keys, oversized texts and
alias bombs are refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from sciml.errors import ConfigError, PermissionDeniedError
from sciml.recipe.messages import Location, RecipeError
from sciml.registry import suggestion

Places = dict[Location, tuple[int, int]]
"""Line and column, counted from 1, by location."""

START = "`sciml init` writes a recipe to start from"
MAX_BYTES = 1_000_000
MAX_NODES = 20_000
MAX_DEPTH = 40
TAG = "tag:yaml.org,2002:"
BOOLEANS = {"true": True, "false": False}
SPECIAL_FLOATS = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
RESOLVERS = (
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    (
        "float",
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|" + SPECIAL_FLOATS.pattern,
        "-+0123456789.",
    ),
)


class Yaml12Loader(yaml.SafeLoader):
    """The safe loader with the scalars of the YAML 1.2 core schema instead of those of YAML 1.1."""

    yaml_implicit_resolvers: dict[str, list[Any]] = {}


class Yaml12Dumper(yaml.SafeDumper):
    """Writes text so that `Yaml12Loader` reads the same values back."""

    yaml_implicit_resolvers: dict[str, list[Any]] = {}

    def ignore_aliases(self, data: Any) -> bool:
        """Never write anchors: a repeated value is written out again."""
        del data
        return True


for _name, _pattern, _first in RESOLVERS:
    _letters = ["" if letter == "\0" else letter for letter in _first]
    for _class in (Yaml12Loader, Yaml12Dumper):
        _class.add_implicit_resolver(TAG + _name, re.compile(f"(?:{_pattern})$"), _letters)


class PlacedDict(dict[str, Any]):
    """A dict that remembers where it was written (`heat.yaml:4:7`)."""

    where: str = ""


@dataclass(frozen=True)
class Document:
    """Values of a recipe file and where each key and value stands (line and column count from 1).

    `origins` names the command-line override that supplied a value, by the location it replaced.
    """

    values: dict[str, Any]
    name: str
    keys: Places = field(default_factory=dict)
    marks: Places = field(default_factory=dict)
    origins: dict[Location, str] = field(default_factory=dict)

    def where(self, location: Location, *, at_key: bool = False) -> str:
        """`file:line:column`, or `command line: key=value`, of the nearest known part of a location."""
        for length in range(len(location), -1, -1):
            part = location[:length]
            if part in self.origins:
                return f"command line: {self.origins[part]}"
            missing_part = length < len(location)
            places = (self.keys, self.marks) if at_key or missing_part else (self.marks, self.keys)
            place = next((table[part] for table in places if part in table), None)
            if place is not None:
                return f"{self.name}:{place[0]}:{place[1]}"
        return f"{self.name}:1:1"


def load(path: Path, start: str = START) -> Document:
    """Read a recipe file; ConfigError (with file:line:column) for anything that is not one plain mapping.

    `start` tells whoever gives an empty file how to begin.
    """
    return parse(_text(path), str(path), start)


def parse(text: str, name: str, start: str = START) -> Document:
    """Same as `load`, for a text; `name` stands for the file in messages."""
    root = _compose(text, name)
    if not isinstance(root, yaml.MappingNode):
        what = "is empty" if root is None else "does not hold a mapping (key: value) at its top level"
        raise RecipeError(name, [f"{name}:1:1: the file {what}; {start}"])
    builder = _Builder(name)
    values = builder.build(root, ())
    if builder.problems:
        raise RecipeError(name, builder.problems)
    return Document(values, name, builder.keys, builder.marks)


def dump(values: Any) -> str:
    """YAML text of plain values; `parse` reads them back unchanged."""
    return yaml.dump(
        values, Dumper=Yaml12Dumper, sort_keys=False, default_flow_style=None, allow_unicode=True, width=100
    )


def _text(path: Path) -> str:
    try:
        if path.is_file() and path.stat().st_size > MAX_BYTES:
            size = f"{path.stat().st_size} bytes"
            raise ConfigError(f"{path} is too large for a recipe", expected=f"<= {MAX_BYTES} bytes", got=size)
        raw = path.read_bytes()
    except FileNotFoundError:
        nearby = [p.name for p in path.parent.glob("*.y*ml")] if path.parent.is_dir() else []
        raise ConfigError(f"no recipe file {path}{suggestion(path.name, nearby)}", fix="sciml init heat") from None
    except PermissionError as error:
        raise PermissionDeniedError(f"cannot read {path}", reason=error.strerror) from error
    except OSError as error:
        raise ConfigError(f"cannot read {path}", expected="a YAML file", reason=error.strerror) from error
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        byte = f"byte 0x{raw[error.start]:02x}"
        message = f"{path}:{line}:{column}: the file must be UTF-8 text (got {byte})"
        raise RecipeError(str(path), [message]) from error


def _compose(text: str, name: str) -> yaml.Node | None:
    try:
        return yaml.compose(text, Loader=Yaml12Loader)
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        line, column = before.count("\n") + 1, error.position - before.rfind("\n")
        what = f"a character that YAML does not allow (got {chr(ord(text[error.position]))!r})"
        raise RecipeError(name, [f"{name}:{line}:{column}: {what}"]) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{mark.line + 1}:{mark.column + 1}" if mark else "1:1"
        what = _explain(error, text)
        raise RecipeError(name, [f"{name}:{place}: not valid YAML: {what}"]) from error
    except RecursionError as error:
        raise RecipeError(name, [f"{name}:1:1: nested too deeply (at most {MAX_DEPTH} levels)"]) from error


def _explain(error: yaml.MarkedYAMLError, text: str) -> str:
    mark = error.problem_mark
    line = text.split("\n")[mark.line] if mark else ""
    if "\t" in line[: len(line) - len(line.lstrip())] or "\\t" in (error.problem or ""):
        return "a tab indents this line; indent by spaces"
    context = f" ({error.context})" if error.context else ""
    return f"{error.problem}{context}"


@dataclass
class _Builder:
    """Turns nodes into values and collects every problem on the way."""

    name: str
    keys: Places = field(default_factory=dict)
    marks: Places = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    count: int = 0

    def build(self, node: yaml.Node, location: Location) -> Any:
        self.count += 1
        if self.count > MAX_NODES or len(location) > MAX_DEPTH:
            limits = f"at most {MAX_NODES} values, {MAX_DEPTH} levels"
            message = f"{self._at(node)}: too large once its aliases are expanded ({limits})"
            raise RecipeError(self.name, [message])
        self.marks[location] = (node.start_mark.line + 1, node.start_mark.column + 1)
        if node.tag.removeprefix(TAG) not in ("map", "seq", "str", "null", "bool", "int", "float"):
            tag = node.tag.replace(TAG, "!!")
            self.problems.append(f"{self._at(node)}: the tag {tag!r} is not allowed, only plain values are")
            return None
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, location)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(child, (*location, index)) for index, child in enumerate(node.value)]
        return self._scalar(node)

    def _at(self, node: yaml.Node) -> str:
        return f"{self.name}:{node.start_mark.line + 1}:{node.start_mark.column + 1}"

    def _mapping(self, node: yaml.MappingNode, location: Location) -> PlacedDict:
        values = PlacedDict()
        values.where = self._at(node)
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self.problems.append(f"{self._at(key_node)}: a key must be text")
                continue
            key = key_node.value
            inner = (*location, key)
            if key in values:
                first = self.keys[inner][0]
                self.problems.append(f"{self._at(key_node)}: the key {key!r} is given twice, first in line {first}")
                continue
            self.keys[inner] = (key_node.start_mark.line + 1, key_node.start_mark.column + 1)
            values[key] = self.build(value_node, inner)
        return values

    def _scalar(self, node: yaml.Node) -> Any:
        kind = node.tag.removeprefix(TAG)
        try:
            return SCALARS[kind](node.value)
        except (ValueError, KeyError):
            self.problems.append(f"{self._at(node)}: not a value of the type !!{kind} (got {node.value!r})")
            return None


def _integer(text: str) -> int:
    based = text.startswith(("0o", "0x"))
    return int(text, 0) if based else int(text, 10)


def _float(text: str) -> float:
    return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))


SCALARS = {
    "str": str,
    "null": lambda text: None,
    "bool": lambda text: BOOLEANS[text.lower()],
    "int": _integer,
    "float": _float,
}
