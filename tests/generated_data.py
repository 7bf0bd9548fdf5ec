"""A small data set for tests: random waves, made by numpy alone, each sample from its own id.

Run as a program it generates into a folder, under `mpiexec` or alone:
`python generated_data.py FOLDER [--samples N] [--chunk N] [--fail-on-rank R] [--blow-up ID] [--kill-after N]
[--kill-rank R] [--shard-each-chunk] [--wait-for N] [--file-bytes N]`.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sciml.data import Coordinate, Layout, Simulated, generate, writer
from sciml.errors import SciMLError
from sciml.spec import Variable

POINTS, TIMES = 16, (0.5, 1.0, 2.0)


def layout(train: int = 12, validation: int = 3, test: int = 5, **changes: Any) -> Layout:
    """u0 (16), u (3, 16) [K], diffusivity [m^2/s], energy [K^2]."""
    values: dict[str, Any] = {
        "inputs": (Variable("u0", "K", (POINTS,), ("x",)),),
        "outputs": (Variable("u", "K", (len(TIMES), POINTS), ("time", "x")),),
        "parameters": (Variable("diffusivity", "m^2/s", role="scalar"),),
        "quantities": (Variable("energy", "K^2", role="scalar"),),
        "coordinates": {
            "x": Coordinate(tuple(np.arange(POINTS) / POINTS), "m", periodic=True, period=1.0),
            "time": Coordinate(TIMES, "s"),
        },
        "splits": {"train": train, "validation": validation, "test": test},
    }
    return Layout(**{**values, **changes})


def places() -> list[tuple[str, str]]:
    """(group, name) of every variable in a file."""
    return [(group, variable.name) for group, variable in layout()]


def sample(number: int) -> dict[str, np.ndarray]:
    """One sample, a function of its id alone."""
    random = np.random.default_rng([7, number])
    u0, diffusivity = random.normal(size=POINTS), random.uniform(0.1, 1.0)
    u = np.stack([u0 * np.exp(-diffusivity * time) for time in TIMES])
    return {"u0": u0, "u": u, "diffusivity": np.array(diffusivity), "energy": np.mean(u[-1] ** 2)}


def simulate(ids: np.ndarray) -> Simulated:
    """What `generate` calls."""
    samples = [sample(int(i)) for i in ids]
    return Simulated({name: np.stack([s[name] for s in samples]) for name in samples[0]})


def expected(rows: range | np.ndarray) -> dict[str, np.ndarray]:
    """What reading these samples must give."""
    return dict(simulate(np.asarray(rows)).arrays)


def make(folder: Path, **options: Any) -> None:
    """A finished data set in `folder`."""
    wanted = options.pop("layout", None) or layout()
    generate(folder, wanted, simulate, **{"chunk": 4, "provenance": {"seed": 7}, **options})


def wait_for_chunks(folder: Path, count: int, seconds: float = 20.0) -> None:
    """Compute as long as it takes the other ranks to finish `count` chunks."""
    end = time.monotonic() + seconds
    while not folder.is_dir() or len(list(folder.iterdir())) < count:
        if time.monotonic() > end:
            raise TimeoutError(f"the other ranks did not finish {count} chunks")
        time.sleep(0.01)


def program(arguments: argparse.Namespace) -> None:
    """Generate as the command line says, with the faults it asks for."""
    rank = int(os.environ.get("PMI_RANK", "0"))
    calls, done = [], arguments.folder.with_name(f"{arguments.folder.name}-done")
    if arguments.shard_each_chunk:
        writer.SHARD_SECONDS = 0.0

    def faulty(ids: np.ndarray) -> Simulated:
        calls.append(ids)
        if arguments.file_bytes:  # a full disk, once MPI has its own files
            resource.setrlimit(resource.RLIMIT_FSIZE, (arguments.file_bytes,) * 2)
        if rank == arguments.fail_on_rank:
            raise ValueError("the solver met a wall")
        if len(calls) > arguments.kill_after and arguments.kill_rank in (rank, None):
            os._exit(9)
        if rank == 0 and len(calls) == 1 and arguments.wait_for:
            wait_for_chunks(done, arguments.wait_for)
        elif arguments.wait_for:
            done.mkdir(exist_ok=True)
            (done / f"{ids[0]}").touch()
        arrays: Mapping[str, np.ndarray] = simulate(ids).arrays
        arrays["u"][ids == arguments.blow_up, 1:] = np.inf
        return Simulated(arrays)

    counts = layout(train=arguments.samples - 8)
    made = generate(arguments.folder, counts, faulty, chunk=arguments.chunk, provenance={"seed": 7})
    if rank == 0:
        print(made)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--chunk", type=int, default=4)
    parser.add_argument("--fail-on-rank", type=int, default=-1)
    parser.add_argument("--blow-up", type=int, default=-1)
    parser.add_argument("--kill-after", type=int, default=1_000_000)
    parser.add_argument("--kill-rank", type=int)
    parser.add_argument("--shard-each-chunk", action="store_true")
    parser.add_argument("--wait-for", type=int, default=0)
    parser.add_argument("--file-bytes", type=int, default=0)
    try:
        program(parser.parse_args())
    except Exception as error:  # as the command line does: 70 for what is not ours
        print(error, file=sys.stderr)
        sys.exit(error.exit_code if isinstance(error, SciMLError) else 70)
