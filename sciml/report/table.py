"""The results table: the same columns and the same number formats on the terminal and on the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.table import Table

from sciml.report.contents import ModelRow

MISSING = "–"
TERMINAL = 80  # columns, also of a log file


@dataclass(frozen=True)
class Column:
    """A heading, how to write a row's entry, and what the number means."""

    heading: str
    text: Callable[[ModelRow], str]
    meaning: str
    numeric: bool = True


def error(value: float | None) -> str:
    """A relative error with two digits: `2.1e-03`."""
    return MISSING if value is None else f"{value:.1e}"


def duration(seconds: float | None) -> str:
    """A time in the unit that suits it: `85 µs`, `2.4 ms`, `12.3 s`, `185 s`, `15 min`."""
    if seconds is None or not math.isfinite(seconds):
        return MISSING
    if seconds >= 600:
        return f"{round(seconds / 60)} min"
    scale, unit = next((s, u) for s, u in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (0.0, "ns")) if seconds >= s)
    return f"{seconds / (scale or 1e-9):.3g} {unit}"


def count(value: int | None) -> str:
    """A whole number in groups of three: `1 234 567` (thin spaces)."""
    return MISSING if value is None else f"{value:,}".replace(",", "\u2009")


def factor(value: float | None) -> str:
    """A ratio with two digits: `3.4×`, `120×`."""
    if value is None or not math.isfinite(value):
        return MISSING
    digits = max(0, 1 - math.floor(math.log10(value))) if value > 0 else 0
    return f"{round(value, 1 - math.floor(math.log10(value))) if value > 0 else 0:,.{digits}f}×".replace(",", "\u2009")


def error_with_spread(row: ModelRow) -> str:
    """`2.1e-03 ± 3.0e-04`; the spread is left out when there is none."""
    spread = "" if row.error_spread is None else f" ± {error(row.error_spread)}"
    return error(row.error) + spread


NOTE = Column("note", lambda row: row.note, "", numeric=False)
COLUMNS: tuple[Column, ...] = (
    Column("model", lambda row: row.name, "the name in the recipe", numeric=False),
    Column("parameters", lambda row: count(row.parameters), "trained numbers"),
    Column("training", lambda row: duration(row.training_seconds), "wall time of training, compilation included"),
    Column("relative L2", error_with_spread, "mean error on held-out samples against the reference ± spread"),
    Column(
        "solver's own",
        lambda row: error(row.reference_error),
        "the solver's own error against the reference",
    ),
    Column("one call", lambda row: duration(row.latency_seconds), "median time of one call with one sample"),
    Column(
        "speed-up",
        lambda row: factor(row.speedup),
        "time of the solver at equal accuracy / time of the model",
    ),
    NOTE,
)


def used_columns(rows: Sequence[ModelRow]) -> tuple[Column, ...]:
    """The columns in which at least one row has something to say."""
    return tuple(c for c in COLUMNS if any(c.text(row) not in ("", MISSING) for row in rows))


def results_table(rows: Sequence[ModelRow]) -> Table:
    """The results for a terminal of 80 columns, one line per model.

    Notes, which would fold, are left to the caller.
    """
    columns = [column for column in used_columns(rows) if column is not NOTE]
    cells = [[column.heading, *(column.text(row) for row in rows)] for column in columns]
    width = sum(max(map(len, texts)) for texts in cells)
    gap = 2 if width + 2 * len(columns) <= TERMINAL else 1
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, gap, 0, 0))
    for column in columns:
        table.add_column(column.heading, justify="right" if column.numeric else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(column.text(row) for column in columns))
    return table
