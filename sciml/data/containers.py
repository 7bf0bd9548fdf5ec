"""A user's file of named arrays, npz or HDF5, opened without running anything that is in it."""

from __future__ import annotations

import warnings
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import h5py
import numpy as np

from sciml.data.disk import open_hdf5
from sciml.errors import DataError
from sciml.registry import suggestion

NO_FIELD = {  # numpy's kinds of dtype: (why it is refused, what to do)
    "O": ("objects are refused because loading them can run code", "save it as float64"),
    "c": ("a complex field is two real ones", "store real and imaginary parts as two arrays"),
}
UNIT_ATTRIBUTES = ("unit", "units")


class Container(ABC):
    """Named arrays in a file; closed by the caller (`with`)."""

    magic: ClassVar[bytes]

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> Container:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Release the file."""

    @abstractmethod
    def names(self) -> list[str]:
        """Names of all arrays, sorted; groups of HDF5 as `group/name`."""

    @abstractmethod
    def describe(self, name: str) -> tuple[tuple[int, ...], np.dtype]:
        """Shape and dtype as stored."""

    @abstractmethod
    def load(self, name: str) -> np.ndarray:
        """The whole array as stored."""

    def unit(self, name: str) -> str | None:
        """The unit the file itself states for `name`, if any."""
        del name
        return None

    def require(self, name: str, purpose: str) -> None:
        """DataError listing the names there are when `name` is not among them."""
        names = self.names()
        if name not in names:
            raise DataError(
                f"no array {name!r} in {self.path}, wanted as {purpose}{suggestion(name, names)}",
                expected=f"one of: {', '.join(names) or 'nothing, the file is empty'}",
                got=name,
                fix=f'{purpose}="{names[0]}"' if names else None,
            )


class NpzContainer(Container):
    """`numpy.savez` or `savez_compressed`; pickled objects are refused."""

    magic: ClassVar[bytes] = b"PK"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        try:
            self._file = np.load(path, allow_pickle=False)
        except (OSError, ValueError, zipfile.BadZipFile) as error:
            raise _broken(path, error) from error

    def close(self) -> None:
        """See `Container`."""
        self._file.close()

    def names(self) -> list[str]:
        """See `Container`."""
        return sorted(self._file.files)

    def describe(self, name: str) -> tuple[tuple[int, ...], np.dtype]:
        """See `Container`; reads the array's header only."""
        try:
            with self._file.zip.open(f"{name}.npy") as stream:
                version = np.lib.format.read_magic(stream)
                read = _HEADERS.get(version, np.lib.format.read_array_header_2_0)
                shape, _, dtype = read(stream)
                return shape, dtype
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise _broken(self.path, error) from error

    def load(self, name: str) -> np.ndarray:
        """See `Container`."""
        try:
            return self._file[name]
        except (OSError, ValueError, zipfile.BadZipFile, zlib.error) as error:
            raise _broken(self.path, error) from error


class HDF5Container(Container):
    """An HDF5 file (MATLAB 7.3 and netCDF 4 files are such); virtual data sets must have their sources."""

    magic: ClassVar[bytes] = b"\x89HDF\r\n\x1a\n"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._file = open_hdf5(path)

    def close(self) -> None:
        """See `Container`."""
        self._file.close()

    def names(self) -> list[str]:
        """See `Container`."""
        found: list[str] = []

        def visit(name: str, item: object) -> None:
            if isinstance(item, h5py.Dataset):
                found.append(name)

        self._file.visititems(visit)
        return sorted(found)

    def describe(self, name: str) -> tuple[tuple[int, ...], np.dtype]:
        """See `Container`."""
        stored = self._dataset(name)
        return stored.shape, stored.dtype

    def load(self, name: str) -> np.ndarray:
        """See `Container`."""
        stored = self._dataset(name)
        try:
            return stored[...]
        except OSError as error:
            raise _broken(self.path, error) from error

    def unit(self, name: str) -> str | None:
        """See `Container`: attribute `unit` or `units`."""
        attributes = self._dataset(name).attrs
        texts = (attributes[key] for key in UNIT_ATTRIBUTES if key in attributes)
        return next((t.decode() if isinstance(t, bytes) else str(t) for t in texts), None)

    def _dataset(self, name: str) -> h5py.Dataset:
        stored = self._file[name]
        assert isinstance(stored, h5py.Dataset)
        sources = stored.virtual_sources() if stored.is_virtual else []
        absent = [s.file_name for s in sources if s.file_name != "." and not _beside(self.path, s.file_name)]
        if absent:
            raise DataError(
                f"{name} in {self.path} is put together from files that are missing",
                expected=f"{len(sources)} source files",
                got=f"no {', '.join(sorted(set(absent))[:5])}",
                reason="HDF5 would silently give the fill value in their place",
                fix="copy the source files beside this one",
            )
        return stored


_HEADERS: dict[tuple[int, int], Callable[..., tuple[tuple[int, ...], bool, np.dtype]]] = {
    (1, 0): np.lib.format.read_array_header_1_0
}
CONTAINERS = (NpzContainer, HDF5Container)


def open_container(file: str | Path) -> Container:
    """Open by content, not by name. Raises DataError when the file is missing or of neither kind."""
    path = Path(file)
    if not path.is_file():
        raise DataError(
            f"there is no file {path}",
            expected="an npz or HDF5 file of arrays",
            got="a folder" if path.is_dir() else "nothing",
            fix="a path relative to the folder the command is given in",
        )
    with open(path, "rb") as stream:
        start = stream.read(8)
    kind = next((kind for kind in CONTAINERS if start.startswith(kind.magic)), None)
    if kind is None:
        raise DataError(
            f"{path} is neither an npz nor an HDF5 file",
            expected="a file written by numpy.savez or h5py",
            got=f"{path.stat().st_size} bytes starting with {start!r}",
            reason="an old MATLAB file, a pickle or a text file",
            fix='numpy.savez("data.npz", a=inputs, u=outputs)',
        )
    return kind(path)


def native_dtype(dtype: np.dtype, name: str, path: Path) -> np.dtype:
    """float32 or float64: what `name` is used as; DataError for anything but real numbers.

    float32 and float64 stay, float16 becomes float32, integers float64, other byte orders the native one;
    a warning says so, so that no conversion is silent.
    """
    if dtype.kind not in "fiu":
        reason, fix = NO_FIELD.get(dtype.kind, ("it has no meaning as a field", "save it as float64"))
        raise DataError(
            f"{name} in {path} does not hold real numbers",
            expected="float32 or float64 (float16 and integers are converted)",
            got=f"dtype {dtype}",
            reason=reason,
            fix=fix,
        )
    used = np.dtype("float32") if dtype.kind == "f" and dtype.itemsize <= 4 else np.dtype("float64")
    if dtype != used:
        warnings.warn(f"{path}: {name} is stored as {dtype.str} and used as {used.name}", stacklevel=2)
    return used


def _beside(path: Path, name: str) -> bool:
    return (path.parent / name).is_file() or Path(name).is_file()


def _broken(path: Path, error: Exception) -> DataError:
    objects = "allow_pickle" in str(error)
    return DataError(
        f"{path} cannot be read",
        expected="a whole file of plain number arrays",
        got=f"{path.stat().st_size} bytes; {error}",
        reason="it holds Python objects, and loading them can run code" if objects else "it was cut off or altered",
        fix="save the arrays again as float64" if objects else "copy the file again",
    )
