"""The text of a batch script: what is asked of Slurm, what is set up, what is run, and the way back into the queue."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

REQUEUE = 75
"""Exit code of a run that saved its state because it was asked to stop; so is that of a busy run folder."""

FROM_OUTSIDE = (80, 134, 137, 139, 143)
"""Exit codes that need not come again: a peer is gone or stands still; ended by SIGABRT, SIGKILL, SIGSEGV, SIGTERM."""

CODE_FILE = "exit_code"
"""In the folder of each point of an array: how its run ended."""

RETURN = f"""
again=no
case $code in
    {REQUEUE}) again=yes; rm -f "$folder/killed" ;;  # stopped and saved
    {"|".join(map(str, FROM_OUTSIDE))})  # lost, or killed before it could save: three times in a row at most
        date >> "$folder/killed"
        [ "$(wc -l < "$folder/killed")" -gt 3 ] || again=yes ;;
esac

# A job that was canceled stops and saves as well, but must not come back: its state is not RUNNING then.
job={{job}}
if [ $again = yes ] && [ "${{{{SLURM_RESTART_COUNT:-0}}}}" -lt {{restarts}} ]; then
    state=$(squeue --noheader --jobs="$job" --format=%T) || state=unknown
    if [ "$state" = RUNNING ]; then
        scontrol requeue "$job" || echo "this job could not requeue itself: submit it again" >&2
    fi
fi"""
SINGLE = '"$SLURM_JOB_ID"'
ARRAY = '"${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"'


@dataclass(frozen=True)
class Container:
    """An image, and what of this machine is seen inside of it."""

    runtime: str
    image: str
    mounts: tuple[str, ...] = ()
    gpus: bool = False
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Script:
    """A batch script.

    `options` are those of sbatch, a value per long name (None: a switch). `setup` are shell lines that must succeed.
    `command` is started by srun once per task; the word "$folder" in it is `folders[0]`, or of an array, one job per
    folder, its own. `restarts` is how often the job may return to the queue by itself; 0 for never.
    """

    title: tuple[str, ...]
    options: Mapping[str, str | None]
    folders: tuple[str, ...]
    command: tuple[str, ...]
    setup: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    srun: tuple[str, ...] = ()
    container: Container | None = None
    restarts: int = 0
    is_array: bool = False

    def text(self) -> str:
        """The script, to be read by people as well."""
        return "\n".join([*self._head(), *self._body(), *self._tail(), ""])

    def _head(self) -> Iterator[str]:
        yield "#!/bin/bash"
        yield from (f"# {line}" for line in self.title)
        for name, value in self.options.items():
            yield f"#SBATCH --{name}" + ("" if value is None else f"={shlex.quote(value)}")
        yield from (f"#SBATCH {line}" for line in self.extra)

    def _body(self) -> Iterator[str]:
        yield from ("", "set -e")
        yield from self.setup
        if self.is_array:
            yield from ("", "folders=(", *(f"    {shlex.quote(folder)}" for folder in self.folders), ")")
            yield 'folder=${folders[$SLURM_ARRAY_TASK_ID]}; echo "$folder"'
            yield f'rm -f "$folder/{CODE_FILE}"'
        else:
            yield from ("", f"folder={shlex.quote(self.folders[0])}")
        yield ""
        if self.restarts:
            yield "trap : TERM  # Slurm signals the tasks as well; this shell waits until they have saved"
        yield "code=0"
        yield f"{self._start()} || code=$?"
        if self.is_array:
            yield f'echo "$code" > "$folder/{CODE_FILE}"'

    def _start(self) -> str:
        words, options = list(self.command), list(self.srun)
        if self.container:
            inside = RUNTIMES[self.container.runtime](self.container)
            words, options = [*inside.prefix, *words], [*options, *inside.srun]
        return " ".join(_quoted(word) for word in ("srun", "-K", *options, *words))

    def _tail(self) -> Iterator[str]:
        if self.restarts:
            yield from RETURN.format(job=ARRAY if self.is_array else SINGLE, restarts=self.restarts).splitlines()
        yield 'exit "$code"'


@dataclass(frozen=True)
class _Inside:
    """How a command is put into a container: words before it, options of srun."""

    prefix: tuple[str, ...] = ()
    srun: tuple[str, ...] = ()


def _apptainer(container: Container) -> _Inside:
    mounts = tuple(word for mount in container.mounts for word in ("--bind", mount))
    gpus = ("--nv",) if container.gpus else ()
    return _Inside(("apptainer", "exec", *gpus, *mounts, *container.options, container.image))


def _enroot(container: Container) -> _Inside:
    mounts = tuple(word for mount in container.mounts for word in ("--mount", mount))
    return _Inside(("enroot", "start", *mounts, *container.options, container.image))


def _pyxis(container: Container) -> _Inside:
    mounts = (f"--container-mounts={','.join(container.mounts)}",) if container.mounts else ()
    return _Inside(srun=(f"--container-image={container.image}", *mounts, *container.options))


RUNTIMES: dict[str, Callable[[Container], _Inside]] = {"apptainer": _apptainer, "enroot": _enroot, "pyxis": _pyxis}
"""Ways to run inside a container; pyxis is the plugin of srun that uses enroot."""


def _quoted(word: str) -> str:
    """A word for the shell; "$folder" stays a variable."""
    return f'"{word}"' if word.startswith("$folder") else shlex.quote(word)
