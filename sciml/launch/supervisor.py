"""A supervisor: starts the processes of a run, sees them die or stand still, and starts them again.

The training continues from its last verified checkpoint. Fewer processes take over the work of those that are lost:
the batch stays, its portions grow. One supervisor has the processes of one machine; over several machines Slurm starts
a job again (`docs/cluster.md`).
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from sciml.errors import ConfigError
from sciml.launch.signals import StopSignals
from sciml.launch.workers import Worker, Workers

OK, REQUEUE, PEER_GONE, INTERRUPTED = 0, 75, 80, 130
FINAL = frozenset((2, 65, 73, 74, 76, 77, 78, 79, INTERRUPTED))
"""Codes of failures that would come again: bad recipes, bad data, full disks, losses that are not finite."""
ABORTED = -signal.SIGABRT
"""How jax ends a process that has lost its peers: a consequence, not a cause."""
FOLLOW_SECONDS, SIGNAL_SECONDS = 5.0, 1.0
EVENTS = "supervisor.jsonl"


@dataclass(frozen=True)
class Policy:
    """processes: how many to start; least: with how few to go on; watchdog: seconds that a step may take.

    rest: seconds for which the place of a failed process is left out (0: it is started again at once); attempts:
    restarts without any progress after which the supervisor gives up; grace: seconds to save and leave in.
    """

    processes: int
    least: int = 1
    watchdog: float = 300.0
    rest: float = 0.0
    attempts: int = 3
    grace: float = 60.0

    def __post_init__(self) -> None:
        if self.processes < 1 or not 1 <= self.least <= self.processes or self.watchdog <= 0 or self.attempts < 1:
            raise ConfigError(
                "a supervisor needs at least one process, and a watchdog with time",
                expected="processes >= least >= 1, watchdog > 0, attempts >= 1",
                got=f"processes {self.processes}, least {self.least}, watchdog {self.watchdog:g}",
            )


@dataclass(frozen=True)
class End:
    """How an attempt ended: its code, the places that failed, and what happened in words."""

    code: int
    failed: tuple[int, ...] = ()
    words: str = ""
    final: bool = False


@final
class Supervisor:
    """Runs `command` as the processes of one job until it is done, is stopped, or gets nowhere.

    `suits(n)` tells whether the work divides over n processes, fewer than at first. What happens is printed, and
    written to `<folder>/supervisor.jsonl`, one JSON object per event.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        policy: Policy,
        suits: Callable[[int], bool] = lambda n: True,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.command, self.folder, self.policy, self.suits, self.environ = command, folder, policy, suits, environ
        self._back_at = dict.fromkeys(range(policy.processes), 0.0)
        self._restarts = self._idle = 0
        self._failed_at: float | None = None

    def run(self) -> int:
        """The exit code of the whole: 0, 75 after a signal to stop, or that of a failure that stays."""
        with StopSignals() as signals:
            while True:
                before = progress(self.folder)
                end = self._attempt(signals)
                if end.final:
                    self._event("ended", code=end.code, restarts=self._restarts)
                    if end.code not in (OK, REQUEUE, INTERRUPTED):
                        self._say(f"{end.words}; not started again, because it would fail again", "gave up", end)
                    return end.code
                self._idle = 0 if progress(self.folder) != before else self._idle + 1
                if self._idle >= self.policy.attempts:
                    self._give_up(end)
                    return end.code if end.code > 0 else PEER_GONE
                self._restarts += 1
                back = time.monotonic() + self.policy.rest
                self._back_at.update(dict.fromkeys(end.failed, back))

    def _attempt(self, signals: StopSignals) -> End:
        slots = self._slots(signals)
        if signals.received is not None:
            self._say(f"{signals.received.name}: stopped while no process ran; {self._safe()}", "stopped")
            return End(INTERRUPTED if signals.received is signal.SIGINT else REQUEUE, final=True)
        workers = Workers(
            self.command, slots, self.policy.processes, self.folder / "stacks" / f"{self._restarts}", self.environ
        )
        pids = [worker.process.pid for worker in workers.members]
        self._event("started", processes=len(slots), pids=pids, restarts=self._restarts)
        try:
            return self._follow(workers, signals)
        finally:
            workers.kill()

    def _follow(self, workers: Workers, signals: StopSignals) -> End:
        under_way = False
        while True:
            workers.listen()
            if signals.received is not None:
                return self._stop(workers, signals.received)
            if any(worker.code != OK for worker in workers.ended):
                return self._failed(workers, signals)
            if not workers.running:
                return End(OK, final=True)
            late = [worker for worker in workers.members if worker.silent(self.policy.watchdog) is not None]
            if late:
                return self._stalled(workers)
            if not under_way and all(worker.first_step_at for worker in workers.members):
                under_way = True
                self._event("under way", step=workers.step)
                if self._failed_at is not None:
                    self._event("recovered", seconds=time.monotonic() - self._failed_at, step=workers.step)
            if self._can_grow(len(workers.members)):
                self._say("a place is free again: all save and start anew with more processes", "growing")
                workers.tell(signal.SIGTERM)
                workers.wait(self.policy.grace)
                return End(REQUEUE)

    def _stop(self, workers: Workers, number: signal.Signals) -> End:
        """Asked to stop: all save and leave."""
        workers.tell(signal.SIGINT if number is signal.SIGINT else signal.SIGTERM)
        in_time = workers.wait(self.policy.grace)
        codes = {worker.code for worker in workers.members}
        if codes == {OK}:
            return End(OK, final=True)
        what = f"{number.name}: " + ("all processes saved and left" if in_time else "killed after the time to save")
        self._say(f"{what}; {self._safe()}\n  write instead: the same command again", "stopped")
        return End(INTERRUPTED if number is signal.SIGINT else REQUEUE, final=True)

    def _failed(self, workers: Workers, signals: StopSignals) -> End:
        """Somebody has ended with a failure: who, and why?"""
        self._failed_at = time.monotonic()
        codes = {worker.code for worker in workers.ended if worker.code != OK}
        if codes <= FINAL | {REQUEUE}:  # they agree on that, and leave by themselves
            workers.wait(self.policy.grace if REQUEUE in codes else FOLLOW_SECONDS)
            codes = {worker.code for worker in workers.ended if worker.code != OK}
            final = sorted(code for code in codes if code in FINAL)
            if final:
                return End(final[0], words=f"the run ended with exit code {final[0]}", final=True)
            if codes == {REQUEUE}:
                return self._asked_to_leave(workers, signals)
        causes = _causes(workers)
        words = ", ".join(f"process {workers.members.index(w)} {_death(w)}" for w in causes)
        self._say(f"{words} at step {workers.step}; {self._safe()}; starting again", "failed", step=workers.step)
        return End(causes[0].code or PEER_GONE, tuple(w.slot for w in causes), words)

    def _asked_to_leave(self, workers: Workers, signals: StopSignals) -> End:
        """All saved and left, because a signal came to one of them; perhaps it comes here too."""
        for worker in workers.members:
            worker.listen()
        until = time.monotonic() + SIGNAL_SECONDS
        while signals.received is None and time.monotonic() < until:
            time.sleep(0.05)
        if signals.received is not None:
            self._say(f"{signals.received.name}: all processes saved and left; {self._safe()}", "stopped")
            return End(INTERRUPTED if signals.received is signal.SIGINT else REQUEUE, final=True)
        words = f"a process was asked to stop, and all saved and left; {self._safe()}; starting again"
        self._say(words, "left", step=workers.step)
        return End(REQUEUE, words="the processes left with exit code 75 each time")

    def _stalled(self, workers: Workers) -> End:
        """No step for too long: the stacks of all, then their end."""
        self._failed_at = time.monotonic()
        workers.dump()
        lines = []
        stopped = [worker.stopped for worker in workers.members]
        for number, (worker, held) in enumerate(zip(workers.members, stopped, strict=True)):
            state = "stopped by a signal" if held else "alive"
            silent = time.monotonic() - worker.heard
            lines.append(f"  process {number}: {state}, at step {worker.step}, silent for {silent:.1f} s")
            lines += [f"    {frame.strip()}" for frame in worker.stack()]
        causes = [w for w, held in zip(workers.members, stopped, strict=True) if held] or _furthest_behind(workers)
        names = ", ".join(str(workers.members.index(w)) for w in causes)
        who = f"process {names} stands still" if names else "all processes are at the same step"
        words = f"no step for {self.policy.watchdog:g} s; {who}"
        place = workers.members[0].stacks.parent
        self._say(
            "\n".join([f"{words}; stacks of all threads: {place}", *lines, f"  {self._safe()}; starting again"]),
            "stalled",
            step=workers.step,
        )
        return End(PEER_GONE, tuple(worker.slot for worker in causes), words)

    def _slots(self, signals: StopSignals) -> list[int]:
        """Places for the next attempt: as many of those that are not resting as the work divides over.

        No places once a signal to stop has come.
        """
        while signals.received is None:
            free = [slot for slot, back in self._back_at.items() if back <= time.monotonic()]
            count = self._fitting(len(free))
            if count:
                return free[:count]
            time.sleep(0.1)
        return []

    def _fitting(self, count: int) -> int:
        """The largest number that the work suits; that of the beginning is left to the processes themselves."""
        numbers = range(count, self.policy.least - 1, -1)
        return next((n for n in numbers if n == self.policy.processes or self.suits(n)), 0)

    def _can_grow(self, now: int) -> bool:
        free = [slot for slot, back in self._back_at.items() if back <= time.monotonic()]
        return now < self.policy.processes and self._fitting(len(free)) > now

    def _give_up(self, end: End) -> None:
        self._say(
            f"gave up after {self._restarts} restarts, the last {self._idle} of them without progress\n"
            f"  last failure: {end.words}\n  {self._safe()}\n"
            "  write instead: the same command again, once the cause is gone",
            "gave up",
            end,
        )

    def _safe(self) -> str:
        steps = progress(self.folder)[1]
        return "safe: " + (", ".join(f"{name} at step {step}" for name, step in steps) or "no checkpoint yet")

    def _say(self, text: str, event: str, end: End | None = None, **facts: Any) -> None:
        print(f"supervisor: {text}", file=sys.stderr, flush=True)
        self._event(event, text=text, **({} if end is None else {"code": end.code}), **facts)

    def _event(self, event: str, **facts: Any) -> None:
        line = {"time": time.time(), "event": event, "safe": dict(progress(self.folder)[1]), **facts}
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / EVENTS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def progress(folder: Path) -> tuple[int, tuple[tuple[str, int], ...]]:
    """What is safe on disk: number of shards of data, and the newest checkpoint of each model."""
    newest = []
    for place in sorted(folder.glob("models/*/checkpoints")):
        steps = [int(path.name) for path in place.iterdir() if path.name.isdigit()]
        if steps:
            newest.append((place.parent.name, max(steps)))
    return len(list(folder.glob("data/shard-*"))), tuple(newest)


def _furthest_behind(workers: Workers) -> list[Worker]:
    """Those with the fewest steps; nobody where all have as many: any of them may be the cause."""
    least = min(worker.step or 0 for worker in workers.members)
    behind = [worker for worker in workers.members if (worker.step or 0) == least]
    return behind if len(behind) < max(len(workers.members), 2) else []


def _causes(workers: Workers) -> list[Worker]:
    """Who failed first, by what is known: killed, or held by the system, or else whoever ended with a failure."""
    bad = [worker for worker in workers.ended if worker.code != OK]
    killed = [worker for worker in bad if (worker.code or 0) < 0 and worker.code != ABORTED]
    return killed or [worker for worker in workers.running if worker.stopped] or bad


def _death(worker: Worker) -> str:
    code = worker.code or 0
    pid = f"(pid {worker.process.pid})"
    if worker.code is None:
        return f"{pid} was stopped by a signal, and others ended"
    return f"{pid} was killed by {signal.Signals(-code).name}" if code < 0 else f"{pid} ended with exit code {code}"
