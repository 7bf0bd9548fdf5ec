"""`sciml data ...`: check, merge and describe data sets, and exchange them with other people's tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from sciml.cli import inspection

HELP = "Check, merge and exchange data sets."

Place: TypeAlias = Annotated[
    Path, typer.Argument(metavar="FOLDER", help="A data folder, the folder of a run, or a merged file.")
]
OutputFile: TypeAlias = Annotated[
    Path, typer.Option("--output", "-o", metavar="FILE", help="The file to write; never overwritten.")
]


def check(folder: Place) -> None:
    """Say of every file whether it is whole, and what to do.

    Hashes every byte and reads every number. Exit code 0, 65 (missing, cut off, foreign, incomplete), 76 (altered) or
    75 (being generated).
    """
    from sciml.data import checking

    place = data_folder(folder)
    findings = checking.check(place)
    for finding in findings:
        typer.echo(finding)
    checking.refuse_faults(place, findings)
    typer.echo(f"{place} is whole")


def merge(folder: Place, output: OutputFile) -> None:
    """Write all shards into one verified HDF5 file.

    It opens like the folder; its bits do not depend on how many ranks generated the shards.
    """
    from sciml.data.merging import merge as merge_data

    merged = merge_data(data_folder(folder), output)
    typer.echo(f"wrote {merged.path}: {merged.samples} samples, {merged.bytes} bytes, sha256 {merged.sha256}")


def info(folder: Place) -> None:
    """Describe a data set: what, how many, how made."""
    inspection.info(data_folder(folder))


def data_folder(place: Path) -> Path:
    """The data inside of a run folder, or the place itself."""
    inside = place / "data"
    return inside if not (place / inspection.MANIFEST).is_file() and inside.is_dir() else place


COMMANDS = (check, merge, info)
