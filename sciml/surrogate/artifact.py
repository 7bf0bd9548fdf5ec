"""The folder of a saved surrogate: a manifest with the hash of every file, written whole, verified before use.

```
NAME.sciml/
  manifest.json     what goes in and comes out, ranges seen in training, versions, sha256 of every other file
  model.jaxexport   the compiled function's program, symbolic batch size, CPU and CUDA
  params.npz        every constant of the model, by path
  config.json       the model's kind and options: with params.npz enough to build it again
  selftest.npz      a few inputs and the outputs they must give
  README.md         the call
```
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sciml.errors import CannotCreateError, DataError, IntegrityError, PermissionDeniedError, StorageError

FORMAT, VERSION = "sciml-surrogate", 1
MANIFEST, MODEL, PARAMETERS, CONFIG, SELFTEST, README = (
    "manifest.json",
    "model.jaxexport",
    "params.npz",
    "config.json",
    "selftest.npz",
    "README.md",
)


def manifest_text(manifest: Mapping[str, Any]) -> str:
    """The one spelling of a manifest; its own hash is the entry `digest`, taken over all other entries."""
    body = {key: value for key, value in manifest.items() if key != "digest"}
    digest = hashlib.sha256(_canonical(body).encode()).hexdigest()
    return _canonical({**body, "digest": digest})


def _canonical(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n"


def write_files(folder: Path, manifest: Mapping[str, Any], files: Mapping[str, bytes]) -> None:
    """Write all files and the manifest with their hashes into an empty folder, synchronized to disk."""
    hashes = {
        name: {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)} for name, content in files.items()
    }
    text = manifest_text({**manifest, "files": hashes})
    for name, content in {**files, MANIFEST: text.encode()}.items():
        with open(folder / name, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())


@contextlib.contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """A temporary folder beside `folder`, which takes its place when the block ends without an error.

    What was at `folder` stays untouched until then. Raises CannotCreateError where `folder` is not an
    artifact, PermissionDeniedError and StorageError (with the bytes free) where the disk refuses.
    """
    if folder.exists() and not (folder / MANIFEST).is_file():
        raise CannotCreateError(
            f"{folder} is there already and is not a surrogate",
            expected="a free name, or an artifact to be replaced",
            fix=f"another name than {folder.name}",
        )
    part, old = (folder.with_name(f".{folder.name}.{word}-{os.getpid()}") for word in ("part", "old"))
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        yield part
        _swap(part, folder, old)
    except OSError as error:
        raise _explained(error, folder) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _swap(new: Path, place: Path, old: Path) -> None:
    if not place.exists():
        os.replace(new, place)
        return
    os.replace(place, old)
    try:
        os.replace(new, place)
    except OSError:
        os.replace(old, place)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _explained(error: OSError, folder: Path) -> Exception:
    if isinstance(error, PermissionError):
        return PermissionDeniedError(f"may not write {folder}", reason=error.strerror)
    existing = next((p for p in (folder.parent, *folder.parent.parents) if p.exists()), Path("/"))
    return StorageError(
        f"writing the surrogate {folder} failed",
        got=f"{shutil.disk_usage(existing).free} bytes free",
        reason=error.strerror or str(error),
        fix="free some space; what was there before is unchanged",
    )


def read_verified(folder: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Manifest and content of every file, each checked against its hash before anyone looks inside.

    Raises DataError when `folder` is no surrogate or of a later format, IntegrityError naming the file that
    is missing or altered.
    """
    path = folder / MANIFEST
    try:
        raw = path.read_bytes()
    except OSError as error:
        what = "has no manifest.json" if folder.is_dir() else "is not a folder"
        raise DataError(
            f"{folder} is not a saved surrogate",
            expected="a folder NAME.sciml written by `sciml export` or sciml.surrogate.export",
            got=f"it {what}",
            reason=error.strerror,
        ) from error
    manifest = _verified_manifest(path, raw)
    if manifest.get("format") != FORMAT or manifest.get("version", 0) > VERSION:
        raise DataError(
            f"{folder} has a format that this version cannot read",
            expected=f"{FORMAT} version {VERSION} or earlier",
            got=f"{manifest.get('format')} version {manifest.get('version')}",
            fix="pip install --upgrade sciml",
        )
    return manifest, {name: _verified_file(folder / name, entry) for name, entry in manifest["files"].items()}


def _verified_manifest(path: Path, raw: bytes) -> dict[str, Any]:
    try:
        manifest = json.loads(raw)
        intact = isinstance(manifest, dict) and manifest_text(manifest).encode() == raw
    except ValueError:
        intact, manifest = False, {}
    if not intact:
        raise _altered(path, "its own digest", "a different content")
    return manifest


def _verified_file(path: Path, entry: Mapping[str, Any]) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise _altered(path, f"{entry['bytes']} bytes", "no readable file") from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != entry["sha256"]:
        got = f"{len(content)} bytes, sha256 {digest[:16]}..."
        raise _altered(path, f"{entry['bytes']} bytes, sha256 {entry['sha256'][:16]}...", got)
    return content


def _altered(path: Path, expected: str, got: str) -> IntegrityError:
    return IntegrityError(
        f"{path} is not what was written",
        expected=expected,
        got=got,
        reason="edited by hand, cut short while copying, or damaged on disk",
        fix="copy the artifact again, or give `sciml export` again in the run folder",
    )
