"""Draws the real import graph into architecture.md:   python docs/architecture_graph.py [--check]

Nodes are the modules and packages that the layer contract in pyproject.toml names, edges the imports found in the
source. With --check nothing is written; the exit status tells whether the page agrees with the code.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import grimp
from generated import update

ROOT = Path(__file__).resolve().parent.parent


def layers() -> list[list[str]]:
    """Names in each layer, highest layer first."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    contract = next(c for c in tools["importlinter"]["contracts"] if c["type"] == "layers")
    return [[name.strip(" ()") for name in line.replace("|", ":").split(":")] for line in contract["layers"]]


def imports(nodes: list[str]) -> dict[str, set[str]]:
    """For each node the other nodes that any of its modules imports."""
    graph = grimp.build_graph("sciml", cache_dir=None)
    found: dict[str, set[str]] = {node: set() for node in nodes}
    for module in graph.modules:
        owner = _owner(module, nodes)
        for imported in graph.find_modules_directly_imported_by(module):
            target = _owner(imported, nodes)
            if owner and target and owner != target:
                found[owner].add(target)
    return found


def _owner(module: str, nodes: list[str]) -> str | None:
    matches = [node for node in nodes if module == node or module.startswith(f"{node}.")]
    return max(matches, key=len, default=None)


def reduced(edges: dict[str, set[str]]) -> dict[str, set[str]]:
    """The edges that no longer path implies, for a drawing that can be read."""
    below = {node: _reachable(node, edges) for node in edges}
    return {
        node: {t for t in targets if not any(t in below[other] for other in targets if other != t)}
        for node, targets in edges.items()
    }


def _reachable(node: str, edges: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    waiting = list(edges[node])
    while waiting:
        following = waiting.pop()
        if following not in seen:
            seen.add(following)
            waiting.extend(edges[following])
    return seen


def text() -> str:
    """The graph as a mermaid drawing and as a table, in the order of the layers."""
    rows = layers()
    nodes = [node for row in rows for node in row]
    edges = imports(nodes)
    short = {node: node.removeprefix("sciml.") for node in nodes}
    drawing = ["```mermaid", "flowchart TD"]
    drawing += [f"    {short[n].replace('.', '_')}[{short[n]}]" for n in nodes]
    drawing += [
        f"    {short[n].replace('.', '_')} --> {short[t].replace('.', '_')}"
        for n, targets in reduced(edges).items()
        for t in sorted(targets)
    ]
    table = ["| layer | part | imports |", "|---|---|---|"]
    for number, row in zip(range(len(rows), 0, -1), rows, strict=True):
        for node in row:
            table.append(f"| {number} | `{short[node]}` | {', '.join(short[t] for t in sorted(edges[node])) or '–'} |")
    return "\n".join([*drawing, "```", "", *table])


if __name__ == "__main__":
    sys.exit(update("architecture.md", "architecture_graph.py", text()))
