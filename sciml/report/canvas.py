"""How figures look and how they get into a page: quiet axes, one palette, self-contained SVG."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

INK, FAINT = "#1f2328", "#8c959f"
TRUTH, PREDICTION = INK, "#c2410c"
SERIES = ("#1d4ed8", "#c2410c", "#047857", "#7c3aed", "#a16207", "#0e7490", "#be185d", "#4b5563")
STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.titlepad": 7,
    "axes.labelcolor": INK,
    "axes.edgecolor": FAINT,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "text.color": INK,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "xtick.minor.visible": False,
    "grid.color": "#e5e7eb",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.4,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "figure.facecolor": "white",
    "svg.hashsalt": "sciml",  # the same figure gives the same bytes
    "svg.fonttype": "path",
}


@contextmanager
def style() -> Iterator[None]:
    """The project's matplotlib settings, for the figures made inside."""
    with matplotlib.rc_context(STYLE):
        yield


def grid(axes: Axes) -> None:
    """Faint lines behind a line plot."""
    axes.grid(True, which="major")
    axes.set_axisbelow(True)


def inline_svg(figure: Figure) -> str:
    """The figure as a `data:` address for `<img src=...>`; the bytes depend on the figure alone."""
    buffer = io.BytesIO()
    FigureCanvasSVG(figure).print_svg(buffer, metadata={"Date": None, "Creator": None})
    return "data:image/svg+xml;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
