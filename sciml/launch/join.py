"""Joining the other processes of a job: who they are is read from the environment, before jax is used.

A supervisor of this package, `mpiexec`, `srun`, or nobody: the same command is right under each of them.
"""

from __future__ import annotations

import faulthandler
import os
import re
import signal
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sciml.data.ranks import Ranks, mpi_world
from sciml.errors import ConfigError, PeerError
from sciml.launch import leaving
from sciml.launch.agreement import Agreement
from sciml.launch.job import Job
from sciml.launch.store import Store, StoreComm
from sciml.launch.watchdog import Beats, Watch

COORDINATOR, PROCESS, PROCESSES = "SCIML_COORDINATOR", "SCIML_PROCESS", "SCIML_PROCESSES"
WANTED, SLOT, BEATS, STACKS = "SCIML_PROCESSES_WANTED", "SCIML_SLOT", "SCIML_BEATS", "SCIML_STACKS"
DUMP_SIGNAL = signal.SIGUSR2
HEARTBEAT_SECONDS, SHUTDOWN_SECONDS, MEETING_SECONDS = 10, 5, 300
FIRST_PORT, PORTS = 61440, 4096
NOT_A_STEP = 4294967290
"""Slurm's numbers from here on are the batch script and the interactive shell, not steps started by srun."""

Environment = Mapping[str, str]


@dataclass(frozen=True)
class Place:
    """One process among those of a job.

    address: where process 0 listens (host:port), None where it is still to be agreed; local, locals: number of this
    process on its machine, and how many there are; wanted: how many the job began with.
    """

    process: int
    processes: int
    address: str | None
    local: int = 0
    locals: int = 1
    wanted: int = 1


def join(environ: Environment = os.environ, watchdog: float | None = None) -> Job:
    """Meet the other processes, if a launcher started any; call it before any device of jax is used.

    `watchdog`: seconds without a step after which all processes of a job leave with their stacks (exit code 80).
    Raises ConfigError (78) for a Slurm job of many tasks that was started without srun, PeerError (80) when the others
    do not come.
    """
    place = find(environ)
    if place is None:
        return Job()
    pipe = environ.get(BEATS)
    if STACKS in environ:  # the supervisor asks for it when no step comes; any thread, even inside a collective
        faulthandler.register(DUMP_SIGNAL, file=open(environ[STACKS], "w"), all_threads=True)  # noqa: SIM115 -- stays open
    beats = Beats(int(pipe) if pipe else None)
    if place.processes == 1:
        leaving.belongs(None)
        return Job(wanted=place.wanted, beats=beats)
    client = _connect(place, environ)
    store = Store(client, place.process, place.processes)
    leaving.belongs(store)
    agreement = Agreement(store)
    Watch(store, agreement, beats, None if pipe else watchdog).start()
    return Job(Ranks(StoreComm(store, leaving.leave)), place.wanted, agreement, beats)


def find(environ: Environment) -> Place | None:
    """This process's place, None if it is alone. A supervisor comes before the scheduler it may run under."""
    for launcher in LAUNCHERS:
        place = launcher(environ)
        if place is not None:
            return place
    _refuse_tasks_without_srun(environ)
    return None


def _supervised(environ: Environment) -> Place | None:
    if PROCESS not in environ:
        return None
    process, processes = int(environ[PROCESS]), int(environ[PROCESSES])
    wanted = int(environ.get(WANTED, processes))
    slot = int(environ.get(SLOT, process))
    return Place(process, processes, environ.get(COORDINATOR), slot, wanted, wanted)


def _mpi(environ: Environment) -> Place | None:
    """mpiexec of MPICH, Intel MPI or Open MPI."""
    for rank, size, local, locals_ in MPI_VARIABLES:
        if rank in environ and int(environ.get(size, 1)) > 1:
            if _number(environ, "SLURM_STEP_NUM_TASKS") == int(environ[size]):
                return None  # srun --mpi=pmi2: Slurm knows more
            count = int(environ[size])
            here = int(environ.get(local, 0)), int(environ.get(locals_, 1))
            return Place(int(environ[rank]), count, environ.get(COORDINATOR), *here, wanted=count)
    return None


def _slurm(environ: Environment) -> Place | None:
    count = _number(environ, "SLURM_STEP_NUM_TASKS") or _number(environ, "SLURM_NTASKS") or 1
    if _number(environ, "SLURM_STEP_ID", NOT_A_STEP) >= NOT_A_STEP or count < 2:
        return None
    here = int(environ["SLURM_PROCID"])
    locals_ = _number(environ, "SLURM_STEP_TASKS_PER_NODE") or _number(environ, "SLURM_NTASKS_PER_NODE") or 1
    address = environ.get(COORDINATOR) or _slurm_address(environ)
    return Place(here, count, address, _number(environ, "SLURM_LOCALID"), locals_, wanted=count)


LAUNCHERS: tuple[Callable[[Environment], Place | None], ...] = (_supervised, _mpi, _slurm)
MPI_VARIABLES = (
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
)


def _slurm_address(environ: Environment) -> str:
    """The first node of the step, and a port that no other step of this or another job would choose."""
    nodes = environ.get("SLURM_STEP_NODELIST") or environ.get("SLURM_JOB_NODELIST") or "localhost"
    first = re.sub(r"\[(\d+).*", r"\1", re.split(r",(?![^\[]*\])", nodes)[0])
    job, step = _number(environ, "SLURM_JOB_ID"), _number(environ, "SLURM_STEP_ID")
    port = FIRST_PORT + (job + 97 * step + 13 * _number(environ, "SLURM_RESTART_COUNT")) % PORTS
    try:
        socket.getaddrinfo(first, port)
    except OSError as error:
        first = environ.get("SLURM_LAUNCH_NODE_IPADDR", "")
        if not first:
            raise ConfigError(
                f"the name of the first node, {nodes}, has no address",
                reason=str(error),
                fix=f"export {COORDINATOR}=<address of the first node>:{port}",
            ) from error
    return f"{first}:{port}"


def _refuse_tasks_without_srun(environ: Environment) -> None:
    tasks = _number(environ, "SLURM_NTASKS")
    step = _number(environ, "SLURM_STEP_ID", NOT_A_STEP)
    if "SLURM_JOB_ID" in environ and tasks > 1 and step >= NOT_A_STEP:
        raise ConfigError(
            "a Slurm job of several tasks was started without srun",
            expected=f"{tasks} processes, one per task",
            got="one process: the batch script runs once",
            fix="srun -K sciml run ...   # or --ntasks=1 for a single process",
        )


def _connect(place: Place, environ: Environment) -> Any:
    """The client of `jax.distributed`, once all are there."""
    address = place.address or _agreed_by_mpi(place)
    import jax

    from sciml.types import one_thread_each

    if place.locals > 1:  # they share the cores of a machine
        os.environ["XLA_FLAGS"] = one_thread_each(os.environ.get("XLA_FLAGS", ""))
    jax.config.update("jax_enable_preemption_service", False)  # it would swallow SIGTERM; see `agreement`
    try:
        jax.distributed.initialize(
            address,
            place.processes,
            place.process,
            local_device_ids=own_devices(place, environ),
            initialization_timeout=MEETING_SECONDS,
            heartbeat_timeout_seconds=HEARTBEAT_SECONDS,
            shutdown_timeout_seconds=SHUTDOWN_SECONDS,
        )
        jax.devices()  # the processes tell each other of their devices, all at once or never
    except (jax.errors.JaxRuntimeError, RuntimeError) as error:
        raise PeerError(
            f"process {place.process} of {place.processes} did not meet the others at {address}",
            expected=f"{place.processes} processes within {MEETING_SECONDS} s",
            got=str(error).splitlines()[0],
            reason="one of them ended at once, or the address cannot be reached from its node",
            fix=f"see the messages of the others; export {COORDINATOR}=<address>:<port> for another address",
        ) from error
    from jax._src.distributed import global_state  # no public way to the store

    return global_state.client


def _agreed_by_mpi(place: Place) -> str:
    """Process 0 chooses a free port, MPI tells the others; after that MPI is done."""
    world = mpi_world(place.processes)
    hosts = world.allgather(socket.gethostname())
    chosen = None
    if place.process == 0:
        host = "127.0.0.1" if len(set(hosts)) == 1 else hosts[0]
        chosen = f"{host}:{free_port()}"
    address = world.bcast(chosen)
    from mpi4py import MPI

    MPI.Finalize()  # a process that leaves by its own code has then not left MPI in the lurch
    return address


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def own_devices(place: Place, environ: Environment) -> list[int] | None:
    """An equal share of the GPUs that this process and its neighbors see; None where each sees its own ones."""
    if "SLURM_GPUS_PER_TASK" in environ or place.locals < 2:
        return None
    visible = environ.get("CUDA_VISIBLE_DEVICES")
    count = len([d for d in visible.split(",") if d]) if visible is not None else len([*_gpus()])
    share = count // place.locals
    return list(range(place.local * share, (place.local + 1) * share)) if share else None


def _gpus() -> list[Path]:
    return [path for path in Path("/dev").glob("nvidia*") if path.name.removeprefix("nvidia").isdigit()]


def _number(environ: Environment, name: str, missing: int = 0) -> int:
    """The whole number that a variable begins with: `2(x3)` is Slurm's word for three nodes with two tasks."""
    found = re.match(r"\d+", environ.get(name, ""))
    return int(found.group()) if found else missing
