"""The source files of the package, read and parsed once for all tests of this folder."""

from __future__ import annotations

import ast
import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

FOLDERS = ("sciml", "solvers", "operators", "pinn")


@dataclasses.dataclass(frozen=True)
class Source:
    """One Python file: its path relative to the repository, its text and its syntax tree."""

    path: Path
    text: str
    tree: ast.Module

    @property
    def module(self) -> str:
        """Import name: `solvers/etd.py` is `sciml.solvers.etd`."""
        parts = self.path.with_suffix("").parts
        parts = parts if parts[0] == "sciml" else ("sciml", *parts)
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        """Every function and method, nested ones included."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node

    def at(self, node: ast.stmt | ast.expr) -> str:
        """Where a node stands, clickable in a terminal."""
        return f"{self.path}:{node.lineno}"


def _files(folder: Path) -> Iterator[Path]:
    # os.walk does not follow links: solvers/ is read once, as solvers/ and not as sciml/solvers/.
    for directory, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        yield from (Path(directory, name) for name in sorted(files) if name.endswith(".py"))


def _read(root: Path, folders: tuple[str, ...]) -> tuple[Source, ...]:
    paths = [path for folder in folders for path in _files(root / folder)]
    texts = [path.read_text(encoding="utf-8") for path in paths]
    return tuple(Source(path.relative_to(root), text, ast.parse(text)) for path, text in zip(paths, texts, strict=True))


@pytest.fixture(scope="session")
def sources(repository: Path) -> tuple[Source, ...]:
    """Every Python file of the package."""
    return _read(repository, FOLDERS)


@pytest.fixture(scope="session")
def test_sources(repository: Path) -> tuple[Source, ...]:
    """Every Python file of the tests, examples, benchmarks and docs."""
    return _read(repository, ("tests", "examples", "benchmarks", "docs"))
