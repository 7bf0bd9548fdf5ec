"""A copy of files on the disk of this node: made once for all of its processes, verified by hash at every opening.

`SCIML_CACHE` names the folder, or switches it `off`. Without it there is a cache inside of Slurm jobs alone, in the
job's own `SLURM_TMPDIR` or `TMPDIR`.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeAlias

from sciml.data import disk
from sciml.data.manifest import Shard, trust, verify_shard
from sciml.errors import DataError, IntegrityError

Opener: TypeAlias = Callable[[], BinaryIO]
VARIABLE, OFF, JOB = "SCIML_CACHE", "off", "SLURM_JOB_ID"
JOB_FOLDERS = ("SLURM_TMPDIR", "TMPDIR")
PIECE = 1 << 22
SPARE_BYTES = 64 << 20
"""Room that is left to others."""
logger = logging.getLogger(__name__)


def node_folder(environ: Mapping[str, str] | None = None) -> Path | None:
    """Where this node keeps copies; None where it is not to keep any."""
    known = os.environ if environ is None else environ
    wanted = known.get(VARIABLE)
    if wanted is not None:
        return None if wanted.lower() in ("", OFF) else Path(wanted)
    if JOB not in known:
        return None
    return next((Path(known[name]) / f"sciml-{os.getuid()}" for name in JOB_FOLDERS if known.get(name)), None)


def shards_here(folder: Path, shards: tuple[Shard, ...], cache: Path) -> dict[str, Path]:
    """File name -> where to read it: verified copies in `cache`, as far as it has room; the shards themselves then.

    Raises what `verify_shard` raises for a shard that is damaged in `folder`.
    """
    places, refused = {}, None
    for shard in shards:
        original = folder / shard.file
        copy = None
        if refused is None:
            try:
                copy = copied(shard, partial(original.open, "rb"), cache)
            except FileNotFoundError as error:
                raise DataError(f"shard {original} is missing", expected="a file that the manifest lists") from error
            except OSError as error:
                refused = error.strerror or str(error)
                logger.warning("%s is read from %s itself: no copy in %s (%s)", shard.file, folder, cache, refused)
        if copy is None:
            verify_shard(original, shard)
        places[shard.file] = copy or original
    return places


def copied(shard: Shard, source: Opener, cache: Path) -> Path:
    """The copy of a shard in `cache`, made by the first process that asks for it while the others wait.

    A damaged copy is made again. Raises OSError where there is no room or right to write, IntegrityError when the
    source itself does not hold what the manifest says.
    """
    cache.mkdir(parents=True, exist_ok=True)
    place = cache / f"{shard.sha256}.h5"
    with alone(place):
        if _is_whole(place, shard):
            return place
        if disk.free_bytes(cache) < shard.bytes + SPARE_BYTES:
            raise OSError(disk.FULL[0], f"{shard.bytes} bytes needed, {disk.free_bytes(cache)} free")
        found = write(place, source)
        if found != shard.sha256:
            place.unlink()
            raise IntegrityError(
                f"shard {shard.file} was altered",
                expected=f"sha256 {shard.sha256}",
                got=found,
                reason="damaged storage, a changed file, or an incomplete copy: its numbers cannot be trusted",
                fix="restore it from a copy, or delete it and give the same `sciml generate` command again",
            )
        trust(place, shard)
    return place


@contextlib.contextmanager
def alone(place: Path) -> Iterator[None]:
    """One process of the node at a time; the lock ends with its holder."""
    with open(place.with_name(f".{place.name}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def write(place: Path, source: Opener) -> str:
    """Copy to `place`, which is there in whole or not at all; the sha256 of what was copied."""
    part, digest = place.with_name(f".{place.name}.part"), hashlib.sha256()
    try:
        with source() as stream, open(part, "wb") as target:
            while piece := stream.read(PIECE):
                digest.update(piece)
                target.write(piece)
        os.replace(part, place)
    finally:
        part.unlink(missing_ok=True)
    return digest.hexdigest()


def _is_whole(place: Path, shard: Shard) -> bool:
    if not place.is_file():
        return False
    try:
        verify_shard(place, shard)
    except (DataError, IntegrityError):
        logger.warning("the copy %s of %s is damaged and made again", place, shard.file)
        return False
    return True
