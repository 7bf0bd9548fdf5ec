"""Every code block in README and docs does what the page says.

The blocks of one page are run in order, in one fresh process and an empty folder, as a reader would run them: Python
blocks share their names, a block that begins with `# name.py` or `# name.yaml` is also saved under that name, and
lines `sciml ...` of shell blocks are executed. A block after `<!-- not run: reason -->` is left out.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from documents import Block, blocks, pages

PYTHON, SHELL, YAML = "python", "bash", "yaml"
SCIML = "import sys; from sciml.cli import main; sys.exit(main())"
PRELUDE = f"""
import os, runpy, subprocess, sys
def _shell(line):
    command = [sys.executable, "-c", {SCIML!r}, *line]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
"""
every_page = pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)


def _commands(block: Block) -> list[list[str]]:
    """The `sciml ...` lines of a shell block, split into words; continued lines are joined."""
    lines = block.code.replace("\\\n", " ").splitlines()
    words = [shlex.split(line, comments=True) for part in lines for line in part.split("&&")]
    return [w[1:] for w in words if w and w[0] == "sciml"]


def _script(page: Path, folder: Path) -> str:
    """One program made of all blocks of a page, with the line numbers of the page in its tracebacks."""
    parts = [PRELUDE]
    for block in blocks(page):
        if block.file and block.reason is None:
            save = f"open({block.file!r}, 'w').write({block.code + chr(10)!r})"
            parts.append(f"os.makedirs(os.path.dirname({block.file!r}) or '.', exist_ok=True); {save}")
        if block.reason is not None:
            continue
        if block.language == PYTHON:
            padded = "\n" * (block.line - 1) + block.code
            parts.append(f"exec(compile({padded!r}, {str(page)!r}, 'exec'), globals())")
        if block.language == SHELL:
            parts += [f"_shell({words!r})" for words in _commands(block)]
    return "\n".join(parts)


@every_page
def test_blocks_run(page, tmp_path, repository):
    (tmp_path / "experiments").symlink_to(repository / "experiments")
    script = _script(page, tmp_path)
    environment = dict(os.environ, PYTHONPATH=str(tmp_path))
    process = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stdout[-4000:] + process.stderr[-4000:]


@every_page
def test_a_block_left_out_says_why(page):
    assert not [f"{page.name}:{b.line}" for b in blocks(page) if b.reason is not None and len(b.reason.split()) < 3]


def test_commands_in_shell_blocks_exist():
    """Also those in blocks that are not run."""
    shell = [block for page in pages() for block in blocks(page) if block.language == SHELL]
    names = {words[0] for block in shell for words in _commands(block) if words}
    missing = set()
    for name in sorted(name for name in names if not name.startswith("-")):
        command = [sys.executable, "-c", SCIML, name, "--help"]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            missing.add(name)
    assert not missing


def test_the_script_in_the_readme_is_short(repository):
    """A complete experiment in at most 30 lines of Python."""
    scripts = [block.code for block in blocks(repository / "README.md") if block.language == PYTHON]
    assert scripts
    assert all(len(script.splitlines()) <= 30 for script in scripts)
