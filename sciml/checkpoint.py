"""Checkpoints by orbax, each proven by a manifest of hashes before it counts, and again before it is used.

Orbax restores an array file with a flipped bit without a word; the manifest notices. A checkpoint is written
in a hidden staging folder, hashed there, and moved into place in one step, so whatever stands in place was
once whole: a folder that is not whole now is damaged, never half-written.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from jax.experimental import multihost_utils
from jax.sharding import SingleDeviceSharding

from sciml.errors import ConfigError, DataError, IntegrityError, NumericalError, SciMLError, StorageError
from sciml.runfolder import disk_full, explain, explained, sync_folder, write_json
from sciml.types import PyTree

MANIFEST = "manifest.json"
STAGING = ".staging"
TRASH = ".trash"
FORMAT = 1
T = TypeVar("T")
Shapes: TypeAlias = Mapping[str, str]
"""Name of an array -> its dtype and shape in words."""
Choice: TypeAlias = Callable[[Shapes, Shapes], Mapping[str, str]]
"""(arrays of a checkpoint, arrays of a template) -> name in the template: name in the checkpoint."""
logger = logging.getLogger(__name__)


class Checkpoints:
    """The checkpoints of one run, `<folder>/<step>`; the newest `keep` are kept.

    Saving copies the state and returns; a background thread writes it. A failure there is raised by the next
    `save` or `wait`. Only one process may use a folder (see `FolderLock`). Use `close`, or a `with` block.
    """

    def __init__(self, folder: Path | str, keep: int = 3) -> None:
        self.folder = Path(folder).absolute()
        self.keep = keep
        self.last_good: int | None = None
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self._pending: Future[None] | None = None
        _quiet_orbax()

    def steps(self) -> list[int]:
        """Steps that have a checkpoint in place, oldest first; their content is not verified."""
        if not self.folder.is_dir():
            return []
        return sorted(int(p.name) for p in self.folder.iterdir() if p.name.isdigit() and p.is_dir())

    def save(self, step: int, state: PyTree, meta: dict[str, Any] | None = None) -> None:
        """Start saving `state` (arrays and random keys) with `meta` (plain JSON) as checkpoint `step`.

        Raises NumericalError for a state that is not finite, and StorageError or another error for a failure of
        the save before this one. Older checkpoints go only after the new one is in place and verified.
        """
        self.save_arrays(step, host_arrays(state), meta)

    def save_arrays(self, step: int, arrays: dict[str, np.ndarray], meta: dict[str, Any] | None = None) -> None:
        """Like `save`, for a state that `host_arrays` has brought to the host; it must not be changed afterwards."""
        self.wait()
        _refuse_non_finite(step, arrays, self.last_good)
        text = json.dumps(meta or {}, allow_nan=False)
        self._pending = self._writer.submit(self._write, step, arrays, json.loads(text))

    def wait(self) -> None:
        """Return when the last save is in place; raises what went wrong with it."""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()

    def close(self) -> None:
        """Finish the last save and stop the background thread."""
        try:
            self.wait()
        finally:
            self._writer.shutdown()

    def __enter__(self) -> Checkpoints:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def restore(self, template: T, only: int | None = None, choose: Choice | None = None) -> tuple[T, dict[str, Any]]:
        """State and meta of the newest checkpoint that is intact; damaged ones are skipped with a warning.

        `template` is a state of the same structure; arrays come back with its dtypes, shapes and devices.
        `only`: this step and no other. `choose`: which arrays are read where the structures may differ; those that it
        leaves out stay as in the template, and no others of the checkpoint are asked for. Raises DataError (no
        checkpoint), IntegrityError (none is intact), ConfigError (intact, but of another structure, shape or dtype
        than the template).
        """
        self.wait()
        damaged: dict[int, str] = {}
        for step in reversed(self.steps() if only is None else [only]):
            try:
                manifest = verify(self.folder / str(step))
                state = _restored(self.folder / str(step), manifest, template, choose)
            except IntegrityError as error:
                damaged[step] = error.what
                logger.warning("checkpoint %d is damaged and is skipped: %s", step, error.what)
                continue
            self.last_good = step
            if damaged:
                logger.warning("continuing from checkpoint %d instead of %d", step, max(damaged))
            return state, manifest["meta"]
        raise _nothing_to_restore(self.folder, damaged)

    def newest(self) -> int | None:
        """The newest checkpoint that is intact, None where there is none at all; damaged ones as in `restore`."""
        self.wait()
        damaged: dict[int, str] = {}
        for step in reversed(self.steps()):
            try:
                verify(self.folder / str(step))
            except IntegrityError as error:
                damaged[step] = error.what
                continue
            for other, what in damaged.items():
                logger.warning("checkpoint %d is damaged and is skipped: %s", other, what)
            return step
        if damaged:
            raise _nothing_to_restore(self.folder, damaged)
        return None

    def _write(self, step: int, arrays: dict[str, np.ndarray], meta: dict[str, Any]) -> None:
        """Background: stage, hash, move into place, remove what is too old."""
        staged, final = self.folder / STAGING / str(step), self.folder / str(step)
        size = sum(array.nbytes for array in arrays.values())
        with explained(final, size):
            shutil.rmtree(self.folder / STAGING, ignore_errors=True)
            shutil.rmtree(self.folder / TRASH, ignore_errors=True)
            staged.parent.mkdir(parents=True)
            _refuse_full_disk(staged.parent, size)
            _write_orbax(staged, arrays, size)
            write_json(staged / MANIFEST, _manifest(staged, step, arrays, meta))
            self._discard(final)
            staged.rename(final)
            sync_folder(self.folder)
            self.last_good = step
            others = [other for other in self.steps() if other != step]  # a step done again may not be the last
            for old in others[: max(len(others) - self.keep + 1, 0)]:
                self._discard(self.folder / str(old))

    def _discard(self, folder: Path) -> None:
        """Remove a checkpoint by renaming it first, so that it never stands half-deleted in its place."""
        if folder.exists():
            trash = self.folder / TRASH
            trash.mkdir(exist_ok=True)
            folder.rename(trash / folder.name)
            shutil.rmtree(trash)


def noted(checkpoints: Checkpoints) -> dict[str, Any]:
    """The meta of the newest checkpoint whose manifest is intact, {} if there is none; its arrays are not looked at."""
    for step in reversed(checkpoints.steps()):
        with contextlib.suppress(IntegrityError):
            return _read_manifest(checkpoints.folder / str(step))["meta"]
    return {}


def verify(folder: Path) -> dict[str, Any]:
    """The manifest of a checkpoint whose files all have their recorded hash; IntegrityError otherwise."""
    manifest = _read_manifest(folder)
    found = _hashes(folder)
    for name, expected in manifest["files"].items():
        if found.get(name) != expected:
            state = "has been altered" if name in found else "is missing"
            raise IntegrityError(
                f"{folder / name} {state}",
                expected=f"sha256 {expected}",
                got=found.get(name),
                reason="a damaged disk or an interrupted copy",
            )
    return manifest


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_text("utf-8"))
        digest = manifest.pop("digest")
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise IntegrityError(f"{path} cannot be read", got=f"{type(error).__name__}: {error}") from None
    if digest != _digest(manifest):
        raise IntegrityError(f"{path} has been altered", expected=digest, got=_digest(manifest))
    return manifest


def _manifest(folder: Path, step: int, arrays: dict[str, np.ndarray], meta: dict[str, Any]) -> dict[str, Any]:
    facts = {name: {"shape": list(a.shape), "dtype": str(a.dtype)} for name, a in arrays.items()}
    content = {"format": FORMAT, "step": step, "meta": meta, "arrays": facts, "files": _hashes(folder)}
    return {**content, "digest": _digest(content)}


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _hashes(folder: Path) -> dict[str, str]:
    """sha256 of every file under `folder` but the manifest."""
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.name != MANIFEST)
    result = {}
    for path in files:
        with path.open("rb") as file:
            result[path.relative_to(folder).as_posix()] = hashlib.file_digest(file, "sha256").hexdigest()
    return result


def _refuse_full_disk(folder: Path, size: int) -> None:
    """Before orbax finds out, which leaves half a checkpoint and stray messages behind."""
    if shutil.disk_usage(folder).free < size:
        raise disk_full(folder, "not started", size)


def _write_orbax(folder: Path, arrays: dict[str, np.ndarray], size: int) -> None:
    try:
        with _orbax() as checkpointer:
            checkpointer.save(folder, args=ocp.args.StandardSave(arrays))
    except OSError as error:
        raise explain(error, folder, size) from error
    except (ValueError, RuntimeError) as error:  # tensorstore reports a full disk as a ValueError with a text
        text = str(error)
        if any(sign in text for sign in ("RESOURCE_EXHAUSTED", "File too large", "No space left", "quota")):
            raise disk_full(folder, text.splitlines()[0][-160:], size) from error
        raise StorageError(f"cannot write {folder}", got=text.splitlines()[0]) from error


def _orbax() -> ocp.Checkpointer:
    """For this process alone: in a job of several, orbax would wait for the others in a barrier."""
    options = ocp.options.MultiprocessingOptions()
    if jax.process_count() > 1:
        here = jax.process_index()
        options = ocp.options.MultiprocessingOptions(here, {here}, f"process{here}")
    handler = ocp.StandardCheckpointHandler(multiprocessing_options=options)
    return ocp.Checkpointer(handler, multiprocessing_options=options)


def _restored(folder: Path, manifest: dict[str, Any], template: T, choose: Choice | None = None) -> T:
    names, leaves, structure = _named_leaves(template)
    wanted = {name: _host(leaf) for name, leaf in zip(names, leaves, strict=True)}
    then = {name: f"{facts['dtype']}{facts['shape']}" for name, facts in manifest["arrays"].items()}
    now = {name: f"{array.dtype}{list(array.shape)}" for name, array in wanted.items()}
    sources = {name: name for name in names} if choose is None else choose(then, now)
    chosen = {name: then[source] for name, source in sources.items() if source in then}
    _refuse_other_structure(folder, then if choose is None else chosen, {name: now[name] for name in sources})
    blank = {name: np.empty(facts["shape"], facts["dtype"]) for name, facts in manifest["arrays"].items()}
    try:
        with _orbax() as checkpointer:
            arrays = checkpointer.restore(folder, args=ocp.args.StandardRestore(blank))
    except Exception as error:  # orbax raises many kinds; the hashes were right, so this is an old or foreign file
        raise IntegrityError(f"{folder} cannot be read by orbax", got=str(error).splitlines()[0]) from error
    placed = [
        _placed(arrays[sources[n]], leaf) if n in sources else leaf for n, leaf in zip(names, leaves, strict=True)
    ]
    return jax.tree.unflatten(structure, placed)


def these(stored: Shapes, wanted: Shapes) -> dict[str, str]:
    """A choice for `Checkpoints.restore`: all arrays of the template, whatever else there is."""
    del stored
    return {name: name for name in wanted}


def _refuse_other_structure(folder: Path, then: Shapes, now: Shapes) -> None:
    different = sorted(name for name in now.keys() | then.keys() if now.get(name) != then.get(name))
    if different:
        lines = [f"{n}: saved {then.get(n, 'nothing')}, now {now.get(n, 'nothing')}" for n in different[:5]]
        more = [f"... and {len(different) - 5} more"] if len(different) > 5 else []
        raise ConfigError(
            f"{folder} holds another state than this run has",
            expected="the same arrays with the same shapes and dtypes",
            got="; ".join([*lines, *more]),
            reason="the model, its precision or the optimizer was changed after the run had started",
            fix="undo the change, or start a new run with `run: runs/<new name>`",
        )


def _named_leaves(tree: PyTree) -> tuple[list[str], list[Any], Any]:
    pairs, structure = jax.tree_util.tree_flatten_with_path(tree)
    names = [jax.tree_util.keystr(path, simple=True, separator="/") for path, _ in pairs]
    return names, [leaf for _, leaf in pairs], structure


def host_arrays(tree: PyTree) -> dict[str, np.ndarray]:
    """Copies of all arrays of a state, by name. In a job of several processes all call this together."""
    names, leaves, _ = _named_leaves(tree)
    return {name: np.array(_host(leaf), copy=True) for name, leaf in zip(names, leaves, strict=True)}


def host(tree: T) -> T:
    """The tree with copies on the host, keys left as they are; called by all processes of a job together."""
    return jax.tree.map(lambda leaf: leaf if _is_key(leaf) else np.array(_host(leaf), copy=True), tree)


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _host(leaf: Any) -> np.ndarray:
    values = jax.random.key_data(leaf) if _is_key(leaf) else leaf
    if isinstance(values, jax.Array) and not (values.is_fully_addressable or values.is_fully_replicated):
        return np.asarray(multihost_utils.process_allgather(values, tiled=True))
    return np.asarray(values)


def _placed(array: np.ndarray, like: Any) -> Any:
    """The array with the kind, dtype and devices of `like`."""
    if not isinstance(like, jax.Array):
        return np.asarray(array)
    if _is_key(like):
        return jax.random.wrap_key_data(jnp.asarray(array), impl=jax.random.key_impl(like))
    if isinstance(like.sharding, SingleDeviceSharding):
        return jnp.array(array)  # bound to no device, so that a step over more devices may spread it
    return jax.device_put(array, like.sharding)


def _refuse_non_finite(step: int, arrays: dict[str, np.ndarray], last_good: int | None) -> None:
    bad = [n for n, a in arrays.items() if np.issubdtype(a.dtype, np.inexact) and not np.isfinite(a).all()]
    if bad:
        raise NumericalError(
            f"the state at step {step} is not finite and is not saved",
            got=f"NaN or infinity in {', '.join(bad[:5])}",
            reason="the training diverged",
            fix=f"lower the learning rate and continue from checkpoint {last_good}",
        )


def _nothing_to_restore(folder: Path, damaged: dict[int, str]) -> SciMLError:
    if not damaged:
        return DataError(f"no checkpoint in {folder}", fix="train first")
    return IntegrityError(
        f"every checkpoint in {folder} is damaged",
        got="; ".join(f"{step}: {text}" for step, text in damaged.items()),
        reason="a damaged disk or an interrupted copy",
        fix="bring the folder back from a backup, or remove it to train again from the start",
    )


def _quiet_orbax() -> None:
    """Orbax logs each failure with pages of tracebacks; here a failure is raised, once and explained."""
    absl = logging.getLogger("absl")
    if _not_from_orbax not in absl.filters:
        absl.addFilter(_not_from_orbax)


def _not_from_orbax(record: logging.LogRecord) -> bool:
    return "orbax" not in record.pathname
