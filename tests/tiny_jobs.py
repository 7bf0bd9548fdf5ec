"""Several processes of the real command line that form one job, started without a launcher."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tiny_runs import SCIML, Ended, write

from sciml.launch.join import COORDINATOR, PROCESS, PROCESSES, free_port

SECONDS = 240
MPIEXEC = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
DOUBLE = "models.fno.train={precision: float64, steps: 12, batch: 8, checkpoint_every: 4}"
SMALL = "data.samples={train: 16, validation: 4, test: 4}"


def environment(devices: int = 1, **more: str) -> dict[str, str]:
    """Variables of a process with so many simulated devices."""
    return {**os.environ, "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}", **more}


@dataclass(frozen=True)
class Processes:
    """Processes of one job, in order of their numbers."""

    started: Sequence[subprocess.Popen[str]]

    def wait(self) -> list[Ended]:
        """How each of them ended; all are killed when that takes too long."""
        try:
            parts = [process.communicate(timeout=SECONDS) for process in self.started]
        finally:
            self.kill()
        return [Ended(process.returncode, *part) for process, part in zip(self.started, parts, strict=True)]

    def kill(self) -> None:
        """End what still runs."""
        for process in self.started:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()


def start(
    count: int,
    folder: Path,
    *arguments: object,
    program: Sequence[str] = SCIML,
    devices: int = 1,
    each: Sequence[str] = (),
    **more: str,
) -> Processes:
    """`count` processes of `sciml ARGUMENTS`, told who they are by the variables of our own supervisor.

    `each`: one more argument per process.
    """
    address = f"127.0.0.1:{free_port()}"
    started = []
    for number in range(count):
        own = {PROCESS: str(number), PROCESSES: str(count), COORDINATOR: address}
        command = [*program, *map(str, arguments), *each[number : number + 1]]
        started.append(
            subprocess.Popen(
                command,
                cwd=folder,
                env=environment(devices, **own, **more),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    return Processes(started)


def mpi(count: int, folder: Path, *arguments: object) -> Ended:
    """`mpiexec -n COUNT sciml ARGUMENTS`, one device each."""
    command = [str(MPIEXEC), "-n", str(count), *SCIML, *map(str, arguments)]
    ended = subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=SECONDS, check=False
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr)


def copied(data: Path, folder: Path) -> Path:
    """A recipe in `folder`, and a run folder beside it that holds the data already; the recipe."""
    shutil.copytree(data, folder / "runs/heat/data")
    return write("heat", folder)


def until(condition: Callable[[], bool], processes: Processes) -> None:
    """Wait for something that the processes do."""
    end = time.monotonic() + SECONDS
    while not condition():
        if any(process.poll() is not None for process in processes.started) or time.monotonic() > end:
            processes.kill()
            raise AssertionError([process.communicate() for process in processes.started])
        time.sleep(0.02)
