"""Results for people: a table on the terminal and one self-contained HTML page with figures."""

from __future__ import annotations

from sciml.report.contents import Curve, FieldComparison, ModelRow, QuantityComparison
from sciml.report.page import write_report
from sciml.report.table import results_table

__all__ = ["Curve", "FieldComparison", "ModelRow", "QuantityComparison", "results_table", "write_report"]
