"""A training that has become NaN stops, and says where."""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING, final

from sciml.checkpoint import Checkpoints
from sciml.errors import NumericalError, SciMLError
from sciml.training.hooks.base import Hook, Record

if TYPE_CHECKING:
    from sciml.training.loop import Run


@final
class StopAtNonFinite(Hook):
    """Raises NumericalError naming the first bad step, the terms and the last good checkpoint.

    Put it after the logs, so that they show what happened, and before all others.
    """

    def __init__(self, checkpoints: Checkpoints | None = None) -> None:
        self.checkpoints = checkpoints

    def on_records(self, run: Run, records: list[Record]) -> None:
        """Look at every record."""
        for record in records:
            if not record.get("finite", True):
                raise _diverged(record, self._last_good())

    def _last_good(self) -> int | None:
        if self.checkpoints is None:
            return None
        with contextlib.suppress(SciMLError):  # a failed save must not hide why the training ends
            self.checkpoints.wait()
        return self.checkpoints.last_good


@final
class StopBelow(Hook):
    """Ends the training once a metric falls below a value, e.g. the loss of a PINN below 1e-14."""

    def __init__(self, metric: str, value: float) -> None:
        self.metric, self.value = metric, value

    def on_records(self, run: Run, records: list[Record]) -> None:
        """Look at every record that has the metric."""
        if any(record.get(self.metric, math.inf) < self.value for record in records):
            run.stop = f"{self.metric} < {self.value:g}"


def _diverged(record: Record, last_good: int | None) -> NumericalError:
    terms = {name.removeprefix("loss/"): v for name, v in record.items() if name.startswith("loss/")}
    bad = [name for name, value in terms.items() if not math.isfinite(value)]
    where = f"term {', '.join(bad)}" if bad else "the gradient"
    return NumericalError(
        f"{where} is not finite at step {record['step']}",
        expected="finite losses and gradients",
        got=", ".join(f"{name} {record[name]:g}" for name in record if name.startswith(("loss", "grad_norm"))),
        reason="the learning rate is too high, or a batch holds numbers far outside of the usual range",
        fix=f"a lower learning_rate or clip: 1.0; the last good checkpoint is {last_good or 'none'}",
    )
