"""docs/architecture.md shows the import graph that the code has."""

from __future__ import annotations

import subprocess
import sys

import pytest


def test_import_graph_on_the_page_is_the_real_one(repository):
    pytest.importorskip("grimp")
    command = [sys.executable, "docs/architecture_graph.py", "--check"]
    process = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
