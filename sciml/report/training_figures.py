"""Figures of training histories and of scalar quantities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sciml.report.canvas import FAINT, INK, SERIES, grid
from sciml.report.contents import Curve, QuantityComparison

MAX_POINTS = 600  # per curve
LOSS_PREFIX, EVALUATION_PREFIX = "loss", "evaluation"


def curves_figure(curves: Sequence[Curve]) -> Figure:
    """One panel per model: total loss bold, its parts thin, measurements on held-out samples as dots; logarithmic."""
    figure, panels = _panels(len(curves), columns=2 if len(curves) in (2, 4) else 3, height=2.9)
    for panel, curve in zip(panels, curves, strict=True):
        _curve(panel, curve)
    return figure


def _curve(panel: Axes, curve: Curve) -> None:
    series = {key: values for key, values in curve.series().items() if _is_shown(key)}
    parts = [key for key in series if key.startswith(LOSS_PREFIX) and key != LOSS_PREFIX]
    if len(parts) == 1:  # the only part is the loss itself
        del series[parts[0]]
    colors = dict(zip(parts, SERIES[1:] * len(parts), strict=False))
    for key, (steps, values) in series.items():
        kept = _thinned(len(steps))
        if key.startswith(EVALUATION_PREFIX):
            panel.plot(steps[kept], values[kept], ".-", markersize=4, linewidth=0.8, color=INK, label=key)
        elif key == LOSS_PREFIX:
            panel.plot(steps[kept], values[kept], color=SERIES[0], linewidth=1.5, label="training loss")
        else:
            panel.plot(steps[kept], values[kept], color=colors[key], linewidth=0.8, alpha=0.8, label=key)
    panel.set_yscale("log")
    panel.set_title(curve.model)
    panel.set_xlabel("step")
    if series:
        panel.legend(loc="upper right", frameon=True, framealpha=0.85, edgecolor="none")
    grid(panel)


def _is_shown(key: str) -> bool:
    return key.startswith((LOSS_PREFIX, EVALUATION_PREFIX))


def _thinned(size: int) -> np.ndarray:
    """Positions of at most MAX_POINTS entries, both ends included."""
    return np.unique(np.linspace(0, size - 1, min(size, MAX_POINTS)).round().astype(int))


def quantities_figure(quantities: Sequence[QuantityComparison]) -> Figure:
    """One panel per quantity: predicted over true values, with the line on which they agree."""
    figure, panels = _panels(len(quantities), columns=3, height=3.1)
    for panel, quantity in zip(panels, quantities, strict=True):
        truth, prediction = np.asarray(quantity.truth, float), np.asarray(quantity.prediction, float)
        both = np.concatenate([truth[np.isfinite(truth)], prediction[np.isfinite(prediction)]])
        low, high = (both.min(), both.max()) if both.size else (0.0, 1.0)
        margin = 0.05 * (high - low or 1.0)
        limits = (low - margin, high + margin)
        panel.plot(limits, limits, color=FAINT, linewidth=0.8)
        panel.plot(truth, prediction, "o", markersize=3.2, color=SERIES[0], alpha=0.55, markeredgewidth=0)
        panel.set(xlim=limits, ylim=limits, aspect="equal")
        unit = "" if quantity.unit in ("", "1") else f" ({quantity.unit})"
        panel.set_title(f"{quantity.model}: {quantity.name}{unit}")
        panel.set(xlabel="truth", ylabel="prediction")
        panel.text(0.04, 0.93, f"relative L2 {quantity.relative_l2:.1e}", transform=panel.transAxes)
        grid(panel)
    return figure


def _panels(count: int, columns: int, height: float) -> tuple[Figure, list[Axes]]:
    """A figure with `count` panels, `columns` in a row; the rest of the last row stays empty."""
    rows = -(-count // columns)
    figure = Figure(figsize=(10.0, height * rows))
    panels = list(np.ravel(figure.subplots(rows, columns, squeeze=False)))
    margin = 0.45 / (height * rows)  # inches, as a share of the figure
    figure.subplots_adjust(0.055, margin, 0.99, 1 - 0.6 * margin, wspace=0.22, hspace=0.32)
    for panel in panels[count:]:
        panel.set_visible(False)
    return figure, panels[:count]
