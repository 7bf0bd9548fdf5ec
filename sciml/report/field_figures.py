"""Figures of one field: truth, prediction and error side by side, cuts, and the energy spectrum."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import ScalarFormatter

from sciml.report.canvas import FAINT, PREDICTION, SERIES, TRUTH, grid
from sciml.report.contents import FieldComparison
from sciml.report.spectrum import drawn_spectrum

MAX_PIXELS = 144  # per side of an image: more is hardly seen on the page and makes it heavy
MAX_CUTS = 4
ERROR_COLORS, SIGNED_COLORS, POSITIVE_COLORS = "PuOr_r", "RdBu_r", "viridis"


def field_figure(comparison: FieldComparison) -> Figure:
    """The figure that suits the field: maps over two axes and cuts; a plain line for one axis without time.

    A field with more axes than two (or two and time) is shown at its last time and in the middle of the rest.
    """
    plane = _as_plane(comparison)
    if plane is None:
        return _line_figure(comparison)
    return _map_figure(comparison, *plane)


def _as_plane(comparison: FieldComparison) -> tuple[list[np.ndarray], dict[str, np.ndarray]] | None:
    """[truth, prediction] over two axes, and these axes, vertical first; None when there is but one axis."""
    arrays = [np.asarray(a, dtype=float) for a in (comparison.truth, comparison.prediction)]
    axes = {name: np.asarray(values, dtype=float) for name, values in comparison.coordinates.items()}
    if comparison.times is not None and len(axes) == 1 and len(comparison.times) > 1:
        return arrays, {"time": np.asarray(comparison.times, dtype=float)} | axes
    if comparison.times is not None:
        arrays = [array[-1] for array in arrays]
    if len(axes) == 1:
        return None
    names = list(axes)
    for extra in names[2:]:
        arrays = [array.take(axes[extra].size // 2, axis=-1) for array in arrays]
    # Image rows run along the vertical axis, arrays along x first.
    return [array.T for array in arrays], {names[1]: axes[names[1]], names[0]: axes[names[0]]}


def shown_slice(comparison: FieldComparison) -> str:
    """Which part of a large field the figure shows, in words; empty when it shows all of it."""
    names = list(comparison.coordinates)
    parts = [f"the middle of {name}" for name in names[2:]]
    if comparison.times is not None and (len(names) > 1 or len(comparison.times) == 1):
        parts.insert(0, f"time {comparison.times[-1]:.4g}")
    return " and ".join(parts)


def _map_figure(comparison: FieldComparison, arrays: list[np.ndarray], axes: dict[str, np.ndarray]) -> Figure:
    figure = Figure(figsize=(10.0, 5.6))
    _maps(figure, comparison, arrays, axes)
    _cuts(figure.add_axes((0.055, 0.075, 0.500, 0.32)), comparison, arrays, axes)
    _spectrum(figure.add_axes((0.70, 0.075, 0.245, 0.32)), comparison)
    return figure


def _maps(figure: Figure, comparison: FieldComparison, arrays: list[np.ndarray], axes: dict[str, np.ndarray]) -> None:
    """Three images with fixed places: figures of several models line up, and no layout has to be solved."""
    truth, prediction = arrays
    shared = _color_range(truth)
    bound = _largest(prediction - truth) or 1.0
    field = _with_unit(comparison.field, comparison.unit)
    for left, title, values, colors in (
        (0.055, f"truth: {field}", truth, shared),
        (0.325, f"prediction: {comparison.model}", prediction, shared),
        (0.680, "prediction − truth", prediction - truth, (ERROR_COLORS, -bound, bound)),
    ):
        panel = figure.add_axes((left, 0.52, 0.245, 0.43))
        image = _image(panel, values, axes, *colors)
        panel.set_title(title)
        panel.set_xlabel(list(axes)[1])
        if values is truth:
            panel.set_ylabel(list(axes)[0])
            continue
        panel.set_yticklabels([])
        numbers = ScalarFormatter()
        numbers.set_powerlimits((-2, 3))
        beside = figure.add_axes((left + 0.255, 0.52, 0.010, 0.43))
        figure.colorbar(image, cax=beside, format=numbers).outline.set_visible(False)


def _image(panel: Axes, values: np.ndarray, axes: dict[str, np.ndarray], colors: str, low: float, high: float):
    vertical, horizontal = axes.values()
    steps = [max(1, -(-size // MAX_PIXELS)) for size in values.shape]
    panel.tick_params(length=2.5)
    panel.spines[:].set_visible(False)
    return panel.imshow(
        values[:: steps[0], :: steps[1]],
        origin="lower",
        aspect="equal" if "time" not in axes else "auto",
        extent=(*_edges(horizontal), *_edges(vertical)),
        cmap=matplotlib.colormaps[colors].with_extremes(bad="#e5e7eb"),
        vmin=low,
        vmax=high,
        interpolation="none",  # the stored image has one pixel per grid point
    )


def _cuts(panel: Axes, comparison: FieldComparison, arrays: list[np.ndarray], axes: dict[str, np.ndarray]) -> None:
    """Lines along the horizontal axis at a few places of the vertical one: true solid, predicted dashed."""
    vertical, horizontal = axes
    places = np.unique(np.linspace(0, axes[vertical].size - 1, MAX_CUTS).round().astype(int))
    if vertical != "time":
        places = np.unique((axes[vertical].size * np.array([0.25, 0.5, 0.75])).astype(int))
    for place, color in zip(places, SERIES, strict=False):
        label = f"{vertical} = {axes[vertical][place]:.3g}"
        panel.plot(axes[horizontal], arrays[0][place], color=color, alpha=0.45, linewidth=2.6, label=label)
        panel.plot(axes[horizontal], arrays[1][place], color=color, linestyle=(0, (4, 2)), linewidth=1.1)
    panel.set_title(f"{_with_unit(comparison.field, comparison.unit)}: truth broad, prediction dashed")
    panel.set_xlabel(horizontal)
    panel.legend(loc="upper left", bbox_to_anchor=(1.0, 1.03), handlelength=1.2)
    grid(panel)


def _line_figure(comparison: FieldComparison) -> Figure:
    (name, x), last = *comparison.coordinates.items(), comparison.times is not None
    truth, prediction = (np.asarray(a[-1] if last else a) for a in (comparison.truth, comparison.prediction))
    figure = Figure(figsize=(10.0, 2.9))
    values, difference, spectrum = (figure.add_axes((left, 0.15, 0.245, 0.74)) for left in (0.055, 0.385, 0.70))
    values.plot(x, truth, color=TRUTH, alpha=0.4, linewidth=2.8, label="truth")
    values.plot(x, prediction, color=PREDICTION, linestyle=(0, (4, 2)), label=comparison.model)
    values.set_title(comparison.field)
    values.set_ylabel(_with_unit(comparison.field, comparison.unit))
    values.legend()
    difference.plot(x, prediction - truth, color=PREDICTION)
    difference.axhline(0.0, color=FAINT, linewidth=0.7)
    difference.set_title("prediction − truth")
    difference.yaxis.set_major_formatter("{x:.2g}")
    for panel in (values, difference):
        panel.set_xlabel(name)
        grid(panel)
    _spectrum(spectrum, comparison)
    return figure


def _spectrum(panel: Axes, comparison: FieldComparison) -> None:
    """Energy over wavenumber at the last time, true and predicted."""
    axes = tuple(np.asarray(values, dtype=float) for values in comparison.coordinates.values())
    for values, label, look in (
        (comparison.truth, "truth", {"color": TRUTH, "alpha": 0.4, "linewidth": 2.8}),
        (comparison.prediction, "prediction", {"color": PREDICTION, "linestyle": (0, (4, 2))}),
    ):
        last = values if comparison.times is None else values[-1]
        waves, energy = drawn_spectrum(np.asarray(last), axes, periodic=comparison.periodic)
        panel.plot(waves, np.where(energy > 0, energy, np.nan), label=label, **look)
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_title("energy spectrum" + ("" if comparison.times is None else ", last time"))
    panel.set_xlabel("wavenumber (cycles per box)")
    panel.legend(loc="lower left")
    _limit_decades(panel)
    grid(panel)


def _limit_decades(panel: Axes, decades: float = 20.0) -> None:
    """Rounding errors of a smooth field lie dozens of decades below it: they are cut off."""
    bottom, top = panel.get_ylim()
    panel.set_ylim(max(bottom, top * 10.0**-decades), top)


def _color_range(truth: np.ndarray) -> tuple[str, float, float]:
    """A scale symmetric about zero for a field of both signs, a plain one otherwise."""
    finite = truth[np.isfinite(truth)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    if low < -0.05 * high and high > -0.05 * low:
        bound = max(-low, high)
        return SIGNED_COLORS, -bound, bound
    return POSITIVE_COLORS, low, high if high > low else low + 1.0


def _largest(values: np.ndarray) -> float:
    finite = np.abs(values[np.isfinite(values)])
    return float(finite.max()) if finite.size else 0.0


def _edges(centers: np.ndarray) -> tuple[float, float]:
    """Outer borders of the pixels whose centers are given."""
    half = 0.5 * (centers[-1] - centers[0]) / max(len(centers) - 1, 1) or 0.5
    return float(centers[0] - half), float(centers[-1] + half)


def _with_unit(name: str, unit: str) -> str:
    return name if unit in ("", "1") else f"{name} ({unit})"


def largest_error(comparison: FieldComparison) -> float:
    """Largest absolute difference of the sample, in the field's unit."""
    return _largest(np.asarray(comparison.prediction, dtype=float) - comparison.truth)


def first(comparisons: Sequence[FieldComparison], most: int) -> Sequence[FieldComparison]:
    """At most `most` comparisons, one of each model and field before a second one of any."""
    seen: dict[tuple[str, str], int] = {}
    ranked = []
    for position, comparison in enumerate(comparisons):
        key = (comparison.model, comparison.field)
        seen[key] = seen.get(key, -1) + 1
        ranked.append((seen[key], position))
    chosen = sorted(position for _, position in sorted(ranked)[:most])
    return [comparisons[position] for position in chosen]
