"""The report: one HTML file that needs no other file, no network and no script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2

import sciml
from sciml.report.canvas import inline_svg, style
from sciml.report.contents import Contents, Curve, FieldComparison, ModelRow, QuantityComparison
from sciml.report.field_figures import field_figure, first, largest_error, shown_slice
from sciml.report.table import used_columns
from sciml.report.template import TEMPLATE
from sciml.report.training_figures import curves_figure, quantities_figure
from sciml.runfolder import write_text

MAX_FIELDS, MAX_QUANTITIES, MAX_CURVES = 12, 12, 12  # keeps the page below 5 MB


def write_report(
    path: str | Path,
    *,
    title: str,
    recipe_text: str = "",
    facts: Mapping[str, str] | None = None,
    rows: Sequence[ModelRow] = (),
    fields: Sequence[FieldComparison] = (),
    quantities: Sequence[QuantityComparison] = (),
    curves: Sequence[Curve] = (),
    environment: Mapping[str, str] | None = None,
) -> Path:
    """Write one self-contained page; the same contents give the same bytes, parts without contents are left out.

    The file appears complete or not at all: it is written beside its place, then renamed.

    Raises:
        CannotCreateError, PermissionDeniedError, StorageError: the file cannot be written.
    """
    contents = Contents(title, recipe_text, facts or {}, rows, fields, quantities, curves, environment or {})
    text = render(contents)
    write_text(path, text)
    return Path(path)


def render(contents: Contents) -> str:
    """The page as text."""
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    with style():
        figures = _figures(contents)
    return environment.from_string(TEMPLATE).render(
        page=contents,
        version=sciml.__version__,
        columns=used_columns(contents.rows),
        sections=_sections(contents),
        **figures,
    )


def _figures(contents: Contents) -> dict[str, Any]:
    shown = first(contents.fields, MAX_FIELDS)
    quantities, curves = contents.quantities[:MAX_QUANTITIES], contents.curves[:MAX_CURVES]
    return {
        "fields": [_field(comparison) for comparison in shown],
        "fields_left_out": len(contents.fields) - len(shown),
        "quantities": inline_svg(quantities_figure(quantities)) if quantities else "",
        "quantities_left_out": len(contents.quantities) - len(quantities),
        "curves": inline_svg(curves_figure(curves)) if curves else "",
        "curves_left_out": len(contents.curves) - len(curves),
    }


def _field(comparison: FieldComparison) -> dict[str, str]:
    unit = "" if comparison.unit in ("", "1") else f" {comparison.unit}"
    shown = shown_slice(comparison)
    parts = [
        comparison.note,
        f"relative L2 error of this sample {comparison.relative_l2:.1e}",
        f"largest difference {largest_error(comparison):.1e}{unit}",
        f"shown: {shown}" if shown else "",
    ]
    return {
        "heading": f"{comparison.model}: {comparison.field}",
        "caption": "; ".join(part for part in parts if part) + ".",
        "image": inline_svg(field_figure(comparison)),
    }


def _sections(contents: Contents) -> list[tuple[str, str]]:
    present = (
        ("results", "Results", contents.rows),
        ("fields", "Fields", contents.fields),
        ("quantities", "Quantities", contents.quantities),
        ("training", "Training", contents.curves),
        ("reproduce", "Recipe and environment", contents.recipe_text or contents.environment),
    )
    return [(identifier, name) for identifier, name, filled in present if filled]
