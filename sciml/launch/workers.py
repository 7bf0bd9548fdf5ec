"""The processes that a supervisor starts: each in a process group of its own, with a pipe on which its steps arrive."""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import final

from sciml.launch.join import (
    BEATS,
    COORDINATOR,
    DUMP_SIGNAL,
    PROCESS,
    PROCESSES,
    SLOT,
    STACKS,
    WANTED,
    Place,
    free_port,
    own_devices,
)
from sciml.launch.watchdog import FIRST_STEP, FIRST_STEP_SECONDS

POLL_SECONDS = 0.1
DUMP_SECONDS = 1.0
STOPPED_STATES = "Tt"
SHOWN_FRAMES = 6
LISTEN_HERE = "127.0.0.1"
CACHE = "JAX_COMPILATION_CACHE_DIR"


def kept_programs() -> dict[str, str]:
    """Variables by which jax keeps compiled programs on this machine, so that a restart need not compile them again.

    Nothing where the folder cannot be made, or belongs to somebody else: programs are taken from it unseen.
    """
    folder = Path(tempfile.gettempdir()) / f"sciml-programs-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        facts = folder.lstat()
    except OSError:
        return {}
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid() or facts.st_mode & 0o077:
        return {}
    return {CACHE: str(folder), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1"}


def devices_each(processes: int, environ: Mapping[str, str]) -> int:
    """Devices that each of so many processes on this machine gets, without asking jax, which would take them."""
    if not environ.get("JAX_PLATFORMS", "").startswith("cpu"):
        mine = own_devices(Place(0, processes, None, 0, processes, processes), environ)
        if mine:
            return len(mine)
    simulated = re.search(r"--xla_force_host_platform_device_count=(\d+)", environ.get("XLA_FLAGS", ""))
    return int(simulated[1]) if simulated else 1


@final
class Worker:
    """One process: its place, what it last said, and how it ended."""

    def __init__(self, slot: int, process: subprocess.Popen[bytes], pipe: int, stacks: Path) -> None:
        self.slot, self.process, self.pipe, self.stacks = slot, process, pipe, stacks
        self.step: int | None = None
        self.first_step_at: float | None = None
        self.stepping = self.first = False
        self.heard = time.monotonic()

    @property
    def code(self) -> int | None:
        """Exit code, negative for a signal; None while it runs."""
        return self.process.poll()

    def listen(self) -> None:
        """Take in the lines that are there."""
        with contextlib.suppress(OSError):
            lines = os.read(self.pipe, 1 << 16).decode().split("\n")
            for line in filter(None, lines):
                self.heard = time.monotonic()
                self.first, self.stepping = line.startswith("?"), line != "-"
                if self.stepping:
                    self.step = int(line.removeprefix("?"))
                if self.stepping and not self.first and self.first_step_at is None:
                    self.first_step_at = self.heard

    def silent(self, watchdog: float) -> float | None:
        """For how long no step has come, if that is longer than allowed."""
        if not self.stepping or self.code is not None:
            return None
        allowed = max(FIRST_STEP * watchdog, FIRST_STEP_SECONDS) if self.first else watchdog
        silent = time.monotonic() - self.heard
        return silent if silent > allowed else None

    @property
    def stopped(self) -> bool:
        """Whether the system holds it (SIGSTOP): it cannot even write its stack."""
        with contextlib.suppress(OSError, IndexError):
            state = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[0]
            return state in STOPPED_STATES
        return False

    def stack(self) -> list[str]:
        """The innermost frames of its main thread, after a dump."""
        with contextlib.suppress(OSError):
            threads = self.stacks.read_text(errors="replace").strip().split("\n\n")
            return threads[-1].splitlines()[1 : 1 + SHOWN_FRAMES]
        return []


@final
class Workers:
    """The processes of one attempt; `wanted` of them were asked for at first."""

    def __init__(
        self, command: Sequence[str], slots: Sequence[int], wanted: int, stacks: Path, environ: Mapping[str, str]
    ) -> None:
        stacks.mkdir(parents=True, exist_ok=True)
        self.started_at = time.monotonic()
        self.members: list[Worker] = []
        self._selector = selectors.DefaultSelector()
        fixed = {PROCESSES: len(slots), WANTED: wanted, COORDINATOR: f"{LISTEN_HERE}:{free_port()}"}
        try:
            for number, slot in enumerate(slots):
                path = stacks / f"process-{number}.txt"
                path.write_text("")
                own = {**fixed, PROCESS: number, SLOT: slot, STACKS: path}
                self._start(command, slot, path, {**kept_programs(), **environ, **{k: str(v) for k, v in own.items()}})
        except BaseException:
            self.kill()  # those that were started would wait for the others
            raise

    def _start(self, command: Sequence[str], slot: int, stacks: Path, environ: Mapping[str, str]) -> None:
        read, write = os.pipe()
        try:
            os.set_blocking(read, False)
            os.set_blocking(write, False)
            process = subprocess.Popen(
                list(command), env={**environ, BEATS: str(write)}, pass_fds=(write,), start_new_session=True
            )
        except BaseException:
            os.close(read)
            raise
        finally:
            os.close(write)
        self.members.append(Worker(slot, process, read, stacks))
        self._selector.register(read, selectors.EVENT_READ, self.members[-1])

    def listen(self, seconds: float = POLL_SECONDS) -> None:
        """Wait for a moment, and take in what is said."""
        time.sleep(seconds / 2)  # a loop of fast steps would wake this process at each of them
        for key, _ in self._selector.select(seconds / 2):
            worker: Worker = key.data
            worker.listen()
            if worker.code is not None:
                self._selector.unregister(key.fd)

    @property
    def running(self) -> list[Worker]:
        """Those that have not ended."""
        return [worker for worker in self.members if worker.code is None]

    @property
    def ended(self) -> list[Worker]:
        """Those that have."""
        return [worker for worker in self.members if worker.code is not None]

    @property
    def step(self) -> int:
        """The furthest step that any has told of."""
        return max((worker.step or 0 for worker in self.members), default=0)

    def tell(self, number: signal.Signals) -> None:
        """Send a signal to all that run."""
        for worker in self.running:
            with contextlib.suppress(ProcessLookupError):
                worker.process.send_signal(number)

    def wait(self, seconds: float) -> bool:
        """Whether all have ended within so many seconds."""
        until = time.monotonic() + seconds
        while self.running and time.monotonic() < until:
            self.listen()
        return not self.running

    def dump(self) -> None:
        """Let all write the stacks of their threads."""
        self.tell(DUMP_SIGNAL)
        time.sleep(DUMP_SECONDS)

    def kill(self) -> None:
        """End all and whatever they have started; nothing is waited for but the system."""
        for worker in self.members:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(worker.process.pid, signal.SIGKILL)
            worker.process.wait()
            worker.listen()
            os.close(worker.pipe)
        self._selector.close()
