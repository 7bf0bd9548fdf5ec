"""What committed text may and may not say."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from comparison import assert_none

BANNED_MODULES = {"utils", "util", "helpers", "helper", "misc", "common"}
# Put together from parts, so that this file does not contain what it looks for.
MACHINE_PATHS = re.compile("/" + "work/|/" + "root/|/tmp/" + r"bash_jobs|\.\./" + "shared")
OPEN_ENDS = re.compile(r"\bTO" + r"DO\b|\bFIX" + r"ME\b|\bXX" + r"X\b")
SILENCED = re.compile(r"#\s*(noqa|type:\s*ignore|pyright:\s*ignore)(?!.*(--|\().*\w)")


@pytest.fixture(scope="module")
def committed(repository: Path) -> dict[str, str]:
    """Path and text of each tracked text file, as it stands in the working tree."""
    command = ["git", "ls-files", "-z"]
    listing = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    if listing.returncode:
        pytest.skip("not a git checkout: nothing is committed")
    texts = {}
    for name in filter(None, listing.stdout.split("\0")):
        path = repository / name
        if path.is_file() and not path.is_symlink() and b"\0" not in (data := path.read_bytes()):
            texts[name] = data.decode("utf-8")
    return texts


def _found(texts: dict[str, str], pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{name}:{number}: {line.strip()}"
        for name, text in texts.items()
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def test_no_path_of_a_developers_machine(committed):
    assert_none(_found(committed, MACHINE_PATHS))


def test_nothing_left_open(committed):
    assert_none(_found(committed, OPEN_ENDS))


def test_a_silenced_check_says_why(committed):
    """`# noqa: E501 -- reason`, or with the reason in parentheses."""
    assert_none(_found({n: text for n, text in committed.items() if n.endswith(".py")}, SILENCED))


def test_no_dumping_ground(sources):
    assert_none(str(source.path) for source in sources if source.path.stem in BANNED_MODULES)
    assert_none(str(source.path) for source in sources if BANNED_MODULES.intersection(source.path.parts))
