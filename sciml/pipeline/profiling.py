"""`--profile`: a trace of some steps for TensorBoard or Perfetto, and ten lines on where the time went."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import final

import jax

from sciml.pipeline.progress import Progress
from sciml.runfolder import explained, write_json, write_text
from sciml.training.hooks.base import Hook
from sciml.training.hooks.watching import PURPOSES, STEPPING, TRACING, WAITING
from sciml.training.loop import Run

FOLDER, STEPS, SKIPPED = "profile", 20, 2
TEXT, NUMBERS = "summary.txt", "summary.json"
logger = logging.getLogger(__name__)


@final
class Trace(Hook):
    """Writes a trace of `steps` steps into `folder`; the first steps, of which one is compiled, are left out."""

    purpose = TRACING

    def __init__(self, folder: Path, steps: int = STEPS) -> None:
        self.folder, self.steps = folder, steps
        self._first, self._running = 0, False

    def on_start(self, run: Run) -> None:
        """The steps to come are counted from here."""
        self._first = run.step + SKIPPED

    def on_step(self, run: Run) -> None:
        """Begin and end where it is due, with no step under way."""
        if not self._running and self._first <= run.step < self._first + self.steps:
            run.flush()
            with explained(self.folder):
                self.folder.mkdir(parents=True, exist_ok=True)
            jax.profiler.start_trace(self.folder)
            self._running = True
        elif self._running and run.step >= self._first + self.steps:
            run.flush()
            self._stop()

    def on_end(self, run: Run) -> None:
        """A training that was too short for all the steps ends its trace here."""
        del run
        self._stop()

    def close(self) -> None:
        """After a failure."""
        self._stop()

    def _stop(self) -> None:
        if not self._running:
            return
        self._running = False
        try:
            jax.profiler.stop_trace()
        except Exception as error:  # a training does not fail because nobody can look at it
            logger.warning("the trace could not be written to %s: %s", self.folder, error)


@final
class Summarize(Hook):
    """At the end prints where the time went, and keeps it as text and numbers in `folder`; the last of all hooks."""

    def __init__(self, name: str, folder: Path, progress: Progress) -> None:
        self.name, self.folder, self.progress = name, folder, progress
        self._first = 0

    def on_start(self, run: Run) -> None:
        """Steps of earlier processes do not count."""
        self._first = run.step

    def on_end(self, run: Run) -> None:
        """Print and keep."""
        spent, steps = run.clock.spent, run.step - self._first
        text = summary(self.name, spent, steps, self.folder)
        write_text(self.folder / TEXT, text + "\n")
        write_json(self.folder / NUMBERS, {"steps": steps, "seconds": spent})
        self.progress.say(text)


def summary(name: str, spent: Mapping[str, float], steps: int, folder: Path) -> str:
    """Ten lines: the whole, one for each purpose, and a step on average."""
    whole = sum(spent.values())
    lines = [f"{name}: {steps} steps in {whole:.1f} s"]
    for purpose in PURPOSES:
        note = f"  ({folder}, for TensorBoard or Perfetto)" if purpose == TRACING else ""
        share = 100 * spent[purpose] / max(whole, 1e-9)
        lines.append(f"  {purpose:<16} {spent[purpose]:8.2f} s {share:5.1f} %{note}")
    later = max(steps - 1, 1)  # the first one is compiled
    wait, step = 1e3 * spent[WAITING] / later, 1e3 * (spent[WAITING] + spent[STEPPING]) / later
    return "\n".join([*lines, f"  a step takes {step:.2f} ms, {wait:.2f} ms of it waiting for data"])


def profiled(folder: Path, name: str, progress: Progress) -> tuple[Hook, ...]:
    """The hooks that profile the training of one model of the run in `folder`."""
    place = folder / FOLDER / name
    return Trace(place), Summarize(name, place, progress)
