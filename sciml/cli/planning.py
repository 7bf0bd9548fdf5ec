"""`sciml plan`: what every layout of a training over devices would cost."""

from __future__ import annotations

from typing import Annotated

import typer

from sciml.cli.stages import File, Overrides, recipe_file


def plan(
    file: File,
    overrides: Overrides = None,
    devices: Annotated[int, typer.Option("--devices", "-n", min=1, help="Devices in all.")] = 8,
    nodes: Annotated[int, typer.Option("--nodes", "-N", min=1, help="Nodes that hold them, as many each.")] = 1,
    hardware: Annotated[
        str,
        typer.Option("--hardware", metavar="NAME", help="h100, h100-pcie, h200, a100, a100-pcie, cpu, or measured."),
    ] = "h100",
    model: Annotated[
        str | None, typer.Option("--model", "-m", metavar="NAME", help="The model; default: the first.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every feasible plan, not only the fastest.")] = False,
) -> None:
    """Predict memory, traffic and time of every plan.

    The devices need not be there. Nothing is trained or written.
    """
    from sciml.pipeline.planning import SHOWN, plan_table, predictions
    from sciml.recipe import read

    recipe = read(recipe_file(file), overrides or ())
    name = model or next(iter(recipe.models))
    planned = predictions(recipe, name, devices, nodes, hardware)
    where = f"{devices} devices on {nodes} node{'s' * (nodes > 1)}"
    typer.echo(f"{recipe.name}, model {name}, batch {recipe.models[name].train.batch}: {where}")
    typer.echo(plan_table(planned, hardware, None if everything else SHOWN))
