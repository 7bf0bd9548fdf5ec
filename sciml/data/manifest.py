"""`manifest.json`: which shards make up a data set, with the size, hash and sample ids of each."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sciml.data import disk
from sciml.data.layout import Layout, fingerprint
from sciml.data.shard import FORMAT, VERSION, Identity
from sciml.errors import DataError, IntegrityError

FILE = "manifest.json"
_verified: dict[Path, tuple[int, int, str]] = {}  # path -> (mtime_ns, size, sha256), within this process only


@dataclass(frozen=True)
class Shard:
    """One finished file: name within the folder, sha256, size, and the ids of its samples in file order."""

    file: str
    sha256: str
    bytes: int
    ids: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain values; ids as inclusive ranges `[first, last]`."""
        return {"file": self.file, "sha256": self.sha256, "bytes": self.bytes, "ids": as_ranges(self.ids)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Shard:
        """Inverse of `to_json`."""
        ids = tuple(i for first, last in value["ids"] for i in range(first, last + 1))
        return cls(value["file"], value["sha256"], value["bytes"], ids)


@dataclass(frozen=True)
class Manifest:
    """What the folder holds. `chunk`: number of samples that were computed together."""

    identity: Identity
    chunk: int
    shards: tuple[Shard, ...] = ()

    @property
    def ids(self) -> list[int]:
        """Ids of all stored samples, sorted."""
        return sorted(i for shard in self.shards for i in shard.ids)

    @property
    def missing(self) -> list[int]:
        """Ids of the samples the layout asks for that no shard holds, sorted."""
        stored = {i for shard in self.shards for i in shard.ids}
        return [i for i in range(self.identity.layout.samples) if i not in stored]

    def adding(self, shards: Iterable[Shard]) -> Manifest:
        """The same with more shards, ordered by file name."""
        return replace(self, shards=tuple(sorted((*self.shards, *shards), key=lambda shard: shard.file)))

    def save(self, folder: Path) -> None:
        """Write `manifest.json` atomically. Raises StorageError when the disk is full."""
        value = {
            **described(self.identity),
            "complete": not self.missing,
            "chunk": self.chunk,
            "shards": [shard.to_json() for shard in self.shards],
        }
        text = json.dumps(value, indent=1, default=str)
        disk.write_atomically(folder / FILE, text.encode())


def described(identity: Identity) -> dict[str, Any]:
    """What the data are, as plain values: the manifest without the files."""
    return {
        "format": FORMAT,
        "format_version": VERSION,
        "fingerprint": identity.fingerprint,
        "samples": identity.layout.samples,
        "layout": identity.layout.to_json(),
        "provenance": dict(identity.provenance),
        "notes": dict(identity.notes),
    }


def identity_of(value: Mapping[str, Any], path: Path) -> Identity:
    """Inverse of `described`. Raises KeyError or TypeError for another shape, IntegrityError when altered."""
    layout = Layout.from_json(value["layout"])
    identity = Identity(layout, value["provenance"], value["notes"], value["fingerprint"])
    if value.get("format_version") != VERSION:
        raise DataError(f"{path} has another format version", expected=VERSION, got=value.get("format_version"))
    if fingerprint(layout, identity.provenance) != identity.fingerprint:
        raise IntegrityError(
            f"{path} was altered",
            expected=f"layout and provenance with fingerprint {identity.fingerprint}",
            got=fingerprint(layout, identity.provenance),
            fix="restore the file, or generate the data again",
        )
    return identity


def load(folder: Path) -> Manifest:
    """Read `manifest.json`. Raises DataError when missing or unreadable, IntegrityError when altered."""
    path = folder / FILE
    try:
        value = json.loads(path.read_text())
        shards = tuple(Shard.from_json(s) for s in value["shards"])
        return Manifest(identity_of(value, path), value["chunk"], shards)
    except FileNotFoundError as error:
        raise DataError(
            f"{folder} is no data set",
            expected=f"a folder with {FILE}",
            got="no such folder" if not folder.is_dir() else sorted(p.name for p in folder.iterdir())[:8],
            fix="give the folder that `sciml generate` wrote",
        ) from error
    except (ValueError, KeyError, TypeError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read", reason=f"{type(error).__name__}: {error}") from error


def verify(folder: Path, manifest: Manifest) -> None:
    """Check that every shard is there, whole and unaltered, and that no sample is missing or stored twice.

    Raises DataError (missing, cut off, incomplete, repeated) or IntegrityError (other content), naming the
    shard. A file is hashed again within one process only when its time or size has changed.
    """
    absent = [shard.file for shard in manifest.shards if not (folder / shard.file).is_file()]
    if absent:
        raise DataError(
            f"{len(absent)} of {len(manifest.shards)} shards are missing from {folder}",
            expected=f"{len(manifest.shards)} files listed in {FILE}",
            got=f"no {', '.join(absent[:5])}",
            fix="restore them, or give the same `sciml generate` command again: it makes what is missing",
        )
    for shard in manifest.shards:
        verify_shard(folder / shard.file, shard)
    refuse_incomplete(folder, manifest)


def refuse_incomplete(folder: Path | str, manifest: Manifest) -> None:
    """DataError for samples that are missing or stored twice."""
    _refuse_repeated(folder, manifest)
    missing = manifest.missing
    if missing:
        raise DataError(
            f"{folder} is incomplete",
            expected=f"{manifest.identity.layout.samples} samples",
            got=f"{len(manifest.ids)}; the first missing is sample {missing[0]}",
            reason="generation was interrupted, or some samples blew up",
            fix="give the same `sciml generate` command again: only missing samples are computed",
        )


def trust(path: Path, shard: Shard) -> None:
    """Remember that `path` was just found to be `shard`."""
    status = path.stat()
    _verified[path.resolve()] = (status.st_mtime_ns, status.st_size, shard.sha256)


def verify_shard(path: Path, shard: Shard) -> None:
    """DataError for another size, IntegrityError for another content; see `verify`."""
    status = path.stat()
    if _verified.get(path.resolve()) == (status.st_mtime_ns, status.st_size, shard.sha256):
        return
    if status.st_size != shard.bytes:
        raise DataError(
            f"shard {path} has another size",
            expected=f"{shard.bytes} bytes",
            got=f"{status.st_size} bytes",
            reason="it was cut off, for example by an incomplete copy",
            fix="copy it again, or delete it and give the same `sciml generate` command again",
        )
    found = disk.sha256(path)
    if found != shard.sha256:
        raise IntegrityError(
            f"shard {path} was altered",
            expected=f"sha256 {shard.sha256}",
            got=found,
            reason="damaged storage or a changed file: its numbers cannot be trusted",
            fix="restore it from a copy, or delete it and give the same `sciml generate` command again",
        )
    trust(path, shard)


def _refuse_repeated(folder: Path | str, manifest: Manifest) -> None:
    repeated = [i for i, count in Counter(manifest.ids).items() if count > 1]
    if repeated:
        holders = [shard.file for shard in manifest.shards if repeated[0] in shard.ids]
        raise DataError(
            f"sample {repeated[0]} is stored more than once in {folder}",
            expected="every sample id once",
            got=f"in {', '.join(holders)}; {len(repeated)} such samples",
            reason="a shard was copied",
            fix="remove the copy and its manifest entry",
        )


def as_ranges(ids: tuple[int, ...]) -> list[list[int]]:
    """Consecutive ids as inclusive ranges, in the order given."""
    if not ids:
        return []
    breaks = np.flatnonzero(np.diff(np.asarray(ids)) != 1) + 1
    return [[int(part[0]), int(part[-1])] for part in np.split(np.asarray(ids), breaks)]
