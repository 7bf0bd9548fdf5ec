"""Where the numbers of a data set are: in HDF5 files read row by row, or in memory."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import h5py
import numpy as np

from sciml.data.disk import open_hdf5
from sciml.data.shard import refuse_non_finite
from sciml.errors import DataError


class Storage(Protocol):
    """Rows of named arrays; row i is sample i of the data set."""

    def rows(self, name: str, indices: np.ndarray) -> np.ndarray:
        """Samples `indices` (any order, repeats allowed) of variable `name`: (len(indices), *shape)."""
        ...


@dataclass(frozen=True)
class ArrayStorage:
    """Arrays in memory, samples first."""

    arrays: Mapping[str, np.ndarray]

    def rows(self, name: str, indices: np.ndarray) -> np.ndarray:
        """See `Storage`."""
        return self.arrays[name][indices]


@dataclass(frozen=True)
class Piece:
    """One HDF5 file: the sample ids of its rows, and where each variable is: data set and, maybe, channel."""

    path: Path
    ids: tuple[int, ...]
    datasets: Mapping[str, str]
    channels: Mapping[str, int] = field(default_factory=dict)

    def shape(self, name: str, stored: h5py.Dataset) -> tuple[int, ...]:
        """Shape of one sample of `name`."""
        return stored.shape[1:-1] if name in self.channels else stored.shape[1:]

    def slice(self, name: str, stored: h5py.Dataset, first: int, last: int) -> np.ndarray:
        """Rows first, ..., last of `name`."""
        if name in self.channels:
            return stored[first : last + 1, ..., self.channels[name]]
        return stored[first : last + 1]


class HDF5Storage:
    """Samples spread over HDF5 files, which are opened on first use, once per process.

    Every value read is checked to be finite: DataError names file, sample and variable.
    """

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self.pieces = tuple(pieces)
        total = sum(len(piece.ids) for piece in self.pieces)
        self._piece_of, self._row_of = np.zeros(total, np.int64), np.zeros(total, np.int64)
        for number, piece in enumerate(self.pieces):
            ids = np.asarray(piece.ids, np.int64)
            self._piece_of[ids] = number
            self._row_of[ids] = np.arange(len(ids))
        self._open: dict[tuple[int, int], h5py.File] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Without file handles, which do not survive a copy to another process."""
        return {**self.__dict__, "_open": {}}

    def rows(self, name: str, indices: np.ndarray) -> np.ndarray:
        """See `Storage`. Consecutive rows of a file are read at once."""
        parts = [np.flatnonzero(self._piece_of[indices] == number) for number in range(len(self.pieces))]
        out: np.ndarray | None = None
        for number, places in enumerate(parts):
            stored = self._dataset(number, name)
            if out is None:
                out = np.empty((len(indices), *self.pieces[number].shape(name, stored)), stored.dtype.newbyteorder("="))
            if len(places):
                values = self._read(number, stored, name, self._row_of[indices[places]])
                out[places] = values
        if out is None:
            raise DataError("a data set without files", got=f"no shard holds {name!r}")
        return out

    def _read(self, number: int, stored: h5py.Dataset, name: str, rows: np.ndarray) -> np.ndarray:
        piece = self.pieces[number]
        wanted, back = np.unique(rows, return_inverse=True)
        runs = np.split(wanted, np.flatnonzero(np.diff(wanted) != 1) + 1)
        try:
            values = np.concatenate([piece.slice(name, stored, int(run[0]), int(run[-1])) for run in runs])
        except OSError as error:
            raise DataError(f"{name} in {piece.path} cannot be read", reason=str(error)) from error
        refuse_non_finite(name, values, np.asarray(piece.ids)[wanted], str(piece.path))
        return values[back]

    def _dataset(self, number: int, name: str) -> h5py.Dataset:
        key = (os.getpid(), number)
        if key not in self._open:
            self._open[key] = open_hdf5(self.pieces[number].path)
        found = self._open[key][self.pieces[number].datasets[name]]
        assert isinstance(found, h5py.Dataset)  # checked when the data set was opened
        return found
