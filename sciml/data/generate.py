"""Compute samples on any number of MPI ranks and store them: the same bits on any number, resumable."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from sciml.data import master, sharing
from sciml.data import provenance as origin
from sciml.data.layout import Layout, fingerprint
from sciml.data.manifest import Manifest
from sciml.data.plan import Plan, make_plan, sole_owner
from sciml.data.ranks import Ranks
from sciml.data.shard import Identity, finite_count
from sciml.data.writer import ShardWriter
from sciml.errors import DataError, NumericalError, SciMLError


@dataclass(frozen=True)
class Simulated:
    """What `simulate` returns for the n ids it was given.

    `arrays[name]` has shape (n, *shape of the variable), in the units of the layout. `failed` maps the id
    of each sample that must not be stored to the reason, best with the time at which it blew up.
    """

    arrays: Mapping[str, np.ndarray]
    failed: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Generated:
    """Summary over all ranks: samples computed now, found, adopted from a killed run; bytes, seconds."""

    computed: int
    found: int
    adopted: int
    bytes: int
    seconds: float


Simulate: TypeAlias = Callable[[np.ndarray], Simulated]
Progress: TypeAlias = Callable[[int, int], None]


def generate(
    folder: str | Path,
    layout: Layout,
    simulate: Simulate,
    *,
    chunk: int = 32,
    provenance: Mapping[str, Any] | None = None,
    notes: Mapping[str, Any] | Callable[[], Mapping[str, Any]] | None = None,
    samples: int | None = None,
    comm: Any = None,
    progress: Progress | None = None,
) -> Generated:
    """Fill `folder` with the samples `layout` asks for; only those that are not there yet are computed.

    `simulate(ids)` gets `chunk` consecutive global sample indices (int64; fewer at the very end), always
    the same ones together, so the bits of a sample do not depend on the number of ranks or on
    interruptions. `provenance` (seed, problem, solver and options, recipe section; JSON values) says what
    the data are: a folder with another one is refused. `notes` (measured solver error, full recipe text)
    are recorded and not compared; a function that returns them is called on one rank, and only when there is
    something to compute. `samples`: stop after this many ids now. `comm`: mpi4py communicator; found by
    itself under mpiexec or srun. `progress(done, total)` counts the samples that were given out to all ranks.

    Samples that failed or are not finite are never written; they are reported as NumericalError when
    all others are stored. Raises ConfigError (other layout or provenance in the folder), BusyError (another
    process generates there), StorageError (disk full), DataError (simulate returned something else than
    the layout says); every exception ends all ranks, and keeps every finished sample.
    """
    started = time.perf_counter()
    folder, ranks = Path(folder), Ranks(comm)
    provenance = dict(provenance or {})
    identity = Identity(layout, provenance, {}, fingerprint(layout, provenance))
    with sole_owner(folder, ranks):
        plan, adopted = ranks.on_first(lambda: make_plan(folder, identity, chunk, samples))
        if plan.missing:
            plan = plan.noting(ranks.on_first(lambda: _noted(notes)))
        ranks.on_first(lambda: sharing.begin(folder, ranks.size))
        writer = ShardWriter(folder, f"shard-{plan.number:03d}-{ranks.rank:04d}", plan.manifest.identity)
        failed, error = _compute(plan, plan.work(folder, ranks.rank, ranks.size), simulate, writer, ranks, progress)
        shards = [shard for part in ranks.gather(writer.shards) for shard in part]
        ranks.on_first(lambda: _close(folder, plan.manifest.adding(shards), bool(shards) or adopted > 0))
        ranks.agree(error)
    _report_failed({i: why for part in ranks.gather(failed) for i, why in part.items()}, layout.samples)
    computed = sum(len(shard.ids) for shard in shards)
    written = sum(shard.bytes for shard in shards)
    found = len(plan.manifest.ids) - adopted
    return Generated(computed, found, adopted, written, time.perf_counter() - started)


def _close(folder: Path, known: Manifest, changed: bool) -> None:
    """The file that shows all shards as one, and the manifest: in this order, so that a kill leaves none behind."""
    sharing.end(folder)
    if changed or not (folder / master.FILE).exists():
        master.write(folder, known)
    known.save(folder)


def _noted(notes: Mapping[str, Any] | Callable[[], Mapping[str, Any]] | None) -> dict[str, Any]:
    return {**origin.code(), **(notes() if callable(notes) else notes or {})}


def _compute(
    plan: Plan,
    work: Iterator[tuple[np.ndarray, np.ndarray, int]],
    simulate: Simulate,
    writer: ShardWriter,
    ranks: Ranks,
    progress: Progress | None,
) -> tuple[dict[int, str], Exception | None]:
    """Work through the chunks of this rank. Whatever happens, finished samples reach the disk."""
    failed: dict[int, str] = {}
    problem: Exception | None = None
    try:
        for ids, mask, reached in work:
            arrays, bad = _checked(simulate(ids), ids, writer.identity.layout)
            keep = mask & ~np.isin(ids, list(bad))
            stored = arrays if keep.all() else {name: values[keep] for name, values in arrays.items()}
            writer.add(ids[keep], stored)
            failed.update({i: why for i, why in bad.items() if i in ids[mask]})
            if progress is not None:
                progress(reached, len(plan.missing))
    except Exception as error:
        problem = error
    except BaseException as error:  # Ctrl-C: keep the samples, and do not leave other ranks waiting
        writer.close_shard()
        ranks.abort(error, 130)
        raise
    try:
        writer.close_shard()
    except SciMLError as error:
        problem = problem or error
    return failed, problem


def _checked(made: Simulated, ids: np.ndarray, layout: Layout) -> tuple[dict[str, np.ndarray], dict[int, str]]:
    """Arrays in the layout's order and shape, and all samples that must not be stored with the reason."""
    names = set(layout.names)
    if set(made.arrays) != names:
        raise DataError(
            "simulate returned other variables than the layout names",
            expected=sorted(names),
            got=sorted(made.arrays),
        )
    arrays = {name: np.asarray(made.arrays[name]) for name in layout.names}
    failed = {int(i): why for i, why in made.failed.items()}
    for _, variable in layout:
        values = arrays[variable.name]
        if values.shape != (len(ids), *variable.shape) or values.dtype.kind not in "fiu":
            raise DataError(
                f"simulate returned {variable.name} in another shape",
                expected=f"real numbers of shape {(len(ids), *variable.shape)}: samples, {variable.axes}",
                got=f"{values.dtype} of shape {values.shape}",
            )
        with np.errstate(over="ignore"):
            values = arrays[variable.name] = values.astype(layout.dtype, copy=False)
        for row in np.flatnonzero(finite_count(values) < variable.size):
            failed.setdefault(int(ids[row]), _where_not_finite(variable.name, variable.axes, values[row], layout))
    return arrays, failed


def _where_not_finite(name: str, axes: tuple[str, ...], values: np.ndarray, layout: Layout) -> str:
    times = layout.coordinates.get("time")
    if axes[:1] != ("time",) or times is None:
        return f"{name} is not finite"
    frame = int(np.argmax(~np.isfinite(values).reshape(len(values), -1).all(axis=1)))
    return f"{name} is not finite at time {times.values[frame]:g} {times.unit}"


def _report_failed(failed: Mapping[int, str], total: int) -> None:
    if not failed:
        return
    lines = [f"sample {i}: {failed[i]}" for i in sorted(failed)[:10]]
    more = f"; and {len(failed) - 10} more" if len(failed) > 10 else ""
    raise NumericalError(
        f"{len(failed)} of {total} samples blew up and were not written; the others are stored",
        got="; ".join(lines) + more,
        reason="time step or grid too coarse for these parameters",
        fix="a smaller dt, a finer grid, or a narrower range of parameters; then generate into a new folder",
    )
