"""Files and data sets in object stores (`s3://bucket/key`, `gs://`, `https://`) through fsspec: copied here, then read.

HDF5 reads in many small pieces, each of which would be a request; one copy of the whole is faster and can be verified.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sciml.data import cache, disk, manifest
from sciml.errors import DataError, StorageError

SEPARATOR = "://"
TAGS = ("ETag", "etag", "md5Hash", "mtime", "LastModified", "created")
EXTRAS = {"s3": "s3", "s3a": "s3"}
"""Protocol -> the extra of sciml that brings what fsspec needs for it."""


def is_remote(name: str | Path) -> bool:
    """Whether a name is an address and no path."""
    return SEPARATOR in str(name)


def local_file(address: str) -> Path:
    """A verified copy of a file, made again when the store holds a newer one or when the copy is damaged.

    Raises DataError (no such object, no access, a library that is missing), StorageError (no room here).
    """
    system, key = _opened(address)
    with _explained(address):
        size = system.size(key)
    folder = _folder() / hashlib.sha256(f"{address} {version(address)}".encode()).hexdigest()[:32]
    place, proof = folder / key.rsplit("/", 1)[-1], folder / "sha256"
    with _explained(address), _room(folder, address):
        folder.mkdir(parents=True, exist_ok=True)
        with cache.alone(place):
            if place.is_file() and proof.is_file() and disk.sha256(place) == proof.read_text():
                return place
            found = cache.write(place, lambda: system.open(key, "rb"))
            if place.stat().st_size != size:
                place.unlink()
                raise DataError(f"{address} came incomplete", expected=f"{size} bytes", fix="try again")
            proof.write_text(found)
    return place


def version(address: str) -> str:
    """What the store says about the content of an object: its tag, or else the time of its last change; and its size.

    Raises as `local_file` does.
    """
    system, key = _opened(address)
    with _explained(address):
        facts = system.info(key)
    tag = next((facts[name] for name in TAGS if facts.get(name) is not None), "")
    return f"{str(tag).strip(chr(34))} {facts.get('size')}"


def local_shards(address: str) -> tuple[manifest.Manifest, dict[str, Path]]:
    """The manifest of a data set in a store, and where verified copies of its shards are on this node.

    Raises as `local_file` does, and IntegrityError for a shard that is not what the manifest says.
    """
    address = address.rstrip("/")
    found = manifest.load(local_file(f"{address}/{manifest.FILE}").parent)
    system, key = _opened(address)
    folder, places = _folder(), {}
    for shard in found.shards:
        name = f"{address}/{shard.file}"
        with _explained(name), _room(folder, name):
            places[shard.file] = cache.copied(shard, lambda path=f"{key}/{shard.file}": system.open(path, "rb"), folder)
    return found, places


def _opened(address: str) -> tuple[Any, str]:
    """The store of an address and the key within it."""
    import fsspec  # a tenth of a second, which local data do not need

    protocol = address.split(SEPARATOR)[0]
    extra = EXTRAS.get(protocol)
    try:
        return fsspec.core.url_to_fs(address)
    except ImportError as error:
        raise DataError(
            f"{address} cannot be read: a library is missing",
            expected=f"what fsspec needs for {protocol}{SEPARATOR}",
            got=str(error),
            fix=f"pip install 'sciml[{extra}]'" if extra else "install the library that is named above",
        ) from error
    except ValueError as error:
        raise DataError(
            f"{address} has an unknown protocol", expected="s3://, gs://, https://, ...", got=str(error)
        ) from error


def _folder() -> Path:
    """Where copies are kept: on the node where there is such a folder, in the user's cache otherwise."""
    here = cache.node_folder()
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "sciml" / "data" if here is None else here


@contextlib.contextmanager
def _explained(address: str) -> Iterator[None]:
    """What a store says, as errors of ours; its libraries raise OSError for nearly all."""
    try:
        yield
    except FileNotFoundError as error:
        raise DataError(f"there is no object {address}", expected="an object in an existing bucket") from error
    except PermissionError as error:
        raise DataError(
            f"may not read {address}",
            got=str(error),
            fix="give the credentials that the store's own tools use, for S3 AWS_PROFILE or AWS_ACCESS_KEY_ID",
        ) from error
    except OSError as error:
        raise DataError(f"{address} cannot be read", got=f"{type(error).__name__}: {error}") from error


@contextlib.contextmanager
def _room(folder: Path, address: str) -> Iterator[None]:
    """A full disk on this side, told apart from what the store says."""
    try:
        yield
    except OSError as error:
        if error.errno not in disk.FULL:
            raise
        raise StorageError(
            f"no room for a copy of {address}",
            got=f"{folder}: {error.strerror}",
            fix=f"export {cache.VARIABLE}=/a/larger/disk",
        ) from error
