"""The commands of `sciml`, in the order of a working day."""

from __future__ import annotations

import os
from collections.abc import Callable

import typer

from sciml.cli import cluster, data, inspection, planning, stages, starting
from sciml.cli.guard import guarded

HELP = """Physics-informed scientific machine learning: from one YAML recipe to a surrogate in your code.

A first run:  sciml init heat  &&  sciml run heat.yaml
"""
COMMANDS = {
    "Start": (starting.init, starting.validate, starting.list_components, starting.schema, starting.doctor),
    "Run": (stages.run, stages.generate, stages.train, stages.evaluate, stages.export),
    "Many runs, clusters": (planning.plan, cluster.sweep, cluster.submit),
    "Use and check": (inspection.predict, inspection.info, inspection.verify),
}
GROUPS = {"data": (data.HELP, "Use and check", data.COMMANDS)}
"""Name of a command that has commands of its own: (help, panel, those commands)."""
NAMES: dict[Callable[..., None], str] = {starting.list_components: "list", data.import_: "import"}


def _application() -> typer.Typer:
    application = typer.Typer(
        help=HELP,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    application.callback()(_version)
    for panel, commands in COMMANDS.items():
        for command in commands:
            name = NAMES.get(command, command.__name__)
            application.command(name, rich_help_panel=panel)(guarded(command))
    for name, (text, panel, commands) in GROUPS.items():
        group = typer.Typer(help=text, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)
        for command in commands:
            group.command(NAMES.get(command, command.__name__))(guarded(command))
        application.add_typer(group, name=name, rich_help_panel=panel)
    return application


def _print_version(wanted: bool) -> None:
    if wanted:
        from sciml import __version__

        typer.echo(f"sciml {__version__}")
        raise typer.Exit()


def _version(
    version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Print the version."),
) -> None:
    del version


app = _application()


def main() -> None:
    """Entry point of the `sciml` command; exits with a code of the table in `sciml.errors`."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # its threads and those of XLA fight over the same cores
    app(prog_name="sciml")
