"""The training loop: the same few lines for every model, objective, optimizer and plan."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Protocol, final

import jax
import numpy as np

from sciml.errors import ConfigError, DataError
from sciml.parallel.step import Metrics, Step
from sciml.training.hooks.base import Hook, Record
from sciml.training.hooks.watching import COMPILING, LOGGING, STEPPING, WAITING, Clock
from sciml.training.objective import Batch
from sciml.training.state import TrainState


class Batches(Protocol):
    """An endless stream of batches whose position can be saved as plain JSON and set again."""

    def __next__(self) -> Batch:
        """The next batch."""
        ...

    def get_state(self) -> dict[str, Any]:
        """Where the stream stands."""
        ...

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from there."""
        ...


@final
class SameBatch:
    """The same batch for ever: for full-batch training, and `{}` for objectives that draw their own points."""

    def __init__(self, batch: Batch | None = None) -> None:
        self.batch = batch or {}

    def __next__(self) -> Batch:
        return self.batch

    def get_state(self) -> dict[str, Any]:
        """Nothing to remember."""
        return {}

    def set_state(self, state: dict[str, Any]) -> None:
        """Nothing to set."""
        del state


@final
class Run:
    """A training in progress, as its hooks see it.

    state: the present state; step: steps done; total: steps to do; seconds: time spent so far, that of earlier
    processes included; batch: the last one; clock: what this process spends its time on. A hook ends the training by
    setting `stop` to the reason.
    """

    def __init__(
        self, state: TrainState, batches: Batches, total: int, hooks: Sequence[Hook], seconds: float = 0.0
    ) -> None:
        self.state, self.batches, self.total, self.hooks = state, batches, total, hooks
        self.step = int(state.step)
        self.rows: int | None = None
        self.batch: Batch = {}
        self.stop: str | None = None
        self.clock = Clock()
        self._before, self._began = seconds, time.monotonic()
        self._pending: list[tuple[int, Metrics]] = []
        self._fetched_at, self._fetched_step, self._waited = 0.0, self.step, 0.0

    @property
    def seconds(self) -> float:
        """Time spent in training."""
        return self._before + time.monotonic() - self._began

    def push(self, state: TrainState, metrics: Metrics, steps: int) -> None:
        """Note the outcome of a call that made `steps` steps, without waiting for it."""
        self.state = state
        self._pending.append((self.step, metrics))
        self.step += steps

    def flush(self) -> None:
        """Wait for the steps under way and give their records to every hook."""
        if not self._pending:
            return
        pending, self._pending = self._pending, []
        with self.clock.on(STEPPING):
            fetched = jax.device_get([metrics for _, metrics in pending])
        records = [
            record for (step, _), metrics in zip(pending, fetched, strict=True) for record in _records(step, metrics)
        ]
        self._add_rates(records)
        self._tell(records)

    def publish(self, values: Record) -> None:
        """Give values measured by one hook (an evaluation) to all of them."""
        self._tell([{"step": self.step, **values}])

    def _tell(self, records: list[Record]) -> None:
        with self.clock.on(LOGGING):
            for hook in self.hooks:
                hook.on_records(self, records)

    def _add_rates(self, records: list[Record]) -> None:
        spent = self.clock.spent
        now, waited = sum(spent.values()), spent[WAITING]
        passed = max(now - self._fetched_at, 1e-9)
        rate, wait = (self.step - self._fetched_step) / passed, (waited - self._waited) / passed
        self._fetched_at, self._fetched_step, self._waited = now, self.step, waited
        rates = {"seconds": self.seconds, "steps_per_second": rate, "wait_fraction": wait}
        if self.rows:
            rates["samples_per_second"] = rate * self.rows
        records[-1].update(rates)


def train(
    state: TrainState,
    step: Step,
    batches: Batches,
    hooks: Sequence[Hook] = (),
    *,
    steps: int,
    fetch_every: int = 20,
    seconds_before: float = 0.0,
) -> TrainState:
    """Train until `steps` steps are done in all, those before a restored `state` included.

    `seconds_before` is the time that those took (`meta["seconds"]` of the checkpoint).
    Metrics are fetched every `fetch_every` steps, because waiting for each one leaves the device idle.
    Raises what the hooks raise: NumericalError (79), Interrupted (75 or 130), StorageError (74); DataError
    when the batches end too early.
    """
    run = Run(state, batches, steps, hooks, seconds_before)
    _refuse_odd_steps(steps - run.step, step.repeat)
    try:
        for hook in hooks:
            hook.on_start(run)
        first = run.step
        while run.step < steps and run.stop is None:
            batch = _next(run, step.repeat)
            with run.clock.on(COMPILING if run.step == first else STEPPING):
                outcome = step(run.state, batch)
            run.push(*outcome, steps=step.repeat)
            if due(run.step, fetch_every, step.repeat) or run.step == steps:
                run.flush()
            for hook in hooks:
                with run.clock.on(hook.purpose):
                    hook.on_step(run)
        run.flush()
        for hook in hooks:
            with run.clock.on(hook.purpose):
                hook.on_end(run)
    finally:
        for hook in hooks:
            hook.close()
    return run.state


def due(step: int, every: int, stride: int = 1) -> bool:
    """Whether a multiple of `every` was reached by the last `stride` steps."""
    return step // every > (step - stride) // every


def _next(run: Run, repeat: int) -> Batch:
    """One batch, or `repeat` of them stacked."""
    with run.clock.on(WAITING):
        found = [next(run.batches, None) for _ in range(repeat)]
        batches = [batch for batch in found if batch is not None]
        if len(batches) < repeat:
            raise DataError(f"the batches ended at step {run.step}", expected=f"{run.total} steps", got=run.step)
        run.rows = next((len(values) for values in batches[0].values()), None)
        run.batch = batches[0] if repeat == 1 else jax.tree.map(lambda *leaves: np.stack(leaves), *batches)
        return run.batch


def _records(step: int, metrics: dict[str, np.ndarray]) -> list[Record]:
    """Plain numbers, one record per step; metrics of several steps have a leading axis."""
    columns = {name: np.atleast_1d(values).tolist() for name, values in metrics.items()}
    count = len(next(iter(columns.values())))
    return [{"step": step + 1 + i, **{name: column[i] for name, column in columns.items()}} for i in range(count)]


def _refuse_odd_steps(left: int, repeat: int) -> None:
    if left % repeat:
        raise ConfigError(
            "the steps left do not divide into calls",
            expected=f"a multiple of {repeat}",
            got=left,
            fix="choose steps and checkpoint_every as multiples of steps_per_call",
        )
