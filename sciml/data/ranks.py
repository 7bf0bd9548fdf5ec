"""The processes that generate data together: one, or those of an MPI launcher (mpi4py on demand)."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from sciml import errors
from sciml.errors import ConfigError, SciMLError

T = TypeVar("T")
SIZE_VARIABLES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE")


def launched(environ: Mapping[str, str] = os.environ) -> int:
    """How many processes the launcher (mpiexec, srun) started with this one; 1 without a launcher."""
    sizes = [environ[name] for name in SIZE_VARIABLES if name in environ]
    if "SLURM_STEP_ID" in environ and environ.get("SLURM_STEP_NUM_TASKS", "").isdigit():
        sizes.append(environ["SLURM_STEP_NUM_TASKS"])
    return max((int(size) for size in sizes if size.isdigit()), default=1)


class Ranks:
    """Communication that generation needs, with or without MPI.

    `comm` is an mpi4py communicator; without one, the world communicator is taken when a launcher started
    several processes. Raises ConfigError when mpi4py is missing then, or does not see the other processes.
    """

    def __init__(self, comm: Any = None) -> None:
        self.comm = comm if comm is not None else _world()
        self.rank: int = 0 if self.comm is None else self.comm.Get_rank()
        self.size: int = 1 if self.comm is None else self.comm.Get_size()

    def gather(self, value: T) -> list[T]:
        """The values of all ranks, on every rank, in rank order."""
        return [value] if self.comm is None else self.comm.allgather(value)

    def on_first(self, function: Callable[[], T]) -> T:
        """Result of `function`, called on rank 0 only; an exception there is raised on every rank."""
        result, failure, cause = None, None, None
        if self.rank == 0:
            try:
                result = function()
            except Exception as error:
                failure, cause = describe(error), error
        if self.comm is not None:
            result, failure = self.comm.bcast((result, failure), root=0)
        if cause is not None:
            raise cause
        if failure is not None:
            raise rebuild(failure, 0)
        return cast(T, result)

    def agree(self, error: Exception | None) -> None:
        """Raise on every rank if any has an `error`: its own, or that of the first rank with one."""
        failures = self.gather(None if error is None else describe(error))
        if error is not None:
            raise error
        for rank, failure in enumerate(failures):
            if failure is not None:
                raise rebuild(failure, rank)

    def abort(self, error: BaseException, code: int) -> None:
        """End all ranks when this one cannot reach the next agreement; nothing in a single process."""
        if self.size > 1:
            print(f"rank {self.rank}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            self.comm.Abort(code)


def describe(error: Exception) -> tuple[str, str]:
    """Class name and text of an error: what travels between ranks."""
    return type(error).__name__, str(error)


def rebuild(failure: tuple[str, str], rank: int) -> SciMLError:
    """The error that `describe` took apart on another rank: the same class if it is one of ours."""
    name, text = failure
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, SciMLError):
        return kind(f"on rank {rank}: {text}")
    return SciMLError(f"on rank {rank}: {name}: {text}")


def _world() -> Any:
    started = launched()
    return None if started < 2 else mpi_world(started)


def mpi_world(started: int) -> Any:
    """The world communicator of mpi4py; ConfigError (78) unless it sees the `started` processes."""
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise ConfigError(
            f"{started} processes were started, but mpi4py is not installed",
            reason=str(error),
            fix="pip install 'sciml[mpi]', or start a single process",
        ) from error
    if MPI.COMM_WORLD.Get_size() != started:
        raise ConfigError(
            "the processes do not see each other",
            expected=f"{started} MPI ranks, as many as the launcher started",
            got=MPI.COMM_WORLD.Get_size(),
            reason="the launcher and the installed MPI library speak different protocols",
            fix="srun --mpi=pmi2 ... with the mpich wheel, or the mpiexec that belongs to this mpi4py",
        )
    return MPI.COMM_WORLD
