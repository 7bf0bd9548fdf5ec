"""Measuring a model on held-out data during its training, and keeping the best one."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, final

import jax
import numpy as np

from sciml.checkpoint import Checkpoints
from sciml.errors import IntegrityError
from sciml.training.hooks.base import Hook
from sciml.types import PyTree

if TYPE_CHECKING:
    from sciml.training.loop import Run

PREFIX = "evaluation/"
logger = logging.getLogger(__name__)


@final
class Evaluate(Hook):
    """Every `every` steps calls `measure(params)` and publishes its numbers as `evaluation/<name>`.

    The parameters with the smallest `criterion` are kept: in `best` (host arrays; None before the first evaluation),
    and in the checkpoints `store`, if given, from which a resumed run takes them up.
    """

    def __init__(
        self,
        measure: Callable[[PyTree], dict[str, float]],
        every: int,
        criterion: str = "error",
        store: Checkpoints | None = None,
    ) -> None:
        self.measure, self.every, self.criterion, self.store = measure, every, criterion, store
        self.best: PyTree | None = None
        self.best_value, self.best_step = float("inf"), 0
        self._last = 0

    def on_start(self, run: Run) -> None:
        """Take up the best of an interrupted run, unless it is damaged or lies beyond the restored step."""
        self._last = run.step
        if not run.step or self.store is None or not self.store.steps():
            return
        try:
            params, meta = self.store.restore(run.state.params)
        except IntegrityError as error:
            logger.warning("the best parameters are damaged and looked for anew from here: %s", error.what)
            return
        if meta["step"] <= run.step:
            self.best, self.best_value, self.best_step = params, meta["value"], meta["step"]

    def on_step(self, run: Run) -> None:
        """Evaluate where it is due."""
        if run.step // self.every > self._last // self.every:
            self._evaluate(run)

    def on_end(self, run: Run) -> None:
        """Evaluate the end."""
        if self._last != run.step:
            self._evaluate(run)
        if self.store is not None:
            self.store.wait()

    def _evaluate(self, run: Run) -> None:
        run.flush()
        self._last = run.step
        values: dict[str, Any] = {name: float(v) for name, v in self.measure(run.state.params).items()}
        run.publish({f"{PREFIX}{name}": value for name, value in values.items()})
        if values[self.criterion] < self.best_value:
            self.best_value, self.best_step = values[self.criterion], run.step
            self.best = jax.tree.map(lambda leaf: np.array(leaf, copy=True), run.state.params)
            if self.store is not None:
                meta = {"step": run.step, "value": self.best_value}
                self.store.save(run.step, run.state.params, meta)
