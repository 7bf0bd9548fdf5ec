"""Files and functions stay short enough to be read in one go."""

from __future__ import annotations

import ast

from comparison import assert_none

FILE_LINES, FUNCTION_LINES = 400, 60
TABLE_MARKER = "# file of coefficients"  # stands alone on a line of a file that is a table and nothing else


def _lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from `def` to the end, the docstring not counted: words are free."""
    total = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function) is None:
        return total
    return total - ((first.end_lineno or first.lineno) - first.lineno + 1)


def test_files_are_short(sources, test_sources):
    lengths = {source.path: source.text.count("\n") for source in (*sources, *test_sources)}
    exempt = {source.path for source in sources if f"\n{TABLE_MARKER}\n" in source.text}
    assert_none(f"{path}: {n} lines" for path, n in lengths.items() if n > FILE_LINES and path not in exempt)


def test_functions_are_short(sources, test_sources):
    lengths = {
        f"{source.at(function)} {function.name}": _lines(function)
        for source in (*sources, *test_sources)
        for function in source.functions()
    }
    assert_none(f"{where}: {n} lines" for where, n in lengths.items() if n > FUNCTION_LINES)
