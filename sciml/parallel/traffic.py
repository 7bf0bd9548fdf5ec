"""What a compiled program sends between devices, counted in its text (XLA's HLO).

Bytes are those that one device sends in a ring: all-reduce 2b(g-1)/g, reduce-scatter b(g-1), all-gather and
all-to-all b(g-1)/g, collective-permute b, with b the size of the result and g the size of the group.
Operations in a loop with a known number of trips count that many times.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sciml.parallel.groups import Groups, groups

FORMULAS: dict[str, Callable[[float, int], float]] = {
    "all-reduce": lambda b, g: 2 * b * (g - 1) / g,
    "reduce-scatter": lambda b, g: b * (g - 1),
    "all-gather": lambda b, g: b * (g - 1) / g,
    "all-to-all": lambda b, g: b * (g - 1) / g,
    "collective-permute": lambda b, g: b,
}
_WIDTHS = {"pred": 1, "bf16": 2, "f16": 2, "c64": 8, "c128": 16}
_KINDS = "|".join(FORMULAS)
_OPERATION = re.compile(rf"%?(?P<name>[\w.\-]+) = (?P<type>.+?) (?P<kind>{_KINDS})(?P<part>-start|-done)?\(")
_OPERAND = re.compile(r"-done\((?:.* )?%?([\w.\-]+)\)")
_ARRAY = re.compile(r"\b([a-z]+\d+|pred)\[([\d,]*)\]")
_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) \(.*\{$")
_CALLED = re.compile(r"(?:body|to_apply|calls|branch_computations)=\{?(%[\w.\-]+(?:, ?%[\w.\-]+)*)")
_TRIPS = re.compile(r"known_trip_count[^\d]*(\d+)")


@dataclass(frozen=True)
class Collective:
    """One communication: its kind, bytes that a device sends, array sizes of the result, how often it runs, and
    between which devices.
    """

    kind: str
    sent: float
    shapes: tuple[tuple[int, ...], ...]
    times: int = 1
    groups: Groups = ()


def collectives(hlo: str) -> list[Collective]:
    """All communications between more than one device in `compiled.as_text()`."""
    bodies = dict(_computations(hlo))
    entry = next(name for name, _ in bodies.items() if f"ENTRY %{name} " in hlo or f"ENTRY {name} " in hlo)
    return list(_walk(entry, bodies, 1))


def bytes_sent(hlo: str) -> float:
    """Bytes that one device sends in one run of the program."""
    return sum(c.sent * c.times for c in collectives(hlo))


def _computations(hlo: str) -> Iterator[tuple[str, list[str]]]:
    name, lines = "", []
    for line in hlo.splitlines():
        head = _COMPUTATION.match(line)
        if head:
            name, lines = head.group(1), []
        elif line.startswith("}"):
            yield name, lines
        else:
            lines.append(line.strip())


def _walk(name: str, bodies: dict[str, list[str]], times: int) -> Iterator[Collective]:
    started: dict[str, str] = {}
    for line in bodies.get(name, ()):
        found = _OPERATION.search(line)
        if found:
            if found["part"] == "-start":  # its type holds operands and more; the end's is the result
                started[found["name"]] = line
            else:
                ended = _OPERAND.search(line) if found["part"] else None
                yield from _collective(found, started[ended[1]] if ended else line, times)
            continue
        trips = _TRIPS.search(line)
        inner = times * int(trips.group(1)) if trips else times
        for group in _CALLED.findall(line):
            for called in group.replace("%", "").split(","):
                yield from _walk(called.strip(), bodies, inner)


def _collective(found: re.Match[str], line: str, times: int) -> Iterator[Collective]:
    arrays = [(kind, tuple(int(n) for n in sizes.split(",") if n)) for kind, sizes in _ARRAY.findall(found["type"])]
    members = groups(line)
    group = len(members[0]) if members else 2  # an unnamed group is of all devices; there are at least two
    if group > 1:
        size = sum(_width(kind) * math.prod(shape) for kind, shape in arrays)
        shapes = tuple(shape for _, shape in arrays)
        yield Collective(found["kind"], FORMULAS[found["kind"]](size, group), shapes, times, members)


def _width(kind: str) -> float:
    return _WIDTHS[kind] if kind in _WIDTHS else int(re.sub(r"\D", "", kind)) / 8
