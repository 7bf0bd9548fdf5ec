"""The report page and table: complete, self-contained, deterministic, and robust against odd input."""

from __future__ import annotations

import base64
import io
import re

import numpy as np
import pytest
from rich.console import Console

from sciml.errors import CannotCreateError, DataError
from sciml.report import (
    Curve,
    FieldComparison,
    ModelRow,
    QuantityComparison,
    results_table,
    write_report,
)
from sciml.report.page import MAX_FIELDS
from sciml.report.spectrum import drawn_spectrum
from sciml.report.table import duration, error, factor

X = np.linspace(0.0, 1.0, 32, endpoint=False)
TIMES = np.linspace(0.2, 1.0, 5)
WAVE = np.exp(-TIMES[:, None]) * np.sin(2 * np.pi * X)
ROWS = (
    ModelRow("surrogate_long", 227392, 159.0, 2.2e-2, 8.4e-3, 3.2e-16, 7.99e-3, 0.05),
    ModelRow("fno", 287425, 71.2, 1.4e-3, 3e-4, 1e-12, 3.4e-4, 12.3),
    ModelRow("pinn", 3332, 48.3, 4.1e-5, None, 1e-12, 8e-5, None, "diffusivity 0.0499 <true 0.05>"),
)


def comparison(model: str = "fno", **changes) -> FieldComparison:
    given = {"coordinates": {"x": X}, "times": TIMES, "truth": WAVE, "prediction": 1.01 * WAVE}
    return FieldComparison(model, "u", "K", **(given | changes))


def contents(**changes) -> dict:
    records = [{"step": s, "loss": 1 / (s + 1), "loss/data": 0.5 / (s + 1), "seconds": 0.1} for s in range(50)]
    records[10]["evaluation/error"] = records[40]["evaluation/error"] = 0.1
    given = {
        "title": "Heat & <more>",
        "recipe_text": "name: heat\nseed: 0  # <b>",
        "facts": {"solver": "etdrk4"},
        "rows": ROWS,
        "fields": [comparison()],
        "quantities": [QuantityComparison("mlp", "energy", "K²", np.arange(1.0, 5), np.arange(1.0, 5) * 1.02)],
        "curves": [Curve("fno", records)],
        "environment": {"python": "3.11"},
    }
    return given | changes


def figures(page: str) -> list[str]:
    found = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', page)
    return [base64.b64decode(figure).decode() for figure in found]


def test_page_is_self_contained_escaped_and_deterministic(tmp_path):
    first = write_report(tmp_path / "a.html", **contents()).read_text(encoding="utf-8")
    second = write_report(tmp_path / "b.html", **contents()).read_text(encoding="utf-8")
    assert first == second
    assert not re.search(r"(src|href)=\"(?!data:|#)", first)
    assert "<script" not in first
    assert "Heat &amp; &lt;more&gt;" in first and "seed: 0  # &lt;b&gt;" in first and "&lt;true 0.05&gt;" in first
    assert len(figures(first)) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "b.html"]


def test_every_part_may_be_missing(tmp_path):
    page = write_report(tmp_path / "empty.html", title="nothing yet").read_text(encoding="utf-8")
    assert "nothing yet" in page
    assert figures(page) == []


@pytest.mark.parametrize(
    ("axes", "times", "periodic"),
    [
        ({"x": X}, None, True),
        ({"x": X}, TIMES[:1], False),
        ({"x": X[:6], "y": X[:9]}, None, False),
        ({"x": X[:6], "y": X[:9]}, TIMES, True),
        ({"x": X[:6], "y": X[:5], "z": X[:4]}, TIMES, True),
    ],
)
def test_fields_of_all_dimensions_are_drawn(tmp_path, axes, times, periodic):
    shape = (*(() if times is None else (len(times),)), *(len(values) for values in axes.values()))
    truth = np.random.default_rng(0).normal(size=shape)
    shown = comparison(coordinates=axes, times=times, truth=truth, prediction=truth + 0.1, periodic=periodic)
    page = write_report(tmp_path / "page.html", title="t", fields=[shown]).read_text(encoding="utf-8")
    assert len(figures(page)) == 1


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("truth", "prediction"),
    [(WAVE, np.full_like(WAVE, np.nan)), (np.zeros_like(WAVE), WAVE), (np.full_like(WAVE, 3.0), np.zeros_like(WAVE))],
)
def test_constant_zero_and_failed_predictions_are_drawn(tmp_path, truth, prediction):
    shown = [comparison(truth=truth, prediction=prediction)]
    page = write_report(tmp_path / "page.html", title="t", fields=shown).read_text(encoding="utf-8")
    assert len(figures(page)) == 1


def test_size_and_number_of_figures_are_bounded(tmp_path):
    size = 288  # two points to a pixel: the largest images there are, of noise, which does not compress
    noise = np.random.default_rng(0).normal(size=(size, size))
    axis = np.linspace(0.0, 1.0, size)
    fields = [
        comparison(model, coordinates={"x": axis, "y": axis}, times=None, truth=noise, prediction=noise)
        for model in "abcde" * 3
    ]
    path = write_report(tmp_path / "big.html", title="t", fields=fields)
    page = path.read_text(encoding="utf-8")
    assert len(figures(page)) == MAX_FIELDS
    assert "3 more comparisons are not shown" in page
    assert path.stat().st_size < 5e6


def test_shape_that_does_not_fit_is_refused():
    with pytest.raises(
        DataError, match=r"prediction of 'u' by model 'fno'(.|\n)*\(5, 32\), axes \(time, x\)(.|\n)*\(5, 31\)"
    ):
        comparison(prediction=WAVE[:, :-1])


def test_unwritable_place_is_said(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(CannotCreateError, match="cannot write"):
        write_report(tmp_path / "file" / "report.html", title="t")


def test_table_shows_used_columns_and_aligns_numbers():
    table = results_table(ROWS)
    headings = [column.header for column in table.columns]
    assert headings[0] == "model" and "note" not in headings
    assert [column.justify for column in table.columns] == ["left", *["right"] * (len(headings) - 1)]
    console = Console(width=80, file=io.StringIO())
    console.print(results_table(ROWS))
    lines = console.file.getvalue().splitlines()
    assert len(lines) == 1 + len(ROWS)
    assert all(row.name in line for row, line in zip(ROWS, lines[1:], strict=True))
    bare = results_table([ModelRow("only", error=0.5)])
    assert [column.header for column in bare.columns] == ["model", "relative L2"]


def test_number_formats():
    assert [duration(s) for s in (None, 3e-5, 2.4e-3, 12.34, 185.2, 900.0, 0.0)] == [
        "–",
        "30 µs",
        "2.4 ms",
        "12.3 s",
        "185 s",
        "15 min",
        "0 ns",
    ]
    assert [error(e) for e in (None, 2.14e-3, 0.0)] == ["–", "2.1e-03", "0.0e+00"]
    assert [factor(f) for f in (None, 0.0312, 3.44, 123.4, 12345.0)] == ["–", "0.031×", "3.4×", "120×", "12\u2009000×"]


@pytest.mark.parametrize("shape", [(32,), (32, 32), (16, 32)])
def test_spectrum_of_a_wave_is_one_line(shape):
    axes = tuple(np.linspace(0.0, 1.0, size, endpoint=False) for size in shape)
    field = np.sin(2 * np.pi * 5 * axes[0]).reshape(-1, *(1,) * (len(shape) - 1)) * np.ones(shape) + 2.0
    waves, density = drawn_spectrum(field, axes)
    assert waves[density > 1e-20].tolist() == [5]
    assert waves[-1] == min(shape) // 2
    # The mean square of a sine; rounding of the transform dominates.
    np.testing.assert_allclose(density.sum(), 0.5, rtol=1e-13)


def test_spectrum_of_a_bounded_field_does_not_see_its_ends():
    """A straight line has no small scales; without the window its jump at the ends would show as k^-2."""
    x = np.linspace(0.0, 1.0, 65)
    waves, density = drawn_spectrum(x, (x,), periodic=False)
    assert density[waves > 8].sum() < 1e-4 * density.sum()


def test_curves_keep_positive_finite_numbers_only():
    records = [{"step": 0, "loss": 1.0, "note": "x"}, {"step": 1, "loss": float("nan")}, {"step": 2, "loss": 0.5}]
    steps, losses = Curve("fno", records).series()["loss"]
    assert steps.tolist() == [0, 2] and losses.tolist() == [1.0, 0.5]
    assert "note" not in Curve("fno", records).series()
