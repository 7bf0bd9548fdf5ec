"""One sample over ranks against one process: wall time per step, ratio by grid size.

    python benchmarks/ranks/one_sample.py                                # the table: starts all runs below, in turn
    mpiexec -n 2 python benchmarks/ranks/one_sample.py spectral 512 mpi4py    # one of them

Every process is kept on one core of its own. A time per step is (t_3k - t_k) / 2k, of the least times of some repeats,
so that what comes once per solution (the estimate of the stable step, reading the result) drops out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ALONE = "solve"
CONTENDERS = ((ALONE, 1), ("serial", 1), ("mpi4py", 1), ("mpi4py", 2), ("mpi4jax", 2), ("jax", 2))
SIZES = {"spectral": (128, 256, 512, 1024), "walls": (256, 512, 1024, 2048)}
STEPS = {128: 40, 256: 20, 512: 6, 1024: 2, 2048: 2}
REPEATS = 4


def measure(case: str, size: int, kind: str) -> float:
    """Seconds per step of one contender; the slowest rank counts."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    from sciml import registry
    from sciml.boundary import dirichlet
    from sciml.domain import Box, Grid
    from sciml.equations import Burgers, NavierStokesVorticity
    from sciml.problem import make_problem
    from sciml.solvers import Etdrk4, Rk4, solve
    from sciml.solvers.decomposed import solve_over_ranks

    def field(x):
        return jnp.sin(2 * jnp.pi * x[0]) * jnp.sin(2 * jnp.pi * x[1])

    is_spectral = case == "spectral"
    box = Box((0.0, 0.0), (1.0, 1.0), (is_spectral, is_spectral))
    if is_spectral:
        equation = NavierStokesVorticity(viscosity=1e-4, drag=0.0)
        problem = make_problem(equation, box, initial={"omega": field}, horizon=1.0)
    else:
        faces = {face: dirichlet(0.0) for face in box.faces}
        problem = make_problem(Burgers(viscosity=1e-4), box, initial={"u": field}, boundary=faces, horizon=1.0)
    grid, step = Grid(box, (size, size)), 0.05 / size
    method = Etdrk4 if is_spectral else Rk4
    over = None if kind == ALONE else registry.load("communicator", kind)()

    def run(count: int) -> float:
        started, end = time.perf_counter(), STEPS[size] * step
        chosen = method(end / count)
        if over is None:
            jax.block_until_ready(solve(problem, grid, chosen, times=[end]).fields)
        else:
            solve_over_ranks(problem, grid, chosen, times=[end], over=over)
        return time.perf_counter() - started

    few, many = STEPS[size], 3 * STEPS[size]
    run(few)
    times = np.asarray([(run(few), run(many)) for _ in range(REPEATS)]).min(axis=0)
    seconds = float(times[1] - times[0]) / (many - few)
    return max(map(float, over.said(str(seconds)))) if over is not None else seconds


def pinned(ranks: int, kind: str) -> list[str]:
    """The beginning of a command: mpiexec if need be, one core per process, or `ranks` cores for devices of jax."""
    if kind in ("mpi4py", "mpi4jax"):
        return [str(shutil.which("mpiexec")), "-n", str(ranks), sys.executable, __file__]
    return ["taskset", "-c", f"0-{ranks - 1}", sys.executable, __file__]


def started(case: str, size: int, kind: str, ranks: int) -> float | None:
    """One contender in processes of its own; None where its package is missing."""
    flags = f"--xla_force_host_platform_device_count={ranks if kind == 'jax' else 1}"
    variables = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    command = [*pinned(ranks, kind), case, str(size), kind]
    ended = subprocess.run(command, capture_output=True, text=True, env=variables)
    if ended.returncode == 78:
        return None
    assert ended.returncode == 0, ended.stderr
    return float(ended.stdout.split()[-1])


def table() -> None:
    """Rows of the README."""
    for case, sizes in SIZES.items():
        print(f"| {case} | {' | '.join(f'{kind}, {ranks}' for kind, ranks in CONTENDERS)} |", flush=True)
        for size in sizes:
            found = [started(case, size, kind, ranks) for kind, ranks in CONTENDERS]
            alone = found[0]
            cells = ["-" if t is None or not alone else f"{1e3 * t:.2f} ({alone / t:.2f})" for t in found]
            print(f"| {size}^2 | {' | '.join(cells)} |", flush=True)


def main(case: str, size: str, kind: str) -> None:
    """Measure one contender; the first process prints."""
    place = int(os.environ.get("PMI_RANK", "0"))
    if "PMI_RANK" in os.environ:
        os.sched_setaffinity(0, {place % (os.cpu_count() or 1)})
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from sciml.errors import SciMLError

    try:
        seconds = measure(case, int(size), kind)
    except SciMLError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
    if place == 0:
        print(seconds)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(*sys.argv[1:])
    else:
        table()
