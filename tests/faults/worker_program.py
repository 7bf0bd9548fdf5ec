"""A process under a supervisor, without jax: python worker_program.py FOLDER STEPS FAULT [RANK:STEP]

It tells of a step every few milliseconds, and process 0 leaves a mark as if it saved every fifth one; the processes
wait for each other as in a collective. The fault happens once, or each time if it ends with `!`.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from sciml.launch.join import BEATS, DUMP_SIGNAL, PROCESS, PROCESSES, STACKS
from sciml.launch.watchdog import Beats

STOP: list[int] = []


def stand_still() -> None:
    """The frame that a stack has to show."""
    time.sleep(1000)


FAULTS = {
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "freeze": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "config": lambda: os._exit(78),
    "internal": lambda: os._exit(70),
    "leave": lambda: STOP.append(1),
    "stall": int,
}
EARLY = {"stall": stand_still}
"""Before the step is told of, so that the process is behind the others."""


def main(folder: str, steps: str, fault: str = "", where: str = "0:0") -> int:
    place, rank, size = Path(folder), int(os.environ[PROCESS]), int(os.environ[PROCESSES])
    faulthandler.register(DUMP_SIGNAL, file=open(os.environ[STACKS], "w"))  # noqa: SIM115 -- stays open
    signal.signal(signal.SIGTERM, lambda number, frame: STOP.append(number))
    beats, saved = Beats(int(os.environ[BEATS])), place / "models/m/checkpoints"
    saved.mkdir(parents=True, exist_ok=True)
    first = max((int(p.name) for p in saved.iterdir()), default=0)
    victim, at = map(int, where.split(":"))
    tries = place / "tries"
    beats.step(first, first=True)
    for step in range(first + 1, int(steps) + 1):
        time.sleep(0.005)
        now = step == at and rank == victim and fault and (fault.endswith("!") or not (place / "done").exists())
        if now:
            (place / "done").write_text("")
            EARLY.get(fault, int)()
        beats.step(step)
        with tries.open("a") as file:
            file.write(f"{size} {rank} {step}\n")
        if now:
            FAULTS[fault.removesuffix("!")]()
        (place / f"stop-{os.getppid()}").touch() if STOP else None
        if (place / f"stop-{os.getppid()}").exists() or step % 5 == 0:
            (saved / str(step)).mkdir(exist_ok=True)
        if (place / f"stop-{os.getppid()}").exists():
            time.sleep(0.1)
            (place / f"stop-{os.getppid()}").unlink(missing_ok=True)
            return 75
        wait(place, size, rank, step)
    beats.pause()
    return 0


def wait(place: Path, size: int, rank: int, step: int) -> None:
    """Until all are at this step."""
    (place / f"at-{rank}").write_text(str(step))
    while any(_at(place / f"at-{other}") < step for other in range(size)):
        if STOP or (place / f"stop-{os.getppid()}").exists():
            return
        time.sleep(0.001)


def _at(path: Path) -> int:
    text = path.read_text() if path.exists() else ""
    return int(text or 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
