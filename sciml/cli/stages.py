"""`run` and its four stages. Each reads the recipe, then hands over to `sciml.pipeline`.

Imports stand inside the functions wherever a command can do without them: `sciml --help` must be quick.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

if TYPE_CHECKING:
    from sciml.launch.job import Job
    from sciml.recipe import Recipe

RECIPE = "recipe.yaml"
"""Name of the resolved recipe in a run folder."""

File: TypeAlias = Annotated[Path, typer.Argument(metavar="FILE", help="A recipe, or the folder of a run.")]
Overrides: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(metavar="[KEY.SUB=VALUE]...", help="Changes to the recipe, e.g. models.fno.width=64."),
]
RunFolder: TypeAlias = Annotated[
    Path | None,
    typer.Option("--run-folder", "-o", metavar="DIR", help="Where results go (default: runs/<name>)."),
]
DryRun: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Print the resolved recipe, parameter counts and memory; do nothing.")
]
Models: TypeAlias = Annotated[
    list[str] | None, typer.Option("--model", "-m", metavar="NAME", help="Only this model (may be repeated).")
]

Supervise: TypeAlias = Annotated[
    int,
    typer.Option(
        "--supervise", metavar="N", min=0, help="Start N processes and watch them: what fails is started again."
    ),
]
Watchdog: TypeAlias = Annotated[
    float,
    typer.Option("--watchdog", metavar="SECONDS", min=1.0, help="A step that takes longer stands still."),
]
Rest: TypeAlias = Annotated[
    float,
    typer.Option("--rest", metavar="SECONDS", min=0.0, help="Go on without the place of a failed process so long."),
]
Profile: TypeAlias = Annotated[
    bool, typer.Option("--profile", help="Trace some steps of every model, and say where the time went.")
]


def run(
    file: File,
    overrides: Overrides = None,
    run_folder: RunFolder = None,
    dry_run: DryRun = False,
    supervise: Supervise = 0,
    watchdog: Watchdog = 600.0,
    rest: Rest = 0.0,
    profile: Profile = False,
) -> None:
    """Generate, train, evaluate and export.

    What is already there and verified is skipped. May be started by mpiexec or srun, or supervise processes of its
    own.
    """
    recipe, folder = _prepared(file, overrides, run_folder)
    if dry_run:
        typer.echo(_pipeline().describe(recipe))
        return
    _supervised(recipe, folder, supervise, watchdog, rest)
    job = _job(recipe, folder, watchdog)
    _pipeline().run(recipe, folder, job, profile)


def generate(file: File, overrides: Overrides = None, run_folder: RunFolder = None) -> None:
    """Solve the problem for every sample.

    May be started by mpiexec: every rank writes its own shard.
    """
    _pipeline().generate(*_prepared(file, overrides, run_folder))


def train(
    file: File,
    overrides: Overrides = None,
    run_folder: RunFolder = None,
    model: Models = None,
    supervise: Supervise = 0,
    watchdog: Watchdog = 600.0,
    rest: Rest = 0.0,
    profile: Profile = False,
) -> None:
    """Train the models on the data.

    Starts from the last verified checkpoint where there is one. Many processes: see `sciml run`.
    """
    recipe, folder = _prepared(file, overrides, run_folder)
    for name in model or ():
        if name not in recipe.models:
            known = ", ".join(recipe.models)
            raise typer.BadParameter(f"no model {name!r} in {file}; it has {known}", param_hint="--model")
    _supervised(recipe, folder, supervise, watchdog, rest)
    job = _job(recipe, folder, watchdog)
    _pipeline().train(recipe, folder, model or None, job, profile)


def evaluate(file: File, overrides: Overrides = None, run_folder: RunFolder = None) -> None:
    """Compare the models with the solver; report.html.

    On held-out samples; prints the table and writes the report.
    """
    _pipeline().evaluate(*_prepared(file, overrides, run_folder))


def export(file: File, overrides: Overrides = None, run_folder: RunFolder = None) -> None:
    """Write one surrogate folder (.sciml) per model."""
    _pipeline().export(*_prepared(file, overrides, run_folder))


def recipe_file(path: Path) -> Path:
    """The recipe of a run when `path` is its folder, else `path`."""
    inside = path / RECIPE
    return inside if inside.is_file() else path


def _prepared(file: Path, overrides: list[str] | None, run_folder: Path | None) -> tuple[Recipe, Path]:
    from sciml.recipe import read

    recipe = read(recipe_file(file), overrides or ())
    own_folder = file if recipe_file(file) != file else recipe.run_folder
    return recipe, run_folder or own_folder


def _supervised(recipe: Recipe, folder: Path, processes: int, watchdog: float, rest: float) -> None:
    """Become the supervisor of so many processes of this very command, and exit as they do; or go on as one of them."""
    from sciml.launch.join import PROCESS

    if not processes or PROCESS in os.environ:
        return
    from sciml.launch.supervisor import Policy, Supervisor
    from sciml.launch.workers import devices_each

    @cache
    def suits(count: int) -> bool:
        from sciml.pipeline import resizing

        return resizing.suits(recipe, folder, count, processes, devices_each(processes, os.environ))

    policy = Policy(processes, watchdog=watchdog, rest=rest)
    code = Supervisor(sys.orig_argv, folder, policy, suits).run()
    raise typer.Exit(code)


def _job(recipe: Recipe, folder: Path, watchdog: float) -> Job:
    """The processes that were started together with this one, seen to be the same program."""
    from sciml.launch.alike import refuse_unlike
    from sciml.launch.join import join

    job = join(watchdog=watchdog)
    refuse_unlike(job.ranks, recipe=recipe.hash(), **{"run folder": str(folder.absolute())})
    return job


def _pipeline() -> ModuleType:
    from sciml import pipeline

    return pipeline
