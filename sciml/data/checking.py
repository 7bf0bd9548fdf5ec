"""Everything that is wrong with a data set, file by file: what it is and what to do. Nothing is changed.

`Dataset.open` stops at the first fault; here all of them are found, and files that nobody asks for are named too.
"""

from __future__ import annotations

import contextlib
import fcntl
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sciml.data import disk, manifest, master, onefile
from sciml.data.manifest import Manifest, Shard
from sciml.data.plan import LOCK_FILE
from sciml.data.shard import Identity, check_values, read_ids
from sciml.errors import BusyError, DataError, IntegrityError, SciMLError

AGAIN = "give the same `sciml generate` command again: it makes what is missing"
DELETE = f"restore it from a copy, or delete it and {AGAIN}"
AWAY = "move it out of the folder; if its samples are wanted, open the folder they come from"


@dataclass(frozen=True)
class Finding:
    """One file (or the folder itself, `file` = "."): its state in a few words, and what to do.

    `error` is the class of what would be raised; None for a file that is as it should be.
    """

    file: str
    state: str
    fix: str | None = None
    error: type[SciMLError] | None = None

    def __str__(self) -> str:
        mark = "ok   " if self.error is None else "WRONG"
        return f"{mark} {self.file}: {self.state}" + (f"\n      {self.fix}" if self.fix else "")


SEVERITY: tuple[type[SciMLError], ...] = (IntegrityError, DataError, BusyError)
"""The error of a check is the first of these that was found."""


def check(place: str | Path) -> list[Finding]:
    """All findings about a folder of shards, or about one file that `sciml data merge` wrote.

    Every byte is hashed and every number read. Raises DataError when there is no data set at all.
    """
    place = Path(place)
    return [_one_file(place)] if place.is_file() else list(_folder(place))


def refuse_faults(place: str | Path, findings: list[Finding]) -> None:
    """Raise the gravest kind of error among the findings, naming the files; nothing when all is well."""
    faults = [finding for finding in findings if finding.error is not None]
    if not faults:
        return
    kind = next(kind for kind in SEVERITY if any(fault.error is kind for fault in faults))
    fixes = dict.fromkeys(fault.fix for fault in faults if fault.fix)
    raise kind(
        f"{place} is not a whole data set",
        expected="every shard there and unaltered, and every sample once",
        got="; ".join(f"{fault.file}: {fault.state}" for fault in faults[:8])
        + (f"; and {len(faults) - 8} more" if len(faults) > 8 else ""),
        fix="; ".join(fixes) or None,
    )


def _one_file(path: Path) -> Finding:
    try:
        identity, _ = onefile.verified(path)
    except SciMLError as error:
        kind = next((k for k in SEVERITY if isinstance(error, k)), DataError)
        return Finding(path.name, f"{error.what}; {error.got}", error.fix, kind)
    return Finding(path.name, f"{identity.layout.samples} samples, all hashes right")


def _folder(folder: Path) -> Iterator[Finding]:
    if not (folder / manifest.FILE).is_file() and any(folder.glob("shard-*.h5")):
        fix = "give the same `sciml generate` command again: it takes the finished shards and writes the manifest"
        yield Finding(manifest.FILE, "missing; nothing says what the shards should be", fix, DataError)
        return
    try:
        known = manifest.load(folder)
    except IntegrityError as error:
        yield Finding(manifest.FILE, "altered: its fingerprint is another one", error.fix, IntegrityError)
        return
    if _is_locked(folder):
        yield Finding(".", "another process is generating here", "wait for it to finish", BusyError)
        return
    yield from (_shard(folder / shard.file, shard, known.identity) for shard in known.shards)
    yield from _strangers(folder, known)
    yield from _samples(known)


def _shard(path: Path, shard: Shard, identity: Identity) -> Finding:
    """One shard that the manifest lists."""
    if not path.is_file():
        return Finding(path.name, "missing", f"restore it from a copy, or {AGAIN}", DataError)
    size = path.stat().st_size
    if size != shard.bytes:
        state = "cut off" if size < shard.bytes else "longer than it was written"
        return Finding(path.name, f"{state}: {size} bytes instead of {shard.bytes}", DELETE, DataError)
    if disk.sha256(path) != shard.sha256:
        kind = _belongs_elsewhere(path, identity)
        if kind is not None:
            return Finding(path.name, f"replaced: it {kind}", DELETE, IntegrityError)
        return Finding(path.name, "altered: same size, another sha256", DELETE, IntegrityError)
    try:
        check_values(path, identity)
    except SciMLError as error:
        return Finding(path.name, error.what, DELETE, DataError)
    return Finding(path.name, f"{len(shard.ids)} samples, {size} bytes, sha256 {shard.sha256[:12]}")


def _strangers(folder: Path, known: Manifest) -> Iterator[Finding]:
    """Files that no one lists: of another generator, finished by a killed run, unfinished, or unknown."""
    listed = {*(shard.file for shard in known.shards), master.FILE}
    stored = set(known.ids)
    for path in sorted(folder.glob("*.h5")):
        if path.name in listed:
            continue
        elsewhere = _belongs_elsewhere(path, known.identity)
        if elsewhere is not None:
            yield Finding(path.name, f"not part of this data set: it {elsewhere}", AWAY, DataError)
            continue
        ids = {int(i) for i in read_ids(path, known.identity)}
        if ids & stored:
            again = f"repeats {len(ids & stored)} samples that other shards hold, the first is {min(ids & stored)}"
            state = f"{again}: a copy, or two generators in one folder"
            yield Finding(path.name, state, "delete it", DataError)
        else:
            state = f"{len(ids)} finished samples that the manifest does not list"
            yield Finding(path.name, state, "give the same `sciml generate` command again: it takes them", DataError)
        stored |= ids
    for path in sorted(folder.glob("*.part")):
        yield Finding(path.name, "unfinished; not part of the data", "the next `sciml generate` removes it")


def _belongs_elsewhere(path: Path, identity: Identity) -> str | None:
    """Why a file is no shard of this data set; None for one that is."""
    try:
        read_ids(path, identity)
    except SciMLError as error:
        return error.what.removeprefix(f"{path} ")
    return None


def _samples(known: Manifest) -> Iterator[Finding]:
    """Samples that no shard holds, or more than one."""
    total, missing, ids = known.identity.layout.samples, known.missing, known.ids
    if missing:
        named = [f"{a}" if a == b else f"{a}-{b}" for a, b in manifest.as_ranges(tuple(missing))]
        named = ", ".join([*named[:6], *(["..."] if len(named) > 6 else [])])
        yield Finding(".", f"incomplete: {len(missing)} of {total} samples are missing ({named})", AGAIN, DataError)
    repeated = sorted(i for i, count in Counter(ids).items() if count > 1)
    if repeated:
        holders = ", ".join(shard.file for shard in known.shards if repeated[0] in shard.ids)
        state = f"{len(repeated)} samples are stored more than once, the first is {repeated[0]}, in {holders}"
        yield Finding(".", state, "delete one of these files and its entry in the manifest", DataError)


def _is_locked(folder: Path) -> bool:
    """Whether a generation holds the folder now; a file system without locks answers no."""
    with contextlib.suppress(OSError), open(folder / LOCK_FILE, "rb") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
