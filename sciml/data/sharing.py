"""Which rank computes what: shares that get smaller, each taken by the rank that is free first.

A share is taken by making a file that must not exist before. Every file system that ranks can share keeps that
promise, and unlike a message to another rank it needs nobody's attention while all of them compute.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from sciml.data import disk

FOLDER = ".taken"


def shares(count: int, ranks: int) -> list[tuple[int, int]]:
    """`count` pieces of work as ranges [first, last) that get smaller and end with single ones.

    Guided self-scheduling (Polychronopoulos and Kuck, IEEE Trans. Computers 36, 1987), with half its share per rank.
    """
    found, start = [], 0
    while start < count:
        length = max(1, (count - start) // (2 * ranks))
        found.append((start, start + length))
        start += length
    return found


def begin(folder: Path, ranks: int) -> None:
    """Before anything is taken, on one rank: forget what a killed run took. Raises StorageError as any writing."""
    end(folder)
    if ranks > 1:
        try:
            (folder / FOLDER).mkdir()
        except OSError as error:
            raise disk.explain(error, folder / FOLDER) from error


def end(folder: Path) -> None:
    """When all ranks are done, on one of them."""
    shutil.rmtree(folder / FOLDER, ignore_errors=True)


def taken(folder: Path, count: int, rank: int, ranks: int) -> Iterator[tuple[int, int]]:
    """The shares of this rank, in increasing order: share number `rank` first, then whatever is free next."""
    parts = shares(count, ranks)
    if ranks == 1:
        yield from parts
        return
    yield from parts[rank : rank + 1]
    free = list(range(ranks, len(parts)))
    while free:
        gone = {int(name) for name in os.listdir(folder / FOLDER)}
        free = [number for number in free if number not in gone]
        mine = next((number for number in free if _take(folder / FOLDER / f"{number}")), None)
        if mine is None:
            return
        yield parts[mine]
        free = free[free.index(mine) + 1 :]


def _take(path: Path) -> bool:
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        return False
    except OSError as error:
        raise disk.explain(error, path) from error
    return True
