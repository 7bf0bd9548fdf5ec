"""Many runs of one recipe: a folder per point, all points whatever happens to one, and one table at the end."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from sciml.errors import DataError
from sciml.launch.sbatch import CODE_FILE, REQUEUE
from sciml.pipeline.continuing import RECIPE, data_hash, refuse_other_recipe
from sciml.pipeline.progress import Progress
from sciml.recipe import GeneratedData, Point, Recipe, read
from sciml.report import ModelRow, results_table
from sciml.runfolder import FolderLock, write_json, write_text

SWEEP, RESULTS, LOG = "sweep.json", "results.json", "run.log"
FORMAT = "sciml-sweep"
SCIML = (sys.executable, "-c", "from sciml.cli import main; main()")
LAST_LINES = 6
WIDEST = 1000
STATES = {None: "not run", 0: "finished", REQUEUE: "stopped and saved"}


@dataclass(frozen=True)
class Member:
    """A point of a sweep on disk: the folder of its run, and how that run ended (None: it was not run)."""

    name: str
    folder: Path
    values: dict[str, str]

    @property
    def code(self) -> int | None:
        """Exit code of the last run, as a shell counts it; None when there was none."""
        with contextlib.suppress(OSError, ValueError):
            return int((self.folder / CODE_FILE).read_text("utf-8"))
        return None

    @property
    def finished(self) -> bool:
        """Whether the run ended well and left its results."""
        return self.code == 0 and (self.folder / RESULTS).is_file()

    @property
    def state(self) -> str:
        """In words: finished, not run, stopped and saved, failed (79)."""
        return STATES.get(self.code, f"failed ({self.code})")


def prepare(folder: Path, points: Sequence[Point]) -> tuple[Member, ...]:
    """Write the recipe of every point and `sweep.json`; nothing is written when one folder holds another recipe.

    Points with the same problem and data share one folder of data, so that these are generated once.
    """
    members = tuple(Member(p.name, folder / p.name, dict(p.values)) for p in points)
    for member, point in zip(members, points, strict=True):
        refuse_other_recipe(point.recipe, member.folder)
    shared = Counter(data_hash(p.recipe) for p in points if isinstance(p.recipe.data, GeneratedData))
    for member, point in zip(members, points, strict=True):
        with FolderLock(member.folder):
            _forget_other_results(member, point.recipe)
            write_text(member.folder / RECIPE, point.recipe.to_yaml())
        key = data_hash(point.recipe)
        if shared[key] > 1:
            _share_data(folder, member, key[:12])
    _write(folder, members)
    return members


def load(folder: Path) -> tuple[Member, ...]:
    """The points of a sweep that was begun; DataError (65) for a folder that holds none."""
    try:
        stored = json.loads((folder / SWEEP).read_text("utf-8"))
        return tuple(Member(p["name"], folder / p["name"], p["values"]) for p in stored["points"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise DataError(f"{folder} holds no sweep", expected=f"a file {SWEEP}", reason=reason) from error


def is_sweep(folder: Path) -> bool:
    """Whether a folder is that of a sweep."""
    return (folder / SWEEP).is_file()


def run_all(members: Sequence[Member], progress: Progress) -> None:
    """Run the points that are not finished, one after the other, each in a process of its own.

    What a run prints goes to `run.log` in its folder. A stop (SIGTERM, Ctrl-C) is passed on, and ends the sweep when
    the run has saved.
    """
    for number, member in enumerate(members, 1):
        head = f"[{number}/{len(members)}] {member.name}"
        if member.finished:
            progress.say(f"{head}: finished already")
            continue
        progress.say(f"{head}: runs, see {member.folder / LOG}")
        began, log = time.monotonic(), member.folder / LOG
        before = log.stat().st_size if log.is_file() else 0
        code = _run(member)
        progress.say(f"{head}: {member.state} after {time.monotonic() - began:.0f} s")
        if code:
            printed = log.read_bytes()[before:].decode("utf-8", errors="replace").splitlines()
            for line in printed[-LAST_LINES:]:
                progress.say(f"    {line}")


def conclude(folder: Path, members: Sequence[Member], progress: Progress) -> int:
    """Show the table of all points, name those that are not finished, write `sweep.json`; the exit code.

    It is 0 when all points are finished, else the code of the first one that failed, else 75.
    """
    _write(folder, members)
    rows = [row for member in members for row in _rows(member)]
    if rows:
        _show(results_table(rows), progress)
    unfinished = [member for member in members if not member.finished]
    for member in unfinished:
        progress.say(f"{member.name}: {member.state}, see {member.folder / LOG}")
    progress.say(f"{len(members) - len(unfinished)} of {len(members)} points are finished: {folder / SWEEP}")
    failed = [member.code for member in unfinished if member.code not in (None, 0, REQUEUE)]
    return failed[0] or 0 if failed else REQUEUE * bool(unfinished)


def _show(table: Table, progress: Progress) -> None:
    """A table with the whole names of its points, which a file holds and a terminal may cut."""
    console = progress.console
    if not console.is_terminal:
        console.width = max(console.width, console.measure(table, options=console.options.update(width=WIDEST)).maximum)
    progress.show(table)


def _run(member: Member) -> int:
    (member.folder / CODE_FILE).unlink(missing_ok=True)
    with (member.folder / LOG).open("ab") as log:
        command = [*SCIML, "run", str(member.folder)]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        try:
            code = process.wait()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGTERM)
            _record(member, process.wait())
            raise
    return _record(member, code)


def _record(member: Member, code: int) -> int:
    shell_code = code if code >= 0 else 128 - code
    write_text(member.folder / CODE_FILE, f"{shell_code}\n")
    return shell_code


def _forget_other_results(member: Member, recipe: Recipe) -> None:
    """Results of a recipe that differs in what may differ (the plan, models without a training) are made again."""
    stored = member.folder / RECIPE
    if member.finished and (not stored.is_file() or read(stored).hash() != recipe.hash()):
        (member.folder / CODE_FILE).unlink()


def _share_data(folder: Path, member: Member, key: str) -> None:
    """Data that several points have in common stand beside them, once."""
    common, own = folder / f"data-{key}", member.folder / "data"
    if not own.exists():
        common.mkdir(exist_ok=True)
        own.symlink_to(Path("..") / common.name, target_is_directory=True)


def _rows(member: Member) -> list[ModelRow]:
    """Lines of the table: the point, and the model where there are several."""
    if not member.finished:
        return []
    rows = json.loads((member.folder / RESULTS).read_text("utf-8"))["rows"]
    names = [f"{member.name} {row['name']}" if len(rows) > 1 else member.name for row in rows]
    return [ModelRow(**{**row, "name": name}) for row, name in zip(rows, names, strict=True)]


def _write(folder: Path, members: Sequence[Member]) -> None:
    write_json(folder / SWEEP, {"format": FORMAT, "points": [_plain(member) for member in members]})


def _plain(member: Member) -> dict[str, Any]:
    rows = json.loads((member.folder / RESULTS).read_text("utf-8"))["rows"] if member.finished else []
    return {"name": member.name, "values": member.values, "state": member.state, "code": member.code, "models": rows}
