"""Speed of writing shards against a plain sequential write of the same bytes, in turn on the same disk.

    python benchmarks/data/shard_writing.py [--folder DIR] [--rounds N] [--mebibytes N]

Both end with fsync. The shard side is what a rank does after its samples are computed: collecting, HDF5 with a checksum
per chunk, sha256, manifest entry, rename. The plain side writes the numbers as one file, in pieces of 4 MiB.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from sciml.data import Layout
from sciml.data.layout import fingerprint
from sciml.data.shard import Identity
from sciml.data.writer import ShardWriter
from sciml.spec import Variable

PIECE = 1 << 22
CASES = {
    "1D, 21 x 1024": (21, 1024),
    "2D, 21 x 128 x 128": (21, 128, 128),
    "3D, 5 x 64 x 64 x 64": (5, 64, 64, 64),
}
AXES = ("time", "x", "y", "z")


def plain(folder: Path, values: np.ndarray) -> float:
    """Seconds to write the bytes of `values` into one file."""
    start = time.perf_counter()
    rest = memoryview(values.reshape(-1).view(np.uint8).data)
    with open(folder / "plain.bin", "wb", buffering=0) as stream:
        while len(rest):
            rest = rest[stream.write(rest[:PIECE]) :]
        os.fsync(stream.fileno())
    return time.perf_counter() - start


def shards(folder: Path, values: np.ndarray) -> float:
    """Seconds to write `values` as shards, 16 samples at a time as generation does."""
    variable = Variable("u", "m", values.shape[1:], AXES[: values.ndim - 1])
    layout = Layout(outputs=(variable,), splits={"train": len(values)})
    start = time.perf_counter()
    writer = ShardWriter(folder, "shard-001-0000", Identity(layout, {}, {}, fingerprint(layout, {})))
    for first in range(0, len(values), 16):
        ids = range(first, min(first + 16, len(values)))
        writer.add(ids, {"u": values[first : first + 16]})
    writer.close_shard()
    return time.perf_counter() - start


def measure(folder: Path, shape: tuple[int, ...], mebibytes: int, rounds: int) -> str:
    """One line of the table: median speeds and the median of the ratios of neighbors."""
    samples = max(16, (mebibytes << 20) // (8 * int(np.prod(shape))))
    values = np.random.default_rng(0).normal(size=(samples, *shape))
    speeds: dict[str, list[float]] = {"plain": [], "shards": []}
    for number in range(rounds + 1):
        for name, write in (
            (("plain", plain), ("shards", shards)) if number % 2 else (("shards", shards), ("plain", plain))
        ):
            place = Path(tempfile.mkdtemp(dir=folder))
            seconds = write(place, values)
            shutil.rmtree(place)
            if number:  # the first round warms up
                speeds[name].append(values.nbytes / seconds / 1e6)
    ratios = [b / a for a, b in zip(speeds["plain"], speeds["shards"], strict=True)]
    fast, slow = (statistics.median(speeds[name]) for name in ("shards", "plain"))
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    return f"{values.nbytes / 2**20:.0f} MiB | {slow:.0f} | {fast:.0f} | {statistics.median(ratios):.2f} ({spread})"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--mebibytes", type=int, default=256)
    given = parser.parse_args()
    print("| sample | size | plain write, MB/s | shards, MB/s | ratio (least to greatest) |\n|---|---|---|---|---|")
    for name, shape in CASES.items():
        print(f"| {name} | {measure(given.folder, shape, given.mebibytes, given.rounds)} |", flush=True)


if __name__ == "__main__":
    main()
