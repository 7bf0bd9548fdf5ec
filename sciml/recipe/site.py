"""The site file: what a cluster asks of a job. Read and checked like a recipe, every mistake with its line."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from pydantic import Field, ValidationError, model_validator

from sciml.errors import ConfigError
from sciml.launch.sbatch import RUNTIMES, Container, Script
from sciml.recipe import document
from sciml.recipe.messages import RecipeError, failure, lines, problem
from sciml.recipe.overrides import overridden
from sciml.recipe.sections import Section
from sciml.recipe.slurm_values import (
    Duration,
    Line,
    Lines,
    Memory,
    Nodes,
    SbatchOptions,
    Variables,
    Word,
    Words,
    clock,
    seconds,
)
from sciml.recipe.values import Count, Natural, Switch, Text
from sciml.registry import suggestion

START = "a file with the line `partition: NAME`, one of those that `sinfo` lists; experiments/sites/ has examples"


class ContainerSection(Section):
    """The image that the run is started in."""

    image: Line = Field(description="a .sif file, a directory or a registry address, as the runtime wants it")
    runtime: Text = Field(default="apptainer", description=" | ".join(RUNTIMES))
    mounts: Lines = Field(default=(), description="folders seen inside, /here or /here:/there")
    options: Lines = Field(default=(), description="further options of the runtime")

    @model_validator(mode="after")
    def _is_known(self) -> Self:
        if self.runtime not in RUNTIMES:
            what = f"must be {' | '.join(RUNTIMES)}{suggestion(self.runtime, RUNTIMES)}"
            raise failure([problem(("runtime",), what, self.runtime)])
        return self


class ArraySection(Section):
    """Limits of the arrays that sweeps become."""

    largest: Count | None = Field(default=None, description="jobs in one array; asked of Slurm if left out")
    at_once: Count | None = Field(default=None, description="jobs of an array that run at the same time")


class Site(Section):
    """What a cluster asks of a job; a key that is left out is left to Slurm's own default."""

    partition: Word | None = None
    account: Word | None = None
    qos: Word | None = None
    nodes: Nodes = Field(default="1", description="a number, or a range such as 1-4: the job runs on what it gets")
    tasks_per_node: Count = Field(default=1, description="processes per node")
    gpus_per_node: Natural = 0
    cpus_per_task: Count | None = None
    memory: Memory | None = Field(default=None, description="per node, e.g. 64G")
    time: Duration | None = Field(default=None, description="limit: HH:MM:SS, D-HH:MM:SS or minutes")
    signal: Natural = Field(default=120, description="seconds before the limit at which the run saves; 0: never")
    requeue: Switch = Field(default=True, description="the job returns to the queue until the run is finished")
    restarts: Count = Field(default=100, description="how often at most")
    array: ArraySection = ArraySection()
    modules: Words = ()
    setup: Lines = Field(default=(), description="shell lines before the run, e.g. source venv/bin/activate")
    container: ContainerSection | None = None
    environment: Variables = {}
    sbatch: SbatchOptions = Field(default=(), description="further options of sbatch, e.g. --constraint=a100")
    srun: Lines = Field(default=(), description="further options of srun, e.g. --mpi=pmi2")

    @model_validator(mode="after")
    def _signal_comes_in_time(self) -> Self:
        if self.time is not None and self.signal >= seconds(self.time):
            what = f"must be less than the time limit, which is {seconds(self.time)} s"
            raise failure([problem(("signal",), what, self.signal)])
        return self

    @property
    def is_elastic(self) -> bool:
        """Whether the job runs on any number of nodes in a range."""
        return "-" in self.nodes

    def _cpus(self, tasks: int) -> str | None:
        """Processors for so many tasks; None to leave it to Slurm."""
        return str(tasks * (self.cpus_per_task or 1)) if self.cpus_per_task or tasks > 1 else None

    def options(self, name: str, output: str, folder: str) -> dict[str, str | None]:
        """Options of sbatch for a job of this name that starts in `folder`; None is a switch without a value."""
        resources = {
            "partition": self.partition,
            "account": self.account,
            "qos": self.qos,
            "nodes": self.nodes,
            "ntasks-per-node": None if self.is_elastic else str(self.tasks_per_node),
            "gpus-per-node": str(self.gpus_per_node) if self.gpus_per_node else None,
            "cpus-per-task": self._cpus(self.tasks_per_node if self.is_elastic else 1),
            "mem": self.memory,
            "time": self.time,
            "signal": f"TERM@{self.signal}" if self.signal else None,  # without B: it reaches the tasks
        }
        asked: dict[str, str | None] = {key: value for key, value in resources.items() if value is not None}
        restart: dict[str, str | None] = {"requeue": None} if self.requeue else {"no-requeue": None}
        place = {"job-name": name, "chdir": folder, "output": output, "open-mode": "append"}
        return {**place, **asked, **restart}

    def script(
        self,
        title: tuple[str, ...],
        options: dict[str, str | None],
        folders: Sequence[str],
        command: Sequence[str],
        *,
        is_array: bool = False,
    ) -> Script:
        """The batch script that runs `command`; of an array, once per folder."""
        # Of a range of nodes Slurm gives the least when it is told the tasks per node: srun says them, and sbatch asks
        # for the processors of all tasks of a node. And since Slurm 22.05 srun does not know what sbatch was asked.
        tasks = (f"--ntasks-per-node={self.tasks_per_node}",) if self.is_elastic else ()
        cpus = (f"--cpus-per-task={self.cpus_per_task or 1}",) if self.cpus_per_task or self.is_elastic else ()
        return Script(
            title=title,
            options=options,
            folders=tuple(folders),
            command=tuple(command),
            setup=tuple(self._setup()),
            extra=self.sbatch,
            srun=(*tasks, *cpus, *self.srun),
            container=self._container(options.get("chdir") or "."),
            restarts=self.restarts if self.requeue else 0,
            is_array=is_array,
        )

    def for_one_task(self, minutes: int) -> Site:
        """The same site for a small job: one task, no GPU, no signal, no return to the queue."""
        small = {"nodes": "1", "tasks_per_node": 1, "gpus_per_node": 0, "signal": 0, "requeue": False}
        return self.model_copy(update={**small, "time": clock(minutes)})

    def _setup(self) -> list[str]:
        modules = [f"module load {' '.join(map(shlex.quote, self.modules))}"] if self.modules else []
        exports = [f"export {name}={shlex.quote(str(value))}" for name, value in self.environment.items()]
        return [*modules, *exports, *self.setup]

    def _container(self, folder: str) -> Container | None:
        if self.container is None:
            return None
        mounts = self.container.mounts or (folder,)
        gpus, given = self.gpus_per_node > 0, self.container
        return Container(given.runtime, given.image, mounts, gpus, given.options)


def read_site(path: Path | str, overrides: Sequence[str] = ()) -> Site:
    """The site file at `path`, with `key=value` overrides; RecipeError (78) names every mistake and its line."""
    path = Path(path).expanduser()
    if not path.exists():
        nearby = [other.name for other in path.parent.glob("*.y*ml")] if path.parent.is_dir() else []
        raise ConfigError(f"no site file {path}{suggestion(path.name, nearby)}", fix=START)
    written = overridden(document.load(path, START), overrides)
    try:
        return Site.model_validate(written.values)
    except ValidationError as error:
        raise RecipeError(written.name, lines([error], written)) from None


__all__ = ["Site", "read_site"]
