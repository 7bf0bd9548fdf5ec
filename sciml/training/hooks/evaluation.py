"""Measuring a model on held-out data during its training, and keeping the best one."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, final

import jax
import jax.numpy as jnp

from sciml.checkpoint import Checkpoints, host
from sciml.data.ranks import Ranks
from sciml.errors import IntegrityError
from sciml.training.hooks.base import Hook
from sciml.training.hooks.watching import EVALUATING
from sciml.types import PyTree

if TYPE_CHECKING:
    from sciml.training.loop import Run

PREFIX = "evaluation/"
logger = logging.getLogger(__name__)


@final
class Evaluate(Hook):
    """Every `every` steps calls `measure(params)` and publishes its numbers as `evaluation/<name>`.

    The parameters with the smallest `criterion` are kept: in `best` (host arrays; None before the first evaluation),
    and in the checkpoints `store`, if given, from which a resumed run takes them up. With `ranks`, process 0 of a job
    measures and keeps, and all learn the numbers.
    """

    purpose = EVALUATING

    def __init__(
        self,
        measure: Callable[[PyTree], dict[str, float]],
        every: int,
        criterion: str = "error",
        store: Checkpoints | None = None,
        ranks: Ranks | None = None,
    ) -> None:
        self.measure, self.every, self.criterion, self.store = measure, every, criterion, store
        self.ranks = ranks if ranks is not None and ranks.size > 1 else None
        self.best: PyTree | None = None
        self.best_value, self.best_step = float("inf"), 0
        self._last = 0

    def on_start(self, run: Run) -> None:
        """Take up the best of an interrupted run, unless it is damaged or lies beyond the restored step."""
        self._last = run.step
        if not run.step or self.store is None:
            return
        if self.ranks is None:
            self._take_up(run.step, run.state.params)
            return
        params = host(run.state.params)
        self.best_value, self.best_step = self.ranks.on_first(lambda: self._take_up(run.step, params))

    def on_step(self, run: Run) -> None:
        """Evaluate where it is due."""
        if run.step // self.every > self._last // self.every:
            self._evaluate(run)

    def on_end(self, run: Run) -> None:
        """Evaluate the end."""
        if self._last != run.step:
            self._evaluate(run)
        if self.store is not None and (self.ranks is None or self.ranks.rank == 0):
            self.store.wait()

    def _take_up(self, step: int, like: PyTree) -> tuple[float, int]:
        assert self.store is not None
        if self.store.steps():
            try:
                params, meta = self.store.restore(like)
            except IntegrityError as error:
                logger.warning("the best parameters are damaged and looked for anew from here: %s", error.what)
            else:
                if meta["step"] <= step:
                    self.best, self.best_value, self.best_step = params, meta["value"], meta["step"]
        return self.best_value, self.best_step

    def _evaluate(self, run: Run) -> None:
        run.flush()
        self._last = run.step
        values = self._measured(run.state.params)
        run.publish({f"{PREFIX}{name}": value for name, value in values.items()})
        if values[self.criterion] < self.best_value:
            self.best_value, self.best_step = values[self.criterion], run.step
            self.best = host(run.state.params)
            if self.store is not None:
                self._keep(self.store, {"step": run.step, "value": self.best_value})

    def _measured(self, params: PyTree) -> dict[str, float]:
        def measured(values: PyTree) -> dict[str, float]:
            return {name: float(v) for name, v in self.measure(values).items()}

        if self.ranks is None:
            return measured(params)
        here = jax.tree.map(jnp.asarray, host(params))  # a copy that belongs to this process alone
        return self.ranks.on_first(lambda: measured(here))

    def _keep(self, store: Checkpoints, meta: dict[str, Any]) -> None:
        if self.ranks is None:
            store.save(meta["step"], self.best, meta)
        else:
            self.ranks.on_first(lambda: store.save(meta["step"], self.best, meta))
