"""Links between pages lead somewhere, and every page is linked."""

from __future__ import annotations

import re

from documents import pages

LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")


def test_relative_links_lead_to_files():
    missing = [
        f"{page.name}: {target}"
        for page in pages()
        for target in LINK.findall(page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert not missing


def test_every_page_can_be_reached_from_the_readme(repository):
    reached, waiting = set(), [repository / "README.md"]
    while waiting:
        page = waiting.pop().resolve()
        if page in reached or page.suffix != ".md" or not page.exists():
            continue
        reached.add(page)
        waiting += [page.parent / target for target in LINK.findall(page.read_text(encoding="utf-8"))]
    assert not [str(page) for page in pages() if page.resolve() not in reached]
