"""What the machine has: devices, MPI, HDF5, Slurm, cores, memory, disk. Imports none of the libraries it reports.

Libraries are asked in processes of their own: a broken driver or MPI then costs one line of the answer.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROBE_SECONDS = 60
GIB = 2**30
CGROUP = Path("/sys/fs/cgroup")
MEMINFO = Path("/proc/meminfo")
UNLIMITED = "max"

PROBES = {
    "jax": (
        "import jax; d = jax.devices(); "
        "kinds = sorted({x.device_kind for x in d}); "
        "print(f'{jax.__version__}, {len(d)} x {jax.default_backend()} ({\", \".join(kinds)})')"
    ),
    "MPI": (
        "import mpi4py; from mpi4py import MPI; "
        "name = ' '.join(MPI.Get_library_version().splitlines()[0].split()); "
        "print(f'mpi4py {mpi4py.__version__}, {name[:60]}')"
    ),
    "HDF5": (
        "import h5py; kind = 'parallel' if h5py.get_config().mpi else 'serial (one file per MPI rank)'; "
        "print(f'{h5py.version.hdf5_version}, h5py {h5py.__version__}, {kind}')"
    ),
}


@dataclass(frozen=True)
class Fact:
    """One line about the machine."""

    name: str
    value: str


def facts(folder: Path) -> Iterator[Fact]:
    """Facts about this machine and the disk that holds `folder`; never raises because something is missing."""
    started = {name: _start(code) for name, code in PROBES.items()}
    yield Fact("python", f"{platform.python_version()} ({sys.executable})")
    yield Fact("system", f"{platform.system()} {platform.release()} {platform.machine()}")
    yield Fact("cores", _cores())
    yield Fact("memory", _memory())
    yield Fact("disk", _disk(folder))
    yield Fact("Slurm", _slurm())
    for name, process in started.items():
        yield Fact(name, _answer(process))


def _start(code: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "ignore", "-c", code]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _answer(process: subprocess.Popen[str]) -> str:
    try:
        output, errors = process.communicate(timeout=PROBE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return f"no answer within {PROBE_SECONDS} s"
    if process.returncode == 0:
        return output.strip()
    reason = (errors.strip().splitlines() or [f"exit code {process.returncode}"])[-1]
    missing = reason.startswith("ModuleNotFoundError")
    return "not installed" if missing else f"does not work: {reason}"


def _cores() -> str:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    quota = _read(CGROUP / "cpu.max").split()
    limited = len(quota) == 2 and quota[0] != UNLIMITED
    limit = f", limited to {int(quota[0]) / int(quota[1]):g} by the container" if limited else ""
    return f"{usable} of {os.cpu_count()}{limit}"


def _memory() -> str:
    kilobytes = {
        line.partition(":")[0]: int(line.split()[1]) for line in _read(MEMINFO).splitlines() if line.endswith("kB")
    }
    if "MemTotal" not in kilobytes:
        return "unknown"
    total, free = (kilobytes.get(key, 0) * 1024 / GIB for key in ("MemTotal", "MemAvailable"))
    limit = _read(CGROUP / "memory.max").strip()
    container = f", limited to {int(limit) / GIB:.1f} GiB by the container" if limit.isdigit() else ""
    return f"{free:.1f} GiB free of {total:.1f} GiB{container}"


def _disk(folder: Path) -> str:
    try:
        usage = shutil.disk_usage(folder)
    except OSError as error:
        return f"{folder}: {error.strerror}"
    return f"{usage.free / GIB:.1f} GiB free of {usage.total / GIB:.1f} GiB at {folder}"


def _slurm() -> str:
    job = os.environ.get("SLURM_JOB_ID")
    if job:
        tasks, nodes = os.environ.get("SLURM_NTASKS", "1"), os.environ.get("SLURM_JOB_NUM_NODES", "1")
        return f"inside job {job}: {tasks} tasks on {nodes} nodes"
    return "sbatch found, not inside a job" if shutil.which("sbatch") else "none"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
