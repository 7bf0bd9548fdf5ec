"""Where data came from, as far as this machine can tell: code version, commit, libraries."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

import h5py

import sciml


@cache
def code() -> dict[str, str]:
    """`code_version`, `git_commit` (in a checkout), `hdf5_version`: recorded, not compared."""
    found = {"code_version": sciml.__version__, "hdf5_version": h5py.version.hdf5_version}
    commit = _git_commit(Path(sciml.__file__).resolve().parent)
    return {**found, "git_commit": commit} if commit else found


def _git_commit(folder: Path) -> str | None:
    """Commit of the checkout `folder` lies in, "-dirty" with changed files; None without a checkout."""
    command = ["git", "-C", str(folder), "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*"]
    try:
        inside = ["git", "-C", str(folder), "ls-files", "--error-unmatch", "__init__.py"]
        subprocess.run(inside, capture_output=True, check=True, timeout=10)
        return subprocess.run(command, capture_output=True, check=True, timeout=10, text=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
