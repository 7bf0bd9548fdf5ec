"""Checkpoints during a training, leaving on a signal, and taking up again."""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast, final

from sciml.checkpoint import Checkpoints, Choice, host_arrays
from sciml.data.ranks import Ranks
from sciml.errors import Interrupted
from sciml.training.hooks.base import Hook
from sciml.training.hooks.watching import SAVING
from sciml.training.state import TrainState

if TYPE_CHECKING:
    from sciml.training.loop import Batches, Run

DATA, SECONDS, BLOCKED = "data", "seconds", "blocked_seconds"
T = TypeVar("T")
logger = logging.getLogger(__name__)


@final
class InterruptedByUser(Interrupted):
    """Ctrl-C, after the state was saved."""

    exit_code = 130


@final
class SaveCheckpoints(Hook):
    """Saves every `every` steps and at the end: state, position in the data, time spent, and `meta` (plain JSON).

    `stop_requested` is called once per step and tells which signal came (see `sciml.launch.signals`); then the step
    under way is finished and saved, and Interrupted is raised, with exit code 75 (SIGTERM, SIGUSR1: requeue) or 130
    (Ctrl-C). With `ranks`, all processes of a job save together and process 0 writes; a failure there is raised on
    all. `blocked`: seconds for which saving has held up the steps so far, kept in the meta.
    """

    purpose = SAVING

    def __init__(
        self,
        checkpoints: Checkpoints,
        every: int,
        meta: dict[str, Any] | None = None,
        stop_requested: Callable[[], signal.Signals | None] = lambda: None,
        ranks: Ranks | None = None,
        blocked: float = 0.0,
    ) -> None:
        self.checkpoints, self.every, self.meta = checkpoints, every, meta or {}
        self.stop_requested, self.ranks, self.blocked = stop_requested, ranks, blocked
        self._saved: int | None = None

    def on_start(self, run: Run) -> None:
        """Nothing is new yet."""
        self._saved = run.step

    def on_step(self, run: Run) -> None:
        """Save where it is due, leave where it is asked for."""
        number = self.stop_requested()
        if number is not None:
            self._save(run)
            self._on_first(self.checkpoints.wait)
            raise _interrupted(number, run)
        if run.step // self.every > (self._saved or 0) // self.every:
            self._save(run)

    def on_end(self, run: Run) -> None:
        """Save the end, and wait for it."""
        self._save(run)
        self._on_first(self.checkpoints.wait)
        share = self.blocked / max(run.seconds, 1e-9)
        logger.info("saving checkpoints held up the training for %.2f s, %.2f %% of it", self.blocked, 100 * share)

    def _save(self, run: Run) -> None:
        run.flush()  # a step that went wrong is found before it is saved
        if run.step == self._saved:
            return
        began = time.monotonic()
        meta = {**self.meta, DATA: run.batches.get_state(), SECONDS: run.seconds, BLOCKED: self.blocked}
        arrays = host_arrays(run.state)
        self._on_first(lambda: self.checkpoints.save_arrays(run.step, arrays, meta))
        self._saved = run.step
        self.blocked += time.monotonic() - began

    def _on_first(self, function: Callable[[], None]) -> None:
        """On process 0, which is the only one that writes; its failure is that of all."""
        if self.ranks is None:
            function()
        else:
            self.ranks.on_first(function)


def resume(
    checkpoints: Checkpoints,
    state: TrainState,
    batches: Batches,
    ranks: Ranks | None = None,
    choose: Choice | None = None,
) -> tuple[TrainState, dict[str, Any]]:
    """State of the newest intact checkpoint, with `batches` set to its position; `state` itself if there is none.

    Also returns the meta that was saved with it, or {}. Raises as `Checkpoints.restore` does. With `ranks`, process 0
    chooses the checkpoint and all read it, on any number of processes. `choose`: see `Checkpoints.restore`.
    """
    if ranks is None or ranks.size == 1:
        if not checkpoints.steps():
            return state, {}
        restored, meta = checkpoints.restore(state, choose=choose)
    else:
        step = ranks.on_first(checkpoints.newest)
        if step is None:
            return state, {}
        restored, meta = _together(ranks, lambda: checkpoints.restore(state, step, choose))
    batches.set_state(meta[DATA])
    return restored, meta


def _together(ranks: Ranks, function: Callable[[], T]) -> T:
    """The result of a function that all processes call; a failure on one of them is raised on all."""
    result, failure = None, None
    try:
        result = function()
    except Exception as error:
        failure = error
    ranks.agree(failure)
    return cast(T, result)


def _interrupted(number: signal.Signals, run: Run) -> Interrupted:
    kind = InterruptedByUser if number is signal.SIGINT else Interrupted
    return kind(
        f"{number.name}: stopped at step {run.step} of {run.total}, which is saved",
        fix="start the same command again to continue from there",
    )
