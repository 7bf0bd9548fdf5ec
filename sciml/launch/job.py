"""The processes that run a recipe together, as the stages of a pipeline see them."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, final

from sciml.data.ranks import Ranks
from sciml.launch.agreement import Agreement
from sciml.launch.signals import StopSignals
from sciml.launch.watchdog import Beats

StopRequested = Callable[[], signal.Signals | None]


class _Alone:
    """The communicator of a single process, so that no MPI launcher is asked."""

    def Get_rank(self) -> int:
        return 0

    def Get_size(self) -> int:
        return 1

    def allgather(self, value: Any) -> list[Any]:
        return [value]

    def bcast(self, value: Any, root: int = 0) -> Any:
        del root
        return value


@final
@dataclass(frozen=True)
class Job:
    """Who takes part: `ranks` to speak to each other, and `wanted`, the number of processes the job began with.

    `wanted` is more than there are after a supervisor has lost some.
    """

    ranks: Ranks = field(default_factory=lambda: Ranks(_Alone()))
    wanted: int = 1
    agreement: Agreement | None = None
    beats: Beats = field(default_factory=Beats)

    @property
    def first(self) -> bool:
        """Whether this process writes files and speaks to people."""
        return self.ranks.rank == 0

    @contextlib.contextmanager
    def stopping(self) -> Iterator[StopRequested]:
        """Inside, signals to stop are noted; the value, asked once per step, tells when all have to stop."""
        with StopSignals() as signals:
            agreement = self.agreement
            yield signals if agreement is None else lambda: agreement.ask(signals.received)
