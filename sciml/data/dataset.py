"""A data set to read from: the same interface over generated shards and over a user's own arrays."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sciml.data import cache, manifest, onefile, remote
from sciml.data.layout import Layout
from sciml.data.loader import Batch, Batches
from sciml.data.shard import Identity, read_ids
from sciml.data.slabs import slabs
from sciml.data.storage import HDF5Storage, Piece, Storage
from sciml.errors import DataError

MEMORY_BYTES = 2 << 30
LEAST_AHEAD, MOST_AHEAD, AHEAD_BYTES = 4, 32, 256 << 20


class Dataset:
    """Samples by name, split and index, as arrays with the sample axis first, in the units of the layout.

    `provenance` says how the data were made. Variables are kept in memory once read, as long as all of
    them together stay below `memory` bytes; otherwise rows are read from disk as they are needed.
    Made by `Dataset.open` and `open_arrays`.
    """

    def __init__(
        self,
        layout: Layout,
        storage: Storage,
        *,
        name: str,
        splits: Mapping[str, np.ndarray] | None = None,
        provenance: Mapping[str, Any] | None = None,
        memory: int = MEMORY_BYTES,
    ) -> None:
        self.layout, self.storage, self.name = layout, storage, name
        self.provenance = dict(provenance or {})
        self._splits = {s: np.asarray(layout.ids(s), np.int64) for s in layout.splits}
        self._splits.update({s: np.asarray(rows, np.int64) for s, rows in (splits or {}).items()})
        self.identity: Identity | None = None
        self._memory = memory
        self._columns: dict[str, np.ndarray] = {}

    @classmethod
    def open(cls, folder: str | Path, *, memory: int = MEMORY_BYTES) -> Dataset:
        """Open generated data; every file is hashed first (again only after a change).

        `folder` may be the one file that `sciml data merge` made of it, or an address in an object store
        (`s3://bucket/data`). Shards are read from copies on this node where it keeps such (`sciml.data.cache`).
        Raises DataError (no data, incomplete, a shard missing, cut off or of another layout) or IntegrityError (a
        shard or the manifest altered), naming the file.
        """
        if not remote.is_remote(folder) and Path(folder).is_file():
            return cls.of_identity(*onefile.verified(Path(folder)), name=str(folder), memory=memory)
        found, places = _found(folder)
        pieces = [_piece(places[shard.file], shard.ids, found.identity) for shard in found.shards]
        return cls.of_identity(found.identity, HDF5Storage(pieces), name=str(folder), memory=memory)

    @classmethod
    def of_identity(cls, identity: Identity, storage: Storage, *, name: str, memory: int = MEMORY_BYTES) -> Dataset:
        """Generated data that were verified before; `identity` is kept."""
        provenance = {**identity.notes, **identity.provenance, "fingerprint": identity.fingerprint}
        dataset = cls(identity.layout, storage, name=name, provenance=provenance, memory=memory)
        dataset.identity = identity
        return dataset

    def __len__(self) -> int:
        return self.layout.samples

    def __repr__(self) -> str:
        splits = ", ".join(f"{name}: {len(rows)}" for name, rows in self._splits.items())
        variables = ", ".join(variable.describe() for _, variable in self.layout)
        return f"Dataset({self.name}; {splits}; {variables})"

    @property
    def splits(self) -> dict[str, np.ndarray]:
        """Rows of each split."""
        return dict(self._splits)

    def rows(self, split: str) -> np.ndarray:
        """Sample rows of one split, int64 (n,); DataError for an unknown one."""
        if split not in self._splits:
            raise DataError(f"no split {split!r} in {self.name}", expected=" | ".join(self._splits), got=split)
        return self._splits[split]

    def read(
        self,
        names: Iterable[str] | None = None,
        *,
        split: str | None = None,
        indices: Sequence[int] | np.ndarray | None = None,
    ) -> Batch:
        """Arrays `name -> (n, *shape)` of all variables or `names`.

        `indices` count within `split`, or over all samples without one; without `indices` all are read.
        Raises DataError for an unknown name, split or index, and for values that are not finite.
        """
        rows = np.arange(len(self)) if split is None else self.rows(split)
        if indices is not None:
            chosen = np.atleast_1d(np.asarray(indices, np.int64))
            if chosen.size and (chosen.min() < 0 or chosen.max() >= len(rows)):
                raise DataError(
                    f"no such sample in {self.name}",
                    expected=f"indices from 0 to {len(rows) - 1}" + (f" in split {split!r}" if split else ""),
                    got=f"{chosen.min()} to {chosen.max()}",
                )
            rows = rows[chosen]
        return self._gather(self._known(names), rows)

    def batches(
        self,
        names: Iterable[str] | None = None,
        *,
        split: str = "train",
        batch_size: int,
        seed: int = 0,
        dtype: str | None = None,
        process: int = 0,
        processes: int = 1,
        threads: int = 1,
        prefetch: int | None = None,
    ) -> Batches:
        """Endless shuffled batches of `split`; `dtype` converts (in the loader's threads).

        `batch_size` is the global one: each of `processes` gets its equal slice. `prefetch` batches are made ahead;
        by default as many as a training hands over at once, unless they are too large for that. See `Batches`.
        """
        wanted = self._known(names)
        if prefetch is None:
            size = 8 * batch_size // processes * sum(self.layout.variable(name).size for name in wanted)
            prefetch = max(LEAST_AHEAD, min(MOST_AHEAD, AHEAD_BYTES // max(size, 1)))
        return Batches(
            lambda rows: self._gather(wanted, rows, dtype),
            self.rows(split),
            batch_size=batch_size,
            seed=seed,
            process=process,
            processes=processes,
            threads=threads,
            prefetch=prefetch,
        )

    def content_hash(self, names: Iterable[str] | None = None, *, split: str | None = None) -> str:
        """sha256 of the values of `names` in sample order, however the samples are spread over files."""
        digest = hashlib.sha256()
        rows = np.arange(len(self)) if split is None else self.rows(split)
        for name in self._known(names):
            digest.update(f"{name} {self.layout.variable(name).shape} {len(rows)};".encode())
            for values in self.slabs(name, rows):
                digest.update(np.ascontiguousarray(values).data)
        return digest.hexdigest()

    def slabs(self, name: str, rows: np.ndarray) -> Iterable[np.ndarray]:
        """`rows` of one variable in pieces of about 64 MiB, in order."""
        for part in slabs(len(rows), 8 * self.layout.variable(name).size):
            yield self._rows(name, rows[part])

    def _known(self, names: Iterable[str] | None) -> tuple[str, ...]:
        if isinstance(names, str):
            names = (names,)
        return self.layout.names if names is None else tuple(self.layout.variable(n).name for n in names)

    def _gather(self, names: tuple[str, ...], rows: np.ndarray, dtype: str | None = None) -> Batch:
        return {name: self._rows(name, rows).astype(dtype or self.layout.dtype, copy=False) for name in names}

    def _rows(self, name: str, rows: np.ndarray) -> np.ndarray:
        if name not in self._columns and self.layout.samples * self.layout.sample_bytes <= self._memory:
            self._columns[name] = self.storage.rows(name, np.arange(len(self)))
        kept = self._columns.get(name)
        return self.storage.rows(name, rows) if kept is None else kept[rows]


def _found(folder: str | Path) -> tuple[manifest.Manifest, dict[str, Path]]:
    """What a verified data set consists of, and where to read its shards."""
    here = cache.node_folder()
    if remote.is_remote(folder):
        found, places = remote.local_shards(str(folder))
    else:
        folder = Path(folder)
        found = manifest.load(folder)
        if here is None:
            manifest.verify(folder, found)
            return found, {shard.file: folder / shard.file for shard in found.shards}
        places = cache.shards_here(folder, found.shards, here)
    manifest.refuse_incomplete(folder, found)
    return found, places


def _piece(path: Path, ids: tuple[int, ...], identity: Identity) -> Piece:
    stored = tuple(int(i) for i in read_ids(path, identity))
    if stored != ids:
        raise DataError(f"{path} holds other samples than the manifest says", expected=ids[:8], got=stored[:8])
    return Piece(path, stored, {v.name: f"{group}/{v.name}" for group, v in identity.layout})
