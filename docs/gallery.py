"""Writes gallery.md and its pictures, one sample of every equation:   python docs/gallery.py [NAME ...]

With --check nothing is written; the exit status tells whether every registered equation is on the page.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from gallery_samples import SAMPLES, Sample
from generated import update

from sciml import registry

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # after the choice of the backend

PICTURES = Path(__file__).resolve().parent / "gallery"


def draw(sample: Sample) -> None:
    """One PNG: space over time for one axis, first, middle and last frame for two and three, else the solution."""
    grid, times, values = sample.solved()
    if not np.all(np.isfinite(values)):
        raise SystemExit(f"{sample.equation} is not finite")
    if times is None:
        figure, axes = _panels(1)
        _image(axes[0], grid, values, "")
    elif grid.dim == 1:
        figure, axes = _panels(2)
        _space_time(axes[0], grid, times, values)
        for k in np.linspace(0, len(times) - 1, 4).astype(int):
            axes[1].plot(grid.axes[0], values[k], label=f"t = {times[k]:.3g}")
        axes[1].legend(fontsize=7)
        axes[1].set_xlabel("x")
    else:
        figure, axes = _panels(3)
        for axis, k in zip(axes, (0, len(times) // 2, len(times) - 1), strict=True):
            _image(axis, grid, values[k], f"t = {times[k]:.3g}")
    figure.suptitle(f"{sample.equation}: {sample.shown}", fontsize=10)
    figure.savefig(PICTURES / f"{sample.equation}.png", dpi=70, metadata={"Software": None})
    plt.close(figure)


def _panels(count: int) -> tuple[Any, list[Any]]:
    figure, axes = plt.subplots(1, count, figsize=(3.2 * count + 0.4, 3.2), layout="constrained")
    return figure, list(np.atleast_1d(axes))


def _space_time(axis: Any, grid: Any, times: np.ndarray, values: np.ndarray) -> None:
    shown = axis.pcolormesh(grid.axes[0], times, values, shading="nearest", cmap="RdBu_r")
    axis.figure.colorbar(shown, ax=axis)
    axis.set_xlabel("x")
    axis.set_ylabel("t")


def _image(axis: Any, grid: Any, values: np.ndarray, title: str) -> None:
    plane = values if values.ndim == 2 else values[..., 0]
    shown = axis.pcolormesh(grid.axes[0], grid.axes[1], plane.T, shading="nearest", cmap="RdBu_r")
    axis.figure.colorbar(shown, ax=axis, shrink=0.75)
    axis.set_aspect("equal")
    axis.set_title(title, fontsize=8)


def page() -> str:
    """The page: what each picture should show, and the picture."""
    return "\n\n".join(f"## {s.equation}\n\n{s.told}.\n\n![{s.equation}](gallery/{s.equation}.png)" for s in SAMPLES)


def main() -> int:
    """1 when an equation is missing or the page does not agree."""
    missing = set(registry.names("equation")) - {sample.equation for sample in SAMPLES}
    if missing:
        print(f"no sample of {', '.join(sorted(missing))} in docs/gallery_samples.py")
        return 1
    chosen = [name for name in sys.argv[1:] if not name.startswith("-")]
    if "--check" not in sys.argv:
        for sample in SAMPLES:
            if not chosen or sample.equation in chosen:
                draw(sample)
                print(sample.equation, flush=True)
    return update("gallery.md", "gallery.py", page())


if __name__ == "__main__":
    sys.exit(main())
