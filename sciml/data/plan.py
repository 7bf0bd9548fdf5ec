"""What a generation finds in its folder and what is left to do: continuing, adopting, refusing, locking."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from sciml.data import disk, manifest, sharing
from sciml.data.manifest import Manifest, Shard
from sciml.data.ranks import Ranks
from sciml.data.shard import Identity, check_values, read_ids
from sciml.errors import BusyError, ConfigError, DataError

LOCK_FILE = ".lock"
NAME = re.compile(r"shard-\d+-\d+-\d+\.h5")
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Plan:
    """Same on all ranks: the manifest at the start, missing ids, and the number of this generation."""

    manifest: Manifest
    missing: tuple[int, ...]
    number: int

    def noting(self, notes: Mapping[str, Any]) -> Plan:
        """The same with other notes, which describe the samples that are computed now."""
        identity = replace(self.manifest.identity, notes=notes)
        return replace(self, manifest=replace(self.manifest, identity=identity))

    def work(self, folder: Path, rank: int, size: int) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
        """(ids to compute together, mask of those to store, missing samples up to here) for one rank.

        Chunks are handed out as ranks ask for them, so that expensive samples keep no one waiting.
        """
        length, total = self.manifest.chunk, self.manifest.identity.layout.samples
        wanted = np.asarray(self.missing, np.int64)
        numbers = np.unique(wanted // length)
        for first, last in sharing.taken(folder, len(numbers), rank, size):
            for number in numbers[first:last]:
                ids = np.arange(number * length, min((number + 1) * length, total), dtype=np.int64)
                yield ids, np.isin(ids, wanted), int(np.searchsorted(wanted, ids[-1], side="right"))


def make_plan(folder: Path, identity: Identity, chunk: int, samples: int | None) -> tuple[Plan, int]:
    """Look at the folder, adopt finished shards that no manifest lists, and see what is left to do."""
    last = identity.layout.samples if samples is None else samples
    if chunk < 1 or not 0 < last <= identity.layout.samples:
        raise ConfigError(
            "nothing to generate",
            expected=f"chunk >= 1 and 1 <= samples <= {identity.layout.samples}",
            got=f"chunk {chunk}, samples {samples}",
        )
    if (folder / manifest.FILE).exists():
        known = manifest.load(folder)
        _refuse_other(folder, known.identity, identity)
        known = replace(known, shards=_still_there(folder, known))
    else:
        known = Manifest(identity, chunk)
    _refuse_odd_names(folder)
    orphans = _adopt(folder, known)
    known = known.adding(orphans)
    missing = tuple(i for i in known.missing if i < last)
    disk.refuse_no_room(folder / manifest.FILE, len(missing) * identity.layout.sample_bytes)
    known.save(folder)
    numbers = [int(path.name.split("-")[1]) for path in folder.glob("shard-*.h5")]
    return Plan(known, missing, max(numbers, default=0) + 1), sum(len(shard.ids) for shard in orphans)


def _refuse_odd_names(folder: Path) -> None:
    odd = sorted(path.name for path in folder.glob("shard-*.h5") if not NAME.fullmatch(path.name))
    if odd:
        raise DataError(
            f"{folder} holds files that are not named as shards; nothing was changed",
            expected="shard-<generation>-<rank>-<number>.h5, each a whole number",
            got=", ".join(odd[:8]),
            reason="renamed or copied by hand: they would be counted as samples of this data set",
            fix="move them out of the folder",
        )


def _still_there(folder: Path, known: Manifest) -> tuple[Shard, ...]:
    """Shards of the manifest that exist: a deleted one is computed again, an altered one refused."""
    kept = tuple(shard for shard in known.shards if (folder / shard.file).is_file())
    for shard in kept:
        manifest.verify_shard(folder / shard.file, shard)
    return kept


def _adopt(folder: Path, known: Manifest) -> list[Shard]:
    """Shards a killed run finished after its last manifest; its unfinished `.part` files are removed."""
    for part in folder.glob("shard-*.h5.part"):
        part.unlink()
    listed = {shard.file for shard in known.shards}
    stored, adopted = set(known.ids), []
    for path in sorted(folder.glob("shard-*.h5")):
        if path.name in listed:
            continue
        ids = tuple(int(i) for i in read_ids(path, known.identity))
        if stored.isdisjoint(ids):
            check_values(path, known.identity)
            shard = Shard(path.name, disk.sha256(path), path.stat().st_size, ids)
            manifest.trust(path, shard)
            adopted.append(shard)
            stored.update(ids)
    return adopted


def _refuse_other(folder: Path, found: Identity, wanted: Identity) -> None:
    if found.fingerprint == wanted.fingerprint:
        return
    before = {**found.layout.to_json(), **found.provenance}
    now = {**wanted.layout.to_json(), **wanted.provenance}
    changed = [key for key in {**before, **now} if before.get(key) != now.get(key)]
    raise ConfigError(
        f"{folder} holds data made in another way; nothing was changed",
        expected="; ".join(f"{key} = {_short(before.get(key))}" for key in changed),
        got="; ".join(f"{key} = {_short(now.get(key))}" for key in changed),
        reason="the recipe was changed after the data were generated",
        fix="choose a new folder, or restore the recipe to continue this one",
    )


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 120 else text[:117] + "..."


@contextlib.contextmanager
def sole_owner(folder: Path, ranks: Ranks) -> Iterator[None]:
    """Hold the folder's lock (on rank 0) while generating; it ends with the process that holds it.

    Raises BusyError on all ranks when another process generates there.
    """
    held: list[IO[str]] = []
    ranks.on_first(lambda: held.append(_lock(folder)))
    try:
        yield
    finally:
        for stream in held:
            stream.close()


def _lock(folder: Path) -> IO[str]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        stream = open(folder / LOCK_FILE, "w")  # noqa: SIM115 (held until generation ends)
    except OSError as error:
        raise disk.explain(error, folder) from error
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        stream.close()
        raise BusyError(
            f"{folder} is in use",
            got="another process is generating data there",
            fix="wait for it to finish, or choose another folder",
        ) from error
    except OSError as error:
        text = "%s cannot be locked (%s): make sure that no other process generates data there"
        logger.warning(text, folder, error.strerror or error)
    return stream
