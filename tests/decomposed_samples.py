"""Samples that ranks share, solved alone by the tests and together by this file as a program.

    mpiexec -n 2 python decomposed_samples.py FOLDER mpi4py kolmogorov burgers

writes FOLDER/kolmogorov.npy, ..., shape (T, fields, *grid.shape), from the first process.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciml import registry
from sciml.boundary import dirichlet, neumann, robin
from sciml.domain import Box, Grid
from sciml.equations import Burgers, GrayScott, Heat, NavierStokes3D, NavierStokesVorticity
from sciml.errors import SciMLError
from sciml.problem import Problem, make_problem
from sciml.sampling.fields import RandomFourierSeries
from sciml.solvers import Etdrk4, Imex, Rk4, Ssprk3, solve
from sciml.solvers.decomposed import solve_over_ranks

LENGTH = 2 * np.pi
TIMES = [0.0, 0.1, 0.15, 0.25]
SAME = 1e-13  # of the largest value: sums and transforms are rounded in another order

Case = tuple[Problem, Grid, Any]


def _periodic(dim: int) -> Box:
    return Box((0.0,) * dim, (LENGTH,) * dim, (True,) * dim)


def kolmogorov() -> Case:
    """Vorticity from a random field, with a force; 7 waves of the last axis, which neither 2 nor 4 ranks divide."""
    box = _periodic(2)
    start = RandomFourierSeries(modes=3).draw(jax.random.key(1), box)
    equation = NavierStokesVorticity(viscosity=0.02, drag=0.1)
    force = {"omega": lambda x: -2 * jnp.cos(2 * x[1])}
    return make_problem(equation, box, initial={"omega": start}, source=force, horizon=1.0), Grid(box, (16, 12)), ETDRK4


def heat() -> Case:
    """Heat in space from a random field, an odd number of points on the last axis."""
    box = _periodic(3)
    start = RandomFourierSeries(modes=1).draw(jax.random.key(2), box)
    return make_problem(Heat(diffusivity=0.1), box, initial={"u": start}, horizon=1.0), Grid(box, (8, 4, 7)), Imex(0.05)


def taylor_green() -> Case:
    """Velocity in space, whose start is projected."""
    box = _periodic(3)
    start = {
        "u": lambda x: jnp.sin(x[0]) * jnp.cos(x[1]) * jnp.cos(x[2]) + 0.2 * jnp.sin(x[0]),
        "v": lambda x: -jnp.cos(x[0]) * jnp.sin(x[1]) * jnp.cos(x[2]),
        "w": lambda x: 0.3 * jnp.sin(x[1] + 2 * x[0]),
    }
    return make_problem(NavierStokes3D(viscosity=0.05), box, initial=start, horizon=1.0), Grid(box, (12, 8, 8)), ETDRK4


def burgers() -> Case:
    """Burgers between walls, one of which moves, with a source and differences of order 2."""
    box = Box((0.0,), (1.0,), (False,))
    problem = make_problem(
        Burgers(viscosity=0.02),
        box,
        initial={"u": lambda x: jnp.sin(3 * x[0]) + 0.2},
        boundary={"x-": dirichlet(lambda x, t: 0.2 + 0.3 * jnp.sin(5 * t)), "x+": neumann(3 * np.cos(3.0))},
        source={"u": lambda x, t: jnp.cos(x[0] + t)},
        horizon=1.0,
    )
    return problem, Grid(box, (32,)), Rk4(0.005)


def channel() -> Case:
    """Heat with a sampled coefficient, periodic along the shared axis, walls along the other, order 4."""
    box = Box((0.0, 0.0), (1.0, 2.0), (True, False))
    problem = make_problem(
        Heat(diffusivity=lambda x: 0.05 * (1.5 + jnp.sin(2 * jnp.pi * x[0]))),
        box,
        initial={"u": lambda x: jnp.sin(2 * jnp.pi * x[0]) * jnp.cos(x[1])},
        boundary={"y-": robin(1.0, 0.5, 0.2), "y+": neumann(lambda x: -jnp.sin(2.0) * jnp.sin(2 * jnp.pi * x[0]))},
        horizon=1.0,
    )
    return problem, Grid(box, (16, 12)), Ssprk3(0.01, difference_order=4)


def reaction() -> Case:
    """Two fields in a box whose faces differ, one of them from field to field."""
    box = Box((0.0, 0.0), (1.0, 2.0), (False, False))
    problem = make_problem(
        GrayScott(),
        box,
        initial={"u": lambda x: 1 - 0.3 * jnp.sin(3 * x[0]) * x[1], "v": lambda x: 0.3 * jnp.cos(x[0] * x[1])},
        boundary={
            "x-": neumann(0.0),
            "x+": {"u": dirichlet(lambda x: 1 - 0.3 * jnp.sin(3.0) * x[1]), "v": neumann(0.1)},
            "y-": neumann(0.0),
            "y+": robin(1.0, 1.0, 0.4),
        },
        horizon=1.0,
    )
    return problem, Grid(box, (24, 8)), Rk4(0.05)


ETDRK4 = Etdrk4(0.05)
CASES: dict[str, Callable[[], Case]] = {
    case.__name__: case for case in (kolmogorov, heat, taylor_green, burgers, channel, reaction)
}


def alone(name: str) -> np.ndarray:
    """What `solve` gives, shape (T, fields, *grid.shape)."""
    problem, grid, method = CASES[name]()
    return np.stack(list(solve(problem, grid, method, times=TIMES).fields.values()), axis=1)


def difference(values: np.ndarray, name: str, reference: np.ndarray | None = None) -> float:
    """From what `solve` gives, in parts of its largest value."""
    expected = alone(name) if reference is None else reference
    assert values.shape == expected.shape and np.isfinite(values).all()
    return float(np.abs(values - expected).max() / np.abs(expected).max())


def together(name: str, over: Any, times: Any = TIMES) -> np.ndarray | None:
    """The same over ranks, on the first process."""
    problem, grid, method = CASES[name]()
    if name == os.environ.get("FEWER_ROWS") and over.rank:
        grid = Grid(grid.box, (grid.shape[0] // 2, *grid.shape[1:]))
    solution = solve_over_ranks(problem, grid, method, times=times, over=over).gathered()
    return None if solution is None else np.stack(list(solution.fields.values()), axis=1)


def main(folder: str, kind: str, *names: str) -> None:
    """Solve and save; a `SciMLError` is printed and ends the process with its exit code."""
    if "SCIML_COORDINATOR" in os.environ:
        number = int(os.environ["SCIML_PROCESS"])
        jax.distributed.initialize(os.environ["SCIML_COORDINATOR"], int(os.environ["SCIML_PROCESSES"]), number)
    over: Any = registry.load("communicator", kind)()
    if "KILLED_RANK" in os.environ and over.rank == int(os.environ["KILLED_RANK"]):
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        for name in names:
            values = together(name, over)
            if values is not None:
                np.save(Path(folder) / f"{name}.npy", values)
    except SciMLError as error:
        print(f"{type(error).__name__}: {error}", flush=True)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main(*sys.argv[1:])
