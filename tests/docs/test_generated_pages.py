"""What scripts write into pages agrees with the code."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("script", ["architecture_graph.py", "certificates.py", "gallery.py", "recipe_reference.py"])
def test_generated_part_of_the_page_is_current(script, repository):
    if script == "architecture_graph.py":
        pytest.importorskip("grimp")
    command = [sys.executable, f"docs/{script}", "--check"]
    process = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
