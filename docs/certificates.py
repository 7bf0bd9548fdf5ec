"""Writes the certificates of equations into certificates.md.

`python docs/certificates.py` computes all of them anew (minutes), with names only those; `--check` computes nothing
and compares the names, the coefficients and the table with the code and the certificates on the page, all of which have
to pass.
"""

from __future__ import annotations

import re
import sys
import time

from generated import DOCS, END, update

from sciml import registry
from sciml.solvers import verification

PAGE, SCRIPT = "certificates.md", "certificates.py"
BLOCK = re.compile(r"^### `(\w+)`\n\n```text\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
HEAD = ("equation", "order in time", "order in space", "drift of invariants", "limits and published values", "passed")


def written() -> dict[str, str]:
    """The certificates that stand on the page, by name of the equation."""
    page = (DOCS / PAGE).read_text(encoding="utf-8")
    return dict(BLOCK.findall(page.split(END)[0]))


def computed(name: str) -> str:
    """The certificate of a registered equation, computed now."""
    start = time.process_time()
    report = verification.verify(name, long=True)
    print(f"{name}: {'passed' if report.passed else 'FAILED'}, {time.process_time() - start:.0f} s of CPU", flush=True)
    return "\n".join(line.rstrip() for line in report.text.splitlines())


def page_text(blocks: dict[str, str]) -> str:
    """The table of all certificates, and each of them in full."""
    table = [HEAD, ("---",) * len(HEAD), *(_row(name, text) for name, text in sorted(blocks.items()))]
    lines = ["| " + " | ".join(row) + " |" for row in table]
    full = [f"### `{name}`\n\n```text\n{text}\n```" for name, text in sorted(blocks.items())]
    return "\n".join(lines) + "\n\n## In full\n\n" + "\n\n".join(full)


def _row(name: str, text: str) -> tuple[str, ...]:
    checks = _checks(text)
    steps, space = (_methods(checks.get(f"order in {what}", [])) for what in ("time", "space"))
    cells = [
        re.sub(r"(\w+), observed ([\d.]+),.*", r"\1 on cells: \2", line) for line in checks.get("order on cells", [])
    ]
    series = [line.split(":")[1].split()[-1] for line in checks.get("order in space", []) if "Fourier" in line]
    space += f"{', ' if space else ''}Fourier to {series[0]}" if series else ""
    space = ", ".join(part for part in (space, *(line for line in cells if "on cells" in line)) if part)
    drifts = [re.sub(r" drifts by ", " ", line) for line in checks.get("invariants", []) if "drifts" in line]
    known = [line for what in ("limits", "published values") for line in checks.get(what, []) if "expected" in line]
    passed = text.splitlines()[-1].strip().removesuffix(" checks passed")
    return f"`{name}`", steps or "-", space or "-", ", ".join(drifts) or "-", str(len(known) or "-"), passed


def _checks(text: str) -> dict[str, list[str]]:
    """Lines by check."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines()[1:-1]:
        if line.startswith(("  pass  ", "  FAIL  ")):
            current = found.setdefault(line[8:36].strip(), [])
            line = line[36:]
        current.append(line.strip())
    return found


def _methods(lines: list[str]) -> str:
    rows = [line.split() for line in lines if re.match(r"\w+ +\d +-?\d+\.\d\d ", line)]
    is_series = all(row[0] == "differences" for row in rows)
    return ", ".join(f"{row[0]} {row[1] + ': ' if is_series else ''}{row[2]}" for row in rows)


def failing(text: str) -> list[str]:
    """The checks of a certificate that did not pass; a sum at its end that is not that of its checks counts as one."""
    lines = text.splitlines()
    passed, failed = ([line[8:36].strip() for line in lines if line.startswith(f"  {w}  ")] for w in ("pass", "FAIL"))
    total = f"  {len(passed)} of {len(passed) + len(failed)} checks passed"
    return failed if lines and passed and lines[-1] == total else [*failed, "sum of the checks"]


def main() -> int:
    """0, or 1 where `--check` finds a difference."""
    arguments = [argument for argument in sys.argv[1:] if argument != "--check"]
    names, blocks = registry.names("equation"), written()
    if "--check" not in sys.argv[1:]:
        for name in arguments or names:
            new = {name: computed(name)}  # the page may have changed in the meantime
            update(PAGE, SCRIPT, page_text({n: text for n, text in written().items() if n in names} | new))
        return 0
    titles = {name: registry.describe("equation", name).class_name for name in names}
    stale = [n for n in names if n not in blocks or not blocks[n].startswith(f"Order certificate: {titles[n]} (")]
    stale += [name for name in blocks if name not in names]
    if stale:
        print(f"docs/{PAGE} lacks or has too many of {', '.join(stale)}; run: python docs/{SCRIPT} NAME ...")
    bad = {name: wrong for name, text in blocks.items() if (wrong := failing(text))}
    for name, checks in bad.items():
        print(f"docs/{PAGE}: {name} does not pass: {', '.join(checks)}")
    return max(int(bool(stale or bad)), update(PAGE, SCRIPT, page_text(blocks)))


if __name__ == "__main__":
    sys.exit(main())
