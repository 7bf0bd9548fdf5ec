"""The pages a reader sees, and the code blocks in them."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"(?P<before>[^\n]*)\n```(?P<language>\w+)[^\n]*\n(?P<code>.*?)\n```", re.DOTALL)
NOT_RUN = re.compile(r"<!-- not run: (?P<reason>.+?) -->")


@dataclasses.dataclass(frozen=True)
class Block:
    """A fenced block; `reason` says why it is not run, on the line before: `<!-- not run: reason -->`."""

    language: str
    code: str
    line: int
    reason: str | None

    @property
    def file(self) -> str | None:
        """The file that a block shows, when its first line is a comment with nothing but a file name."""
        name = re.fullmatch(r"# ([\w/.-]+\.(py|yaml))", self.code.split("\n", 1)[0].strip())
        return name[1] if name else None


def pages() -> list[Path]:
    """README and every page of docs/."""
    return [REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *sorted(REPOSITORY.glob("docs/*.md"))]


def blocks(page: Path) -> list[Block]:
    """All fenced blocks of a page, in order."""
    text = "\n" + page.read_text(encoding="utf-8")
    found = []
    for match in BLOCK.finditer(text):
        marker = NOT_RUN.fullmatch(match["before"].strip())
        line = text.count("\n", 0, match.start("code"))
        found.append(Block(match["language"], match["code"], line, marker["reason"] if marker else None))
    return found
