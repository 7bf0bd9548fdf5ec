"""The tables of docs/plans.md agree with the cost model."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.long
def test_cost_tables_are_current(repository):
    command = [sys.executable, "docs/plan_tables.py", "--check"]
    process = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
