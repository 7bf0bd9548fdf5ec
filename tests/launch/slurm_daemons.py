"""A real Slurm on this machine, for the time of a test: munged, slurmctld and one slurmd per virtual node."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

TEMPLATE = Path(__file__).with_name("slurm.conf")
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scontrol", "scancel", "sinfo")
DAEMON_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
START_SECONDS = 40
ENDED = ("COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL", "DEADLINE", "OUT_OF_MEMORY", "BOOT_FAIL")


def missing() -> str | None:
    """Why Slurm cannot be started here, or None."""
    absent = [name for name in PROGRAMS if shutil.which(name, path=DAEMON_PATH) is None]
    if absent:
        return f"Slurm is not installed: no {', '.join(absent)} (apt-get install slurm-wlm munge)"
    return None if os.geteuid() == 0 else "the daemons of Slurm start as root only"


class CannotStart(Exception):
    """The daemons did not come up; the text has the ends of their logs."""


class Slurm:
    """A running cluster; `nodes` virtual nodes n1, n2, ... of two processors each."""

    def __init__(self, folder: Path, *, nodes: int = 1, dead_after: int = 60) -> None:
        self.folder, self.nodes = folder, [f"n{i + 1}" for i in range(nodes)]
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        for name in ("munge", "state", *(f"spool_{node}" for node in self.nodes)):
            (folder / name).mkdir(parents=True)
        self.conf = folder / "slurm.conf"
        first = _free_ports(1 + nodes)
        words = {
            "HOST": socket.gethostname().partition(".")[0],
            "FOLDER": str(folder),
            "PORT": str(first),
            "NODES": str(nodes),
            "NODE_PORTS": f"{first + 1}-{first + nodes}" if nodes > 1 else str(first + 1),
            "EXPIRE": "5",
            "DEAD": str(dead_after),
        }
        text = TEMPLATE.read_text(encoding="utf-8")
        for word, value in words.items():
            text = text.replace(f"@{word}@", value)
        self.conf.write_text(text, encoding="utf-8")
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "SBATCH_", "SRUN_"))}
        self.environment = inherited | {"SLURM_CONF": str(self.conf), "PATH": DAEMON_PATH}

    def start(self) -> None:
        """Start every daemon and wait until all nodes are idle; CannotStart with the logs when they are not."""
        self._start_munge()
        self._daemon("slurmctld", "slurmctld", "-D", "-c")
        for node in self.nodes:
            self.start_node(node)
        try:
            self.wait(lambda: self.node_states() == {node: "idle" for node in self.nodes}, START_SECONDS, "nodes idle")
        except AssertionError as error:
            raise CannotStart(str(error)) from None

    def start_node(self, node: str) -> None:
        """Start the daemon of a node; what was left of a former life is gone, as after a reboot."""
        _signal(self._strays(node), signal.SIGKILL)
        self._daemon(node, "slurmd", "-D", "-N", node)

    def lose_node(self, node: str) -> None:
        """A machine falls silent: its daemon dies, its tasks stop without closing any connection."""
        daemon = self._daemons.pop(node)
        _signal(self._strays(node), signal.SIGSTOP)
        daemon.kill()
        daemon.wait()

    def stop(self) -> None:
        """Cancel what is left and end every daemon."""
        with contextlib.suppress(subprocess.SubprocessError):
            self.call("scancel", "--state=PENDING,RUNNING,SUSPENDED", "--user=root", check=False)
        for daemon in reversed(self._daemons.values()):
            daemon.terminate()
        for daemon in self._daemons.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                daemon.wait(10)
            daemon.kill()
            daemon.wait()
        for node in self.nodes:
            _signal(self._strays(node), signal.SIGKILL)

    def call(self, *command: object, check: bool = True, cwd: Path | None = None) -> str:
        """Standard output of a Slurm command."""
        words = [str(word) for word in command]
        done = subprocess.run(
            words, env=self.environment, cwd=cwd, capture_output=True, text=True, timeout=60, check=False
        )
        assert not check or done.returncode == 0, f"{' '.join(words)}: {done.stderr}"
        return done.stdout.strip()

    def submit(self, script: Path, *options: str) -> str:
        """Submit a script; the number of the job."""
        return self.call("sbatch", "--parsable", *options, script, cwd=script.parent)

    def job(self, number: str) -> dict[str, str]:
        """What `scontrol show job` says: JobState, Restarts, ExitCode, NodeList, ... ({} for an unknown job)."""
        lines = self.call("scontrol", "show", "job", "--oneliner", number, check=False).splitlines()
        return dict(pair.partition("=")[::2] for pair in lines[0].split() if "=" in pair) if lines else {}

    def state(self, number: str) -> str:
        """JobState of a job."""
        return self.job(number).get("JobState", "UNKNOWN")

    def node_states(self) -> dict[str, str]:
        """State of each node, without the marks that Slurm appends."""
        out = self.call("sinfo", "--Node", "--noheader", "--partition=low", "--format=%N %t", check=False)
        return {name: state.rstrip("*~#!%$@+^-") for name, state in (line.split() for line in out.splitlines())}

    def ended(self, number: str, seconds: float) -> dict[str, str]:
        """Wait until a job has ended; what `job` says of it then."""
        self.wait(lambda: self.state(number) in ENDED, seconds, f"job {number} to end")
        return self.job(number)

    def wait(self, condition: Callable[[], Any], seconds: float, what: str) -> Any:
        """Wait until the condition holds and give its value; AssertionError with queue and logs at the time limit."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            value = condition()
            if value:
                return value
            time.sleep(0.3)
        raise AssertionError(f"waited {seconds:g} s in vain for: {what}\n{self.account()}")

    def account(self) -> str:
        """Nodes, queue, and the ends of the logs, for the message of a test that failed."""
        parts = [self.call(*command, check=False) for command in (("sinfo", "--Node"), ("squeue", "--long"))]
        for log in sorted(self.folder.rglob("*.log")):
            lines = log.read_text(errors="replace").splitlines()[-15:]
            parts.append("\n".join([f"--- {log.name}", *lines]))
        return "\n".join(parts)

    def _start_munge(self) -> None:
        home = self.folder / "munge"
        home.chmod(0o755)
        (home / "key").write_bytes(secrets.token_bytes(1024))
        (home / "key").chmod(0o600)
        files = {"socket": "socket", "key-file": "key", "pid-file": "pid", "seed-file": "seed", "log-file": "munge.log"}
        options = [f"--{option}={home / name}" for option, name in files.items()]
        self._daemon("munged", "munged", "--foreground", "--force", "--num-threads=2", *options)
        self.wait((home / "socket").exists, START_SECONDS, "munged")

    def _daemon(self, name: str, *command: str) -> None:
        with (self.folder / f"{name}.out.log").open("ab") as out:
            self._daemons[name] = subprocess.Popen(
                command, env=self.environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            )

    def _strays(self, node: str) -> list[int]:
        """Step daemons of a node, which outlive their slurmd, and all that they started."""
        ours = (f"SLURMD_NODENAME={node}".encode(), f"SLURM_CONF={self.conf}".encode())
        tasks = [pid for pid in _processes() if set(ours) <= set(_environment(pid))]
        steps = [pid for pid in _processes() if _has_open(pid, self.folder / f"slurmd_{node}.log")]
        return [pid for pid in (*steps, *tasks) if pid not in {d.pid for d in self._daemons.values()}]


def _free_ports(count: int) -> int:
    """The first of so many neighboring ports that nobody listens to, below those that the system gives away."""
    start = 20000 + (os.getpid() * 16) % 8000
    for first in range(start, 32000, count):
        with contextlib.ExitStack() as held, contextlib.suppress(OSError):
            for port in range(first, first + count):
                held.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first
    raise CannotStart("no free ports")


def _processes() -> list[int]:
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit() and int(entry) != os.getpid()]


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _has_open(pid: int, file: Path) -> bool:
    """Whether a process has a file open; the step daemons of a node write to its log."""
    with contextlib.suppress(OSError):
        return str(file) in [os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir()]
    return False


def _signal(pids: Sequence[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
