"""Talking to Slurm: is it here, what does it allow, submit a script, is a job still there."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from sciml.errors import BusyError, ConfigError

SECONDS = 60
PATIENCE = "the controller is restarting or overloaded"
SHOW = "--print, which shows the script without submitting it"
NO_CLUSTER = ("configuration source", "slurm.conf")
"""Parts of Slurm's words where it does not know its cluster."""
NO_CONTROLLER = ("Unable to contact slurm controller", "Socket timed out")
"""And where it knows it, and nobody answers."""


def refuse_without_slurm() -> None:
    """Raise ConfigError (78) where jobs cannot be submitted."""
    if shutil.which("sbatch") is None:
        raise ConfigError(
            "this machine cannot submit jobs: there is no program sbatch",
            expected="the login node of a Slurm cluster",
            got="no sbatch on the PATH",
            reason="Slurm is not installed here, or a module must be loaded first",
            fix=SHOW,
        )
    _refuse_silence(_call("scontrol", "show", "config"))


def refuse_large_array(jobs: int, largest: int | None) -> None:
    """Raise ConfigError (78) for an array of more jobs than the site file, or Slurm itself, allows."""
    slurm = _largest_array()
    limits = {"the site file (array.largest)": largest, "Slurm (MaxArraySize)": slurm}
    known = {name: limit for name, limit in limits.items() if limit is not None}
    if known and jobs > min(known.values()):
        name = min(known, key=known.__getitem__)
        raise ConfigError(
            f"an array of {jobs} jobs is larger than {name} allows",
            expected=f"at most {known[name]} points",
            got=f"{jobs} points",
            fix="fewer values per key, or several sweeps with a folder each (-o)",
        )


def submit(script: Path, options: Sequence[str] = ()) -> str:
    """Submit a script; the number of the job. ConfigError (78) with Slurm's own words when it is refused."""
    done = _call("sbatch", "--parsable", *options, str(script))
    if done.returncode:
        _refuse_silence(done)
        raise ConfigError(
            f"Slurm refused the job {script}",
            got=done.stderr.strip() or f"exit code {done.returncode}",
            reason="the site file asks for what this cluster, this account or this partition does not have",
            fix=f"edit the site file, or `sbatch {script}` after editing the script",
        )
    return done.stdout.strip().partition(";")[0]


def is_active(job: str) -> bool:
    """Whether a job waits or runs; no for one that Slurm does not know (any more)."""
    done = _call("squeue", "--noheader", f"--jobs={job}", "--format=%T")
    return done.returncode == 0 and bool(done.stdout.strip())


def _refuse_silence(done: subprocess.CompletedProcess[str]) -> None:
    """Raise where a command failed because Slurm is not set up here (78), or does not answer now (75)."""
    said = done.stderr.strip()
    if done.returncode and any(words in said for words in NO_CLUSTER):
        raise ConfigError(
            "Slurm is installed on this machine, but knows no cluster",
            expected="the login node of a Slurm cluster, with its slurm.conf",
            got=said.splitlines()[-1],
            reason="SLURM_CONF is not set, or this is not one of the cluster's machines",
            fix=f"export SLURM_CONF=/path/to/slurm.conf   # or {SHOW}",
        )
    if done.returncode and any(words in said for words in NO_CONTROLLER):
        raise BusyError(
            "Slurm does not answer", got=said.splitlines()[-1], reason=PATIENCE, fix="the same command again, later"
        )


def _largest_array() -> int | None:
    """Jobs in the largest array: indices stay below MaxArraySize. None when Slurm does not tell."""
    found = re.search(r"^MaxArraySize\s*=\s*(\d+)", _call("scontrol", "show", "config").stdout, re.MULTILINE)
    return int(found[1]) if found else None


def _call(*command: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except FileNotFoundError:
        return subprocess.CompletedProcess(command, 127, "", f"no program {command[0]}")
    except subprocess.TimeoutExpired:
        what = f"Slurm did not answer within {SECONDS} s"
        raise BusyError(what, got=" ".join(command), reason=PATIENCE, fix="the same command again, later") from None
