"""A small data set for tests: random waves, made by numpy alone, each sample from its own id.

Run as a program it generates into a folder, under `mpiexec` or alone:
`python generated_data.py FOLDER [--samples N] [--chunk N] [--fail-on-rank R] [--blow-up ID] [--kill-after N]`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sciml.data import Coordinate, Layout, Simulated, generate
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


def program(arguments: argparse.Namespace) -> None:
    """Generate as the command line says, with the faults it asks for."""
    rank = int(os.environ.get("PMI_RANK", "0"))
    calls = []

    def faulty(ids: np.ndarray) -> Simulated:
        calls.append(ids)
        if rank == arguments.fail_on_rank:
            raise ValueError("the solver met a wall")
        if len(calls) > arguments.kill_after:
            os._exit(9)
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
    try:
        program(parser.parse_args())
    except Exception as error:  # as the command line does: 70 for what is not ours
        print(error, file=sys.stderr)
        sys.exit(error.exit_code if isinstance(error, SciMLError) else 70)
