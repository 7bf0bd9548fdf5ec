"""Peak memory of generating, checking and merging data sets of growing size, each step in a process of its own.

    python benchmarks/data/memory.py [--folder DIR] [--samples 50 500 2000] [--mebibytes 1]

A sample is a field of random numbers; nothing is solved, so what is measured is what the data side itself needs. The
peak is VmHWM of Linux, which, other than getrusage, does not count the process that started this one.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from sciml.data import Layout, Simulated, generate
from sciml.data.checking import check
from sciml.data.merging import merge
from sciml.spec import Variable

STEPS = ("nothing", "generate", "check", "merge")


def peak() -> float:
    """Highest memory in use by this process until now, MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


def step(name: str, folder: Path, samples: int, mebibytes: int) -> None:
    """One step on a data set of that size; prints the peak."""
    size = mebibytes << 17
    layout = Layout(outputs=(Variable("u", "1", (size,), ("x",)),), splits={"train": samples})

    def simulate(ids: np.ndarray) -> Simulated:
        return Simulated({"u": np.random.default_rng(int(ids[0])).normal(size=(len(ids), size))})

    if name == "generate":
        generate(folder, layout, simulate, chunk=16)
    elif name == "check":
        assert not [finding for finding in check(folder) if finding.error]
    elif name == "merge":
        merge(folder, folder.with_name("all.h5"))
    print(peak())


def main() -> None:
    """A row per number of samples."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--samples", type=int, nargs="+", default=[50, 500, 2000])
    parser.add_argument("--mebibytes", type=int, default=1)
    parser.add_argument("--step", choices=STEPS)
    given = parser.parse_args()
    if given.step:
        step(given.step, given.folder, given.samples[0], given.mebibytes)
        return
    print("| samples | data, MiB | " + " | ".join(f"{name}, MiB" for name in STEPS) + " |")
    for samples in given.samples:
        place = Path(tempfile.mkdtemp(dir=given.folder))
        peaks = []
        for name in STEPS:
            command = [sys.executable, __file__, "--step", name, "--folder", str(place / "data")]
            command += ["--samples", str(samples), "--mebibytes", str(given.mebibytes)]
            peaks.append(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1]))
        shutil.rmtree(place)
        print(
            f"| {samples} | {samples * given.mebibytes} | " + " | ".join(f"{p:.0f}" for p in peaks) + " |", flush=True
        )


if __name__ == "__main__":
    main()
