"""Checkpoints during a training, leaving on a signal, and taking up again."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, final

from sciml.checkpoint import Checkpoints
from sciml.errors import Interrupted
from sciml.training.hooks.base import Hook
from sciml.training.state import TrainState

if TYPE_CHECKING:
    from sciml.training.loop import Batches, Run

DATA, SECONDS = "data", "seconds"


@final
class InterruptedByUser(Interrupted):
    """Ctrl-C, after the state was saved."""

    exit_code = 130


@final
class SaveCheckpoints(Hook):
    """Saves every `every` steps and at the end: state, position in the data, time spent, and `meta` (plain JSON).

    `stop_requested` tells which signal came (see `sciml.launch.signals`); then the step under way is
    finished and saved, and Interrupted is raised, with exit code 75 (SIGTERM: requeue) or 130 (Ctrl-C).
    """

    def __init__(
        self,
        checkpoints: Checkpoints,
        every: int,
        meta: dict[str, Any] | None = None,
        stop_requested: Callable[[], signal.Signals | None] = lambda: None,
    ) -> None:
        self.checkpoints, self.every, self.meta = checkpoints, every, meta or {}
        self.stop_requested = stop_requested
        self._saved: int | None = None

    def on_start(self, run: Run) -> None:
        """Nothing is new yet."""
        self._saved = run.step

    def on_step(self, run: Run) -> None:
        """Save where it is due, leave where it is asked for."""
        number = self.stop_requested()
        if number is not None:
            self._save(run)
            self.checkpoints.wait()
            raise _interrupted(number, run)
        if run.step // self.every > (self._saved or 0) // self.every:
            self._save(run)

    def on_end(self, run: Run) -> None:
        """Save the end, and wait for it."""
        self._save(run)
        self.checkpoints.wait()

    def _save(self, run: Run) -> None:
        run.flush()  # a step that went wrong is found before it is saved
        if run.step != self._saved:
            meta = {**self.meta, DATA: run.batches.get_state(), SECONDS: run.seconds}
            self.checkpoints.save(run.step, run.state, meta)
            self._saved = run.step


def resume(checkpoints: Checkpoints, state: TrainState, batches: Batches) -> tuple[TrainState, dict[str, Any]]:
    """State of the newest intact checkpoint, with `batches` set to its position; `state` itself if there is none.

    Also returns the meta that was saved with it, or {}. Raises as `Checkpoints.restore` does.
    """
    if not checkpoints.steps():
        return state, {}
    restored, meta = checkpoints.restore(state)
    batches.set_state(meta[DATA])
    return restored, meta


def _interrupted(number: signal.Signals, run: Run) -> Interrupted:
    kind = InterruptedByUser if number is signal.SIGINT else Interrupted
    return kind(
        f"{number.name}: stopped at step {run.step} of {run.total}, which is saved",
        fix="start the same command again to continue from there",
    )
