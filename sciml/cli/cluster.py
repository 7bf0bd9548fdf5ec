"""Commands for a cluster and for many runs: `submit` a run to Slurm, `sweep` over values of keys."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from sciml.cli.stages import RECIPE, File, Overrides, RunFolder, recipe_file
from sciml.errors import BusyError, ConfigError

if TYPE_CHECKING:
    from sciml.launch.sbatch import Script
    from sciml.pipeline.sweep import Member
    from sciml.recipe import Recipe, Site

SCRIPT, JOB, TABLE_SCRIPT, TABLE_OUTPUT = "job.sbatch", "job.txt", "table.sbatch", "table.out"
TABLE_MINUTES = 30

SiteFile: TypeAlias = Annotated[
    Path | None, typer.Option("--cluster", "-c", metavar="SITE.YAML", help="What the cluster asks of a job.")
]
Nodes: TypeAlias = Annotated[
    str | None, typer.Option("--nodes", metavar="N[-M]", help="Nodes, or a range for a job that takes what it gets.")
]
Limit: TypeAlias = Annotated[
    str | None, typer.Option("--time", metavar="HH:MM:SS", help="Time limit; the run saves before it and goes on.")
]
Print: TypeAlias = Annotated[bool, typer.Option("--print", help="Show the batch script; write and submit nothing.")]


def submit(
    file: File,
    overrides: Overrides = None,
    cluster: SiteFile = None,
    run_folder: RunFolder = None,
    nodes: Nodes = None,
    time: Limit = None,
    show: Print = False,
) -> None:
    """Submit a run to Slurm, by a script you can read.

    The job saves before its time limit and returns to the queue until the run is finished.
    """
    from sciml.recipe import read

    site = _site(cluster, nodes, time)
    recipe = read(recipe_file(file), overrides or ())
    own_folder = file if recipe_file(file) != file else recipe.run_folder
    folder = run_folder or own_folder
    script = _run_script(site, recipe, folder)
    if show:
        typer.echo(script.text(), nl=False)
        return
    from sciml.launch.cluster import refuse_without_slurm

    refuse_without_slurm()
    _freeze(recipe, folder)
    job = _submit(folder, SCRIPT, script)
    typer.echo(f"submitted job {job}; results and output: {folder}; watch it: squeue --jobs={job}")


def sweep(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A recipe, or the folder of a sweep to go on with.")],
    keys: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=V1,V2 | KEY=LOW:HIGH:COUNT[:log]]...", help="Values, e.g. models.fno.width=16,32"),
    ] = None,
    grid: Annotated[
        bool, typer.Option("--grid/--list", help="Every combination; or first values together, second ones, ...")
    ] = True,
    folder: Annotated[
        Path | None, typer.Option("--run-folder", "-o", metavar="DIR", help="Default: runs/<name>-sweep")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Name the points; run nothing.")] = False,
    table: Annotated[bool, typer.Option("--table", help="Only the table of what is there; run nothing.")] = False,
    submit_: Annotated[bool, typer.Option("--submit", help="As an array of Slurm jobs (needs --cluster).")] = False,
    cluster: SiteFile = None,
    nodes: Nodes = None,
    time: Limit = None,
    show: Print = False,
) -> None:
    """Run a recipe for many values of its keys.

    One folder per point; finished points are skipped, a failed one is named and does not stop the rest; one table.
    """
    if is_begun(file) and keys:
        raise ConfigError(f"{file} is a sweep: its points are given", got=" ".join(keys), fix=f"sciml sweep {file}")
    site = _site(cluster, nodes, time) if submit_ or show else None
    if is_begun(file):
        _go_on(file, site=site, show=show, table=table, dry_run=dry_run)
        return
    from sciml.recipe import points, read

    recipe = read(recipe_file(file))
    place = folder or recipe.run_folder.with_name(f"{recipe.run_folder.name}-sweep")
    found = points(recipe_file(file), keys or (), grid=grid)
    if show and site:
        typer.echo(_array_script(site, place, [place / point.name for point in found]).text(), nl=False)
    elif dry_run:
        _list(place, [(point.name, "") for point in found])
    else:
        _allow(site, len(found))
        from sciml.pipeline.sweep import prepare

        prepare(place, found)
        _go_on(place, site=site, table=table)


def is_begun(path: Path) -> bool:
    """Whether a path is the folder of a sweep."""
    return (path / "sweep.json").is_file()


def _go_on(folder: Path, *, site: Site | None, show: bool = False, table: bool = False, dry_run: bool = False) -> None:
    """Run or submit the points of a sweep folder that are not finished, or only tell of them."""
    from sciml.pipeline.progress import Progress
    from sciml.pipeline.sweep import conclude, load, run_all

    members = load(folder)
    if dry_run:
        _list(folder, [(member.name, member.state) for member in members])
    elif site:
        _submit_array(folder, members, site, show=show)
    else:
        progress = Progress()
        if not table:
            run_all(members, progress)
        code = conclude(folder, members, progress)
        if code:
            raise typer.Exit(code)


def _submit_array(folder: Path, members: Sequence[Member], site: Site, *, show: bool) -> None:
    """One job per unfinished point, and one after them that makes the table."""
    waiting = [member for member in members if not member.finished]
    if not waiting:
        typer.echo(f"all {len(members)} points are finished; the table: sciml sweep {folder} --table")
        return
    script = _array_script(site, folder, [member.folder for member in waiting])
    if show:
        typer.echo(script.text(), nl=False)
        return
    _allow(site, len(waiting))
    _refuse_second_job(folder)
    job = _submit(folder, SCRIPT, script)
    typer.echo(f"submitted array {job} of {len(waiting)} points; output: {folder}; watch it: squeue --jobs={job}")
    output, small = folder / TABLE_OUTPUT, site.for_one_task(TABLE_MINUTES)
    options = small.options(f"{folder.name}-table", _pattern(output), str(Path.cwd()))
    title = ("Makes the table when all points have ended.",)
    after = small.script(title, options, [str(folder)], ("sciml", "sweep", "$folder", "--table"))
    table = _submit(folder, TABLE_SCRIPT, after, (f"--dependency=afterany:{job}",), record=False)
    typer.echo(f"submitted job {table}, which writes the table to {output} when all points have ended")


def _site(path: Path | None, nodes: str | None, time: str | None) -> Site:
    from sciml.recipe import read_site

    if path is None:
        raise typer.BadParameter("a job needs a site file (experiments/sites/ has examples)", param_hint="--cluster")
    changes = {"nodes": nodes, "time": time}
    return read_site(path, [f"{key}={value}" for key, value in changes.items() if value is not None])


def _run_script(site: Site, recipe: Recipe, folder: Path) -> Script:
    title = (
        f"Made by: {_said()}",
        "Told to stop (time limit, preemption), the run saves; the job then returns to the queue and goes on.",
    )
    options = site.options(recipe.name, _pattern(folder / "slurm-%j.out"), str(Path.cwd()))
    command = ("sciml", "run", f"$folder/{RECIPE}", "-o", "$folder")
    return site.script(title, options, [str(folder)], command)


def _array_script(site: Site, folder: Path, folders: Sequence[Path]) -> Script:
    title = (
        f"Made by: {_said()}",
        "One job per point of the sweep; each returns to the queue until its run is finished.",
    )
    options = site.options(folder.name, _pattern(folder / "slurm-%A_%a.out"), str(Path.cwd()))
    at_once = f"%{site.array.at_once}" if site.array.at_once else ""
    array = {"array": f"0-{len(folders) - 1}{at_once}"}
    command = ("sciml", "run", f"$folder/{RECIPE}", "-o", "$folder")
    return site.script(title, {**options, **array}, [str(f) for f in folders], command, is_array=True)


def _pattern(path: Path) -> str:
    """An output file for sbatch, in which only the last name has places for numbers."""
    return str(path.parent).replace("%", "%%") + "/" + path.name


def _allow(site: Site | None, jobs: int) -> None:
    """Everything that can be known to be wrong with an array before anything is written."""
    if site is not None:
        from sciml.launch.cluster import refuse_large_array, refuse_without_slurm

        refuse_without_slurm()
        refuse_large_array(jobs, site.array.largest)


def _freeze(recipe: Recipe, folder: Path) -> None:
    """The recipe as it is now, in the run folder: later edits of the file do not reach a job that waits."""
    from sciml.pipeline.continuing import refuse_other_recipe
    from sciml.runfolder import FolderLock, write_text

    refuse_other_recipe(recipe, folder)
    _refuse_second_job(folder)
    with FolderLock(folder):
        write_text(folder / RECIPE, recipe.to_yaml())


def _refuse_second_job(folder: Path) -> None:
    """Raise BusyError (75) while the job that was submitted for this folder waits or runs."""
    from sciml.launch.cluster import is_active

    before = folder / JOB
    number = before.read_text(encoding="utf-8").strip() if before.is_file() else ""
    if number and is_active(number):
        raise BusyError(
            f"job {number} for the run folder {folder} is still in the queue",
            reason="the same run was submitted before",
            fix=f"wait for it, `scancel {number}`, or another folder (-o)",
        )


def _submit(folder: Path, name: str, script: Script, options: Sequence[str] = (), *, record: bool = True) -> str:
    from sciml.launch import cluster
    from sciml.runfolder import write_text

    write_text(folder / name, script.text())
    job = cluster.submit(folder / name, options)
    if record:
        write_text(folder / JOB, f"{job}\n")
    return job


def _said() -> str:
    """The command line that makes a script."""
    return shlex.join(["sciml", *(word for word in sys.argv[1:] if word != "--print")])


def _list(folder: Path, points: Sequence[tuple[str, str]]) -> None:
    for name, state in points:
        typer.echo(f"{folder / name}" + (f": {state}" if state else ""))
    typer.echo(f"{len(points)} points")
