"""Energy that this node uses: its GPUs by NVML (`nvidia-ml-py`), its processors by RAPL; neither has to be there."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias, final

NOT_MEASURED = "not measured"
POWERCAP = Path("/sys/class/powercap")
VISIBLE = "CUDA_VISIBLE_DEVICES"
Counter: TypeAlias = tuple[Callable[[], float], float | None]
"""Reads joules since some moment; the value at which it begins again at 0, None where it never does."""


@final
class Energy:
    """Joules by what used them, since it was made; `update` has to be called before a counter went around once.

    RAPL's counters go around after some 262 kJ, the better part of an hour.
    """

    def __init__(self, counters: Mapping[str, list[Counter]] | None = None) -> None:
        self._counters = found_counters() if counters is None else counters
        self._last = {name: [read() for read, _ in parts] for name, parts in self._counters.items()}
        self._joules = dict.fromkeys(self._counters, 0.0)

    def update(self) -> None:
        """Read all counters."""
        for name, parts in self._counters.items():
            for place, (read, around) in enumerate(parts):
                now = read()
                used, self._last[name][place] = now - self._last[name][place], now
                self._joules[name] += used + around if used < 0 and around is not None else max(used, 0.0)

    @property
    def joules(self) -> dict[str, float] | str:
        """Up to the last update, or the words `not measured`."""
        return dict(self._joules) if self._counters else NOT_MEASURED


def found_counters() -> dict[str, list[Counter]]:
    """What there is: `gpu` and `cpu`."""
    found = {"gpu": _nvml(), "cpu": rapl(POWERCAP)}
    return {name: counters for name, counters in found.items() if counters}


def rapl(folder: Path) -> list[Counter]:
    """One counter for each processor package that may be read; often only root may."""
    found = []
    for zone in sorted(folder.glob("*-rapl:[0-9]*")):
        if zone.name.count(":") > 1:  # a part of a package
            continue
        try:
            (zone / "energy_uj").read_text()
            around = float((zone / "max_energy_range_uj").read_text()) * 1e-6
        except (OSError, ValueError):
            continue
        found.append((_micro_joules(zone / "energy_uj"), around))
    return found


def _micro_joules(path: Path) -> Callable[[], float]:
    return lambda: float(path.read_text()) * 1e-6


def _nvml() -> list[Counter]:
    """One counter for each GPU that this process may use and that counts its energy (Volta and later)."""
    try:
        import pynvml  # pyright: ignore[reportMissingImports] -- optional
    except ImportError:
        return []
    try:
        pynvml.nvmlInit()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in _visible(pynvml.nvmlDeviceGetCount())]
        for handle in handles:
            pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)
    except pynvml.NVMLError:
        return []
    return [(_milli_joules(pynvml, handle), None) for handle in handles]


def _milli_joules(library: Any, handle: Any) -> Callable[[], float]:
    return lambda: library.nvmlDeviceGetTotalEnergyConsumption(handle) * 1e-3


def _visible(count: int) -> list[int]:
    """Numbers of the GPUs that are visible; all of them where they are not named by number."""
    names = os.environ.get(VISIBLE, "").split(",")
    numbered = [int(name) for name in names if name.isdigit() and int(name) < count]
    return numbered if len(numbered) == len(names) else list(range(count))
