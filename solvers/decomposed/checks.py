"""Whether a sample can be shared: said before anything is compiled, and on every rank alike."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from sciml.domain import Grid
from sciml.errors import ConfigError, SciMLError
from sciml.problem import Problem
from sciml.solvers.decomposed.communicator import Communicator
from sciml.solvers.method import Method, TimeStepper

LONGEST = 2000  # characters that a rank says


def agree(over: Communicator, check: Callable[[], None]) -> None:
    """Run a check on every rank; raises its error there, and a `ConfigError` that quotes it on the others.

    A rank that stopped alone would leave the others waiting for its messages.
    """
    failure: SciMLError | None = None
    try:
        check()
    except SciMLError as error:
        failure = error
    texts = over.said("" if failure is None else str(failure)[:LONGEST])
    if failure is not None:
        raise failure
    for rank, text in enumerate(texts):
        if text:
            raise ConfigError(f"rank {rank} stopped: {text}")


def check_sharing(problem: Problem, grid: Grid, method: Method, over: Communicator) -> None:
    """Raises `ConfigError` for a method, a box or a number of ranks with which a sample cannot be shared."""
    if not isinstance(method, TimeStepper):
        raise ConfigError(
            f"{type(method).__name__} solves on one rank only",
            expected="an evolution and a time stepper: rk4, ssprk3, and on periodic boxes etdrk2, etdrk4, imex",
            got=type(method).__name__,
            fix="samples over ranks: mpiexec -n 4 sciml generate FILE",
        )
    periodic = all(grid.box.periodic)
    if method.treats_linear_part and not periodic:
        raise ConfigError(
            "on a box with faces only explicit methods can be shared by ranks",
            expected="rk4 or ssprk3, or a box whose axes are all periodic",
            got=f"{type(method).__name__} with the faces {', '.join(grid.box.faces)}",
            reason="the others treat the stiff part in eigenvectors of the whole axis",
            fix="method: {kind: rk4}",
        )
    if periodic and grid.dim == 1:
        raise ConfigError(
            "a Fourier series in one dimension cannot be shared by ranks",
            expected="two or three dimensions",
            got=f"a grid of shape {grid.shape}",
            reason="a transform along the axis that is shared needs another axis to share meanwhile",
            fix="samples over ranks: mpiexec -n 4 sciml generate FILE",
        )
    _check_rows(grid, over.size, periodic)


def _check_rows(grid: Grid, size: int, periodic: bool) -> None:
    """The first axis has to divide; in three periodic dimensions the second one, too."""
    axes = [0, 1] if periodic and grid.dim == 3 else [0]
    lengths = [grid.shape[axis] for axis in axes]
    if all(n % size == 0 for n in lengths):
        return
    fitting = [str(k) for k in range(1, min(lengths) + 1) if all(n % k == 0 for n in lengths)]
    names = " and ".join(f"{n} points along {grid.box.names[axis]}" for n, axis in zip(lengths, axes, strict=True))
    nearest = [-(-n // size) * size for n in lengths]
    without = size > min(lengths)
    raise ConfigError(
        f"{size} ranks cannot share {names}" + (": some would have no points" if without else " evenly"),
        expected=f"one of {', '.join(fitting)} ranks",
        got=size,
        fix=f"mpiexec -n {fitting[-1] if without else max(int(k) for k in fitting if int(k) <= size)}, "
        f"or {' and '.join(map(str, nearest))} points",
    )


def check_halo(grid: Grid, size: int, width: int, order: int) -> None:
    """Raises `ConfigError` for slabs that are thinner than what a neighbor needs of them, or than differences take.

    A rank reads the equation on its rows and `width` more on each side that has a neighbor, 2 `order` rows at least.
    """
    rows = grid.shape[0] // size
    needed = max(width, 2 * order - (2 if grid.box.periodic[0] else 1) * width)
    if size > 1 and rows < needed:
        raise ConfigError(
            "the slabs are too thin for the differences and for what neighbors need of them",
            expected=f"at least {needed} rows per rank",
            got=f"{rows} rows, {grid.shape[0]} points for {size} ranks",
            fix=f"at most {max(1, grid.shape[0] // needed)} ranks, or difference_order: 2",
        )


def check_alike(problem: Problem, grid: Grid, method: Method, times: Any, over: Communicator) -> None:
    """Raises `ConfigError` on every rank unless all were given the same grid, method, times and numbers."""
    told = {
        "grid": f"Grid of shape {grid.shape} on {grid.box}",
        "method": repr(method),
        "times": f"{np.size(times)} times, {_digest(times)}",
        "equation": type(problem.equation).__name__,
        "numbers of the problem": _digest(problem),
    }
    for what, mine in told.items():
        said = over.said(mine)
        differing = [rank for rank, other in enumerate(said) if other != said[0]]
        if differing:
            raise ConfigError(
                f"the ranks were not given the same {what}",
                expected=f"that of rank 0: {said[0]}",
                got=f"on rank {differing[0]}: {said[differing[0]]}",
                reason="every rank must call solve_over_ranks with the same arguments",
            )


def _digest(tree: Any) -> str:
    digest = hashlib.sha256()
    for leaf in jax.tree.leaves(tree):
        digest.update(np.ascontiguousarray(leaf).tobytes())
    return digest.hexdigest()[:16]
