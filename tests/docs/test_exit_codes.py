"""The table of exit codes names every error class with the code it has."""

from __future__ import annotations

import re

from sciml import errors


def test_table_names_every_error_class(repository):
    page = (repository / "docs" / "exit-codes.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \|", page, re.MULTILINE)
    listed = {(name, int(code)) for code, names in rows for name in re.findall(r"`(\w+)`", names)}
    classes = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, errors.SciMLError)]
    known = {(c.__name__, c.exit_code) for c in classes}
    assert known <= listed
    assert {name for name, _ in listed} == {name for name, _ in known}
