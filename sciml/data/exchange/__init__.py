"""Data sets to and from the file formats of other projects: The Well and PDEBench."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from sciml.data import disk, onefile
from sciml.data.dataset import Dataset
from sciml.data.exchange import pdebench, the_well
from sciml.data.exchange.trajectories import SPLITS, Source, Trajectories
from sciml.data.generate import Generated, Simulated, generate
from sciml.data.layout import DType
from sciml.data.ranks import Ranks
from sciml.data.sink import write_hdf5
from sciml.errors import ConfigError, DataError
from sciml.registry import suggestion

__all__ = ["FORMATS", "Exported", "Format", "export", "format_of", "import_file"]

CHUNK = 16


@dataclass(frozen=True)
class Format:
    """How files of another project are written, recognized and read."""

    title: str
    write: Callable[[h5py.File, Trajectories, str], None]
    recognizes: Callable[[h5py.File], bool]
    read: Callable[[h5py.File], Source]


FORMATS: Mapping[str, Format] = {
    "well": Format("The Well", the_well.write, the_well.recognizes, the_well.read),
    "pdebench": Format("PDEBench", pdebench.write, pdebench.recognizes, pdebench.read),
}


@dataclass(frozen=True)
class Exported:
    """One finished file; `left_out` are the variables that the format has no place for."""

    path: Path
    samples: int
    bytes: int
    left_out: tuple[str, ...]


def export(
    folder: str | Path, file: str | Path, *, to: str, split: str | None = None, dtype: DType = "float32"
) -> Exported:
    """Write the data of `folder` as a file of another project; a few samples at a time are in memory.

    An initial field `u0` becomes step 0 of `u`. Quantities of interest and the coefficients of random fields are left
    out. float64 gives every number as it is. Raises ConfigError (unknown format, nothing on a grid), CannotCreateError
    for a file that is there, StorageError, and what `Dataset.open` raises.
    """
    chosen, target = _format(to), Path(file)
    onefile.refuse_existing(target)
    view = Trajectories.of(Dataset.open(folder, memory=0), split)
    disk.refuse_no_room(target, len(view.rows) * view.sample_values * np.dtype(dtype).itemsize)
    write_hdf5(target, lambda stored, check: chosen.write(stored, replace(view, check=check), dtype))
    return Exported(target, len(view.rows), target.stat().st_size, view.left_out)


def format_of(file: str | Path) -> str:
    """Which of the formats a file has. Raises DataError when it has none of them."""
    with disk.open_hdf5(Path(file)) as stored:
        found = next((name for name, known in FORMATS.items() if known.recognizes(stored)), None)
        if found is None:
            raise DataError(
                f"{file} has none of the known layouts",
                expected=" | ".join(known.title for known in FORMATS.values()),
                got=sorted(stored)[:8],
                fix="open_arrays(file, input=..., output=...) for named arrays of any file",
            )
        return found


def import_file(
    file: str | Path,
    folder: str | Path,
    *,
    kind: str | None = None,
    splits: Mapping[str, float] | None = None,
    comm: Any = None,
) -> Generated:
    """Write a file of another project as shards; resumable, and shared among MPI ranks, as any generation.

    Samples keep their order and their dtype; `splits` are fractions or counts of consecutive samples. Step 0 of an
    evolving field `u` becomes the input `u0`. Rank 0 alone hashes the file, and warns. Raises DataError for what does
    not fit the schema or is not finite, naming sample and field, and as `generate`.
    """
    path, ranks = Path(file), Ranks(comm)
    known = _format(kind or format_of(path))
    with disk.open_hdf5(path) as stored:
        try:
            with warnings.catch_warnings():
                if ranks.rank > 0:
                    warnings.simplefilter("ignore")
                source = known.read(stored)
        except (KeyError, TypeError, ValueError) as error:
            problem = f"{type(error).__name__}: {error}"
            raise DataError(f"{path} is no whole file of {known.title}", reason=problem) from error
        content = ranks.on_first(lambda: disk.sha256(path))
        origin = {**source.provenance, "file": path.name, "format": known.title, "sha256": content}
        layout = source.layout(splits or SPLITS)

        def simulate(ids: np.ndarray) -> Simulated:
            return Simulated(source.arrays(ids, str(path)))

        used = sum(layout.splits.values())
        return generate(
            folder, layout, simulate, chunk=min(CHUNK, used), provenance={"source": origin}, comm=ranks.comm
        )


def _format(name: str) -> Format:
    if name not in FORMATS:
        raise ConfigError(f"unknown format {name!r}{suggestion(name, list(FORMATS))}", expected=" | ".join(FORMATS))
    return FORMATS[name]
