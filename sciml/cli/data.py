"""`sciml data ...`: check, merge and describe data sets, and exchange them with other people's tools."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from sciml.cli import inspection

HELP = "Check, merge and exchange data sets."

Place: TypeAlias = Annotated[
    Path, typer.Argument(metavar="FOLDER", help="A data folder, the folder of a run, or a merged file.")
]


class Precision(StrEnum):
    """Numbers on disk."""

    float32 = "float32"
    float64 = "float64"


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

    It opens like the folder; the hash of its content does not depend on how many ranks generated the shards.
    """
    from sciml.data.merging import merge as merge_data

    merged = merge_data(data_folder(folder), output)
    typer.echo(f"wrote {merged.path}: {merged.samples} samples, {merged.bytes} bytes")
    typer.echo(f"sha256 {merged.sha256} of the file, {merged.content_sha256} of its content")


def info(folder: Place) -> None:
    """Describe a data set: what, how many, how made."""
    inspection.info(data_folder(folder))


def export(
    folder: Place,
    output: OutputFile,
    to: Annotated[str, typer.Option("--to", metavar="well|pdebench", help="The format of the file.")],
    split: Annotated[
        str | None, typer.Option("--split", metavar="NAME", help="Only this split (default: all).")
    ] = None,
    dtype: Annotated[
        Precision, typer.Option("--dtype", help="float32 as these formats have it, or every number as it is.")
    ] = Precision.float32,
) -> None:
    """Write a file that other people's loaders read.

    The Well (--to well) or PDEBench (--to pdebench). An initial field u0 becomes step 0 of u.
    """
    from sciml.data import exchange

    made = exchange.export(data_folder(folder), output, to=to, split=split, dtype=dtype.value)
    typer.echo(f"wrote {made.path}: {made.samples} samples, {made.bytes} bytes")
    if made.left_out:
        typer.echo(f"without {', '.join(made.left_out)}, for which this format has no place")


def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file of The Well or PDEBench.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="The data folder to fill.")],
    splits: Annotated[
        str, typer.Option("--splits", metavar="TRAIN,VALIDATION,TEST", help="Fractions or counts, in file order.")
    ] = "0.8,0.1,0.1",
) -> None:
    """Make a data set of a file of The Well or PDEBench.

    Step 0 of an evolving field u becomes the input u0. May be started by mpiexec; goes on where it stopped.
    """
    from sciml.data import exchange
    from sciml.data.ranks import Ranks

    ranks = Ranks()
    made = exchange.import_file(file, output, splits=_splits(splits), comm=ranks.comm)
    if ranks.rank == 0:
        typer.echo(f"{output}: {made.computed} samples written, {made.found} found")


def _splits(text: str) -> dict[str, float]:
    try:
        train, validation, test = (float(part) for part in text.split(","))
    except ValueError as error:
        raise typer.BadParameter("three numbers, as 0.8,0.1,0.1 or 800,100,100", param_hint="--splits") from error
    return {"train": train, "validation": validation, "test": test}


def data_folder(place: Path) -> Path:
    """The data inside of a run folder, or the place itself."""
    inside = place / "data"
    return inside if not (place / inspection.MANIFEST).is_file() and inside.is_dir() else place


COMMANDS = (check, merge, info, export, import_)
