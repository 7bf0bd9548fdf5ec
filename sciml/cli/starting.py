"""Commands to start with: a recipe to edit, its check, the components there are, what the machine has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from sciml import registry
from sciml.cli import starters
from sciml.cli.stages import File, Overrides, recipe_file
from sciml.errors import CannotCreateError, ConfigError, PermissionDeniedError

SCHEMA = "sciml.schema.json"


def init(
    experiment: Annotated[str, typer.Argument(metavar="EXPERIMENT", help=" | ".join(starters.names()))] = "heat",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Default: <experiment>.yaml")
    ] = None,
) -> None:
    """Write a commented recipe to start from.

    The JSON schema that lets editors complete it is written beside it.
    """
    text = starters.text(experiment, SCHEMA)
    path = output or Path(f"{experiment}.yaml")
    _create(path, text)
    schema_path = path.parent / SCHEMA
    if not schema_path.exists():
        _create(schema_path, _schema_text())
    typer.echo(f"wrote {path}; next: sciml run {path}")


def validate(
    file: File,
    overrides: Overrides = None,
    resolved: Annotated[bool, typer.Option("--resolved", help="Print it with every default filled in.")] = False,
) -> None:
    """Check a recipe: every mistake, with its line.

    Nothing is run or written. Models are built, without data, only where a plan splits or compresses them.
    """
    from sciml.recipe import PlanSection, read

    checked = read(recipe_file(file), overrides or ())
    if not checked.plan.auto and checked.plan != PlanSection():
        from sciml.pipeline.tasks import Context
        from sciml.pipeline.training import refuse_impossible_plans

        refuse_impossible_plans(Context(checked, Path()))
    typer.echo(checked.to_yaml() if resolved else f"{file}: valid ({checked.hash()[:12]})", nl=not resolved)


def list_components(
    kind: Annotated[str | None, typer.Argument(metavar="[KIND]", help=" | ".join(registry.PACKAGES))] = None,
) -> None:
    """List equations, methods, models, optimizers, ...

    With KIND, only those of one kind, and their options.
    """
    if kind is not None and kind not in registry.PACKAGES:
        hint = registry.suggestion(kind, registry.PACKAGES)
        raise ConfigError(f"unknown kind {kind!r}{hint}", expected=" | ".join(registry.PACKAGES), got=kind)
    for chosen in [kind] if kind else registry.PACKAGES:
        infos = [registry.describe(chosen, name) for name in registry.names(chosen)]
        typer.echo(f"{chosen}:" if infos else f"{chosen}: none")
        width = max((len(info.name) for info in infos), default=0)
        for info in infos:
            typer.echo(f"  {info.name:{width}}  {info.summary}")
            if kind:
                _print_options(info)


def schema(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Default: standard output.")
    ] = None,
) -> None:
    """Print the JSON schema of recipes, for editors."""
    if output:
        _create(output, _schema_text())
        typer.echo(f"wrote {output}")
    else:
        typer.echo(_schema_text(), nl=False)


def doctor() -> None:
    """Print what this machine has.

    Python, devices, MPI, HDF5, Slurm, cores, memory, disk.
    """
    from sciml.launch.detect import facts

    for fact in facts(Path.cwd()):
        typer.echo(f"{fact.name:12} {fact.value}")


def _print_options(info: registry.ComponentInfo) -> None:
    for option in info.options:
        default = "required" if option.required else f"default {option.default!r}"
        facts = [option.annotation, default, option.range, option.unit or "", option.doc]
        typer.echo(f"      {option.name}: {', '.join(fact for fact in facts if fact)}")


def _schema_text() -> str:
    from sciml.recipe import schema as recipe_schema

    return json.dumps(recipe_schema(), indent=1) + "\n"


def _create(path: Path, text: str) -> None:
    """Write a new file; never over an existing one."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise CannotCreateError(f"{path} is already there", fix="--output another.yaml, or delete it") from None
    except PermissionError as error:
        raise PermissionDeniedError(f"cannot write {path}", reason=error.strerror) from None
    except OSError as error:
        raise CannotCreateError(f"cannot create {path}", reason=error.strerror) from None
