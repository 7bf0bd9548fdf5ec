"""Choice by registry, documented names, 64-bit numbers wherever jax is used."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from comparison import assert_none

MAX_STRING_COMPARISONS = 2


def _string_comparisons(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Counter[str]:
    """How often each expression of a function is compared with a string literal, by `==` or `match`."""
    counts: Counter[str] = Counter()
    for node in ast.walk(function):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq):
            sides = (node.left, node.comparators[0])
            subject = " ".join(ast.unparse(side) for side in sides if not isinstance(side, ast.Constant))
            counts[subject] += any(_is_string(side) for side in sides)
        if isinstance(node, ast.Match):
            patterns = [case.pattern for case in node.cases if isinstance(case.pattern, ast.MatchValue)]
            counts[ast.unparse(node.subject)] += sum(_is_string(pattern.value) for pattern in patterns)
    return counts


def _is_string(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def test_no_chain_of_string_comparisons(sources):
    """More than two names to choose from is a registry, a dict or a dispatch."""
    assert_none(
        f"{source.at(function)} {function.name}: {subject} is compared with {count} strings"
        for source in sources
        for function in source.functions()
        for subject, count in _string_comparisons(function).items()
        if count > MAX_STRING_COMPARISONS
    )


def _public(body: list[ast.stmt]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    for node in body:
        is_definition = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        if is_definition and not node.name.startswith("_"):
            yield node


def _defines_an_interface(node: ast.stmt) -> bool:
    """A class whose methods implement nobody else's: no base, or only ABC or Protocol."""
    if not isinstance(node, ast.ClassDef):
        return False
    bases = {ast.unparse(base).split("[")[0].rsplit(".", 1)[-1] for base in node.bases}
    return bases <= {"ABC", "Protocol", "Generic"}


def test_public_names_have_docstrings(sources):
    """Modules, public functions and classes, and the methods of classes that define an interface."""
    missing = [str(source.path) for source in sources if ast.get_docstring(source.tree) is None]
    for source in sources:
        for node in _public(source.tree.body):
            methods = list(_public(node.body)) if _defines_an_interface(node) else []
            names = [n for n in (node, *methods) if not _is_variant(n)]
            missing += [f"{source.at(n)} {n.name}" for n in names if ast.get_docstring(n) is None]
    assert_none(missing)


def _is_variant(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    """A typing overload, a `singledispatch` registration or a setter: its first definition has the words."""
    variants = ("overload", ".register", ".setter")
    return any(ast.unparse(d).split("(")[0].endswith(variants) for d in node.decorator_list)


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _toplevel_imports(source) -> set[str]:
    statements = [n for n in source.tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
    return set(_imported(ast.Module(body=statements, type_ignores=[])))


def test_modules_that_use_jax_turn_on_64_bit(sources):
    """Importing any module that uses jax must lead to `sciml.types`, which switches jax to float64."""
    imports = {source.module: _toplevel_imports(source) for source in sources}
    switched = {"sciml.types"}
    while following := {m for m, names in imports.items() if m not in switched and names & switched}:
        switched |= following
    jax_users = {m for m, names in imports.items() if {"jax", "flax", "optax"} & {n.split(".")[0] for n in names}}
    assert_none(jax_users - switched)


def test_links_are_never_imported_by_their_bare_name(sources, test_sources):
    """`import solvers` from the repository root would make a second copy of every module."""
    bare = ("solvers", "operators", "pinn")
    assert_none(
        f"{source.path}: {name}"
        for source in (*sources, *test_sources)
        for name in _imported(source.tree)
        if name.split(".")[0] in bare
    )
