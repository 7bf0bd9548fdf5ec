"""Who a process is, whether it is like the others, what they say to each other, and when they stop."""

from __future__ import annotations

import pickle
import random
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from comparison import assert_identical
from jax.errors import JaxRuntimeError
from memory_store import Memory, together

from sciml.data.layout import Layout, Variable
from sciml.data.ranks import Ranks
from sciml.errors import ConfigError, DataError
from sciml.launch import alike, watchdog
from sciml.launch.agreement import STOP, Agreement
from sciml.launch.job import Job
from sciml.launch.join import Place, find
from sciml.launch.leaving import LEAVING
from sciml.launch.store import Store, StoreComm
from sciml.launch.watchdog import Beats, Watch
from sciml.pipeline.resizing import began_with

SLURM = {
    "SLURM_JOB_ID": "1000",
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NUM_TASKS": "4",
    "SLURM_PROCID": "3",
    "SLURM_LOCALID": "1",
    "SLURM_STEP_TASKS_PER_NODE": "2(x2)",
    "SLURM_STEP_NODELIST": "localhost",
}
MPI = {"PMI_RANK": "1", "PMI_SIZE": "2"}
OWN = {"SCIML_PROCESS": "1", "SCIML_PROCESSES": "2", "SCIML_PROCESSES_WANTED": "4", "SCIML_COORDINATOR": "here:1"}


@pytest.mark.parametrize(
    ("environ", "place"),
    [
        ({}, None),
        ({"SLURM_JOB_ID": "7", "SLURM_NTASKS": "1"}, None),  # a batch script of one task
        ({"PMI_RANK": "0", "PMI_SIZE": "1"}, None),
        (SLURM, Place(3, 4, "localhost:62440", 1, 2, 4)),
        ({**SLURM, "PMI_RANK": "3", "PMI_SIZE": "4"}, Place(3, 4, "localhost:62440", 1, 2, 4)),  # srun --mpi=pmi2
        ({**SLURM, "SCIML_COORDINATOR": "a:5"}, Place(3, 4, "a:5", 1, 2, 4)),
        (
            {**MPI, "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"},
            Place(1, 2, None, 1, 2, 2),
        ),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, Place(1, 2, None, 0, 1, 2)),
        ({**SLURM, **OWN}, Place(1, 2, "here:1", 1, 4, 4)),  # supervised inside of a Slurm job
        ({**SLURM, **OWN, "SCIML_SLOT": "3"}, Place(1, 2, "here:1", 3, 4, 4)),
    ],
)
def test_launchers(environ, place):
    assert find(environ) == place


def test_names_of_nodes_without_an_address():
    nodes = {**SLURM, "SLURM_STEP_NODELIST": "no-such-host[3-4,7]"}
    with pytest.raises(ConfigError, match="has no address"):
        find(nodes)
    fallback = find({**nodes, "SLURM_LAUNCH_NODE_IPADDR": "127.0.0.1"})
    assert fallback is not None and fallback.address == "127.0.0.1:62440"


def test_a_slurm_job_without_srun_is_refused():
    with pytest.raises(ConfigError, match="without srun") as caught:
        find({"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4", "SLURM_PROCID": "0"})
    assert "srun -K sciml run" in str(caught.value) and caught.value.exit_code == 78


def _facts(**changes):
    return {"jax": "1", "recipe": "abc", alike.CLOCK: 100.0, alike.HOST: "n1", **changes}


@pytest.mark.parametrize("changes", [{"jax": "2"}, {"recipe": "abd"}])
def test_other_code_is_refused_naming_the_process(changes):
    alike.compare([_facts(), _facts(**{alike.CLOCK: 103.0})])  # the control: a clock may be a little off
    with pytest.raises(ConfigError, match="do not run the same") as caught:
        alike.compare([_facts(), _facts(), _facts(**changes, **{alike.HOST: "n7"})])
    ((name, value),) = changes.items()
    assert f"{name}: {value} on process 2 (n7)" in str(caught.value)


def test_clocks_apart_are_refused_naming_the_process():
    with pytest.raises(ConfigError, match="clocks") as caught:
        alike.compare([_facts(), _facts(), _facts(**{alike.CLOCK: 40.0, alike.HOST: "n7"})])
    assert "process 2 on n7: -60.0 s" in str(caught.value)


def test_the_program_is_the_same_each_time_it_is_looked_at():
    assert alike.program() == alike.program() and "sources" in alike.program()["sciml"]


def _ranks(memory: Memory, rank: int, size: int) -> Ranks:
    return Ranks(StoreComm(Store(memory, rank, size), lambda code: None))


@pytest.mark.parametrize("size", [2, 5])
def test_values_go_around(size):
    memory = Memory()
    layout = Layout(outputs=(Variable("u", "m"),), splits={"train": 2})

    def talk(rank):
        ranks = _ranks(memory, rank, size)
        rounds = [ranks.gather((rank, i, np.arange(rank))) for i in range(4)]
        return rounds, ranks.on_first(lambda: {"layout": layout, "at": Path("a"), "ids": {1, 2}})

    for rounds, first in together(size, talk):
        for i, values in enumerate(rounds):
            assert_identical([v[:2] for v in values], [(r, i) for r in range(size)])
            assert [len(v[2]) for v in values] == list(range(size))
        assert first == {"layout": layout, "at": Path("a"), "ids": {1, 2}}


def test_an_error_of_one_is_raised_by_all():
    memory = Memory()

    def fail(rank):
        with pytest.raises(DataError, match="no data"):
            _ranks(memory, rank, 3).agree(DataError("no data") if rank == 1 else None)

    together(3, fail)


class Code:
    """Would run something when it is read."""

    def __reduce__(self):
        return eval, ("1 + 1",)


def test_nothing_that_runs_code_is_taken_from_others():
    memory = Memory()
    memory.key_value_set_bytes("sciml/exchange/1/all", pickle.dumps([Code(), None]))
    with pytest.raises(pickle.UnpicklingError, match="eval"):
        StoreComm(Store(memory, 1, 2), lambda code: None).allgather(1)


@pytest.mark.parametrize("seed", range(5))
def test_all_stop_at_the_same_step_without_waiting_for_each_other(seed):
    """Every step needs all processes, and one is told to stop at a random moment."""
    size, memory, chance = 4, Memory(), random.Random(seed)
    step_of_all, told = threading.Barrier(size), chance.randrange(size)
    at, ahead = chance.randrange(1, 20), [chance.random() / 500 for _ in range(size)]

    def process(rank):
        agreement = Agreement(Store(memory, rank, size))
        listener = threading.Thread(target=_listen, args=(Store(memory, rank, size), agreement), daemon=True)
        listener.start()
        for step in range(1, 1000):
            step_of_all.wait(30)
            threading.Event().wait(ahead[rank])
            if agreement.ask(signal.SIGTERM if rank == told and step >= at else None):
                return step
        return None

    stopped = together(size, process)
    assert len(set(stopped)) == 1 and at <= stopped[0] < at + 100, stopped


def _listen(store: Store, agreement: Agreement) -> None:
    notice = store.wait("notices/1")
    assert STOP.encode() in notice
    agreement.settle("SIGTERM")


def test_what_a_training_began_with():
    assert began_with(Job()) == 8
    assert began_with(Job(), recorded=32) == 32  # by the checkpoint of an earlier, larger job
    assert began_with(Job(_ranks(Memory(), 0, 2), wanted=4)) == 16


@pytest.fixture
def exits(monkeypatch):
    """Codes with which a watch ends its process; here it only would."""
    codes = []
    monkeypatch.setattr(watchdog, "end", codes.append)
    monkeypatch.setattr(watchdog, "leave", lambda code, words: codes.append((code, words)))
    monkeypatch.setattr(watchdog, "FOLLOW_SECONDS", 0.0)
    return codes


def _hears(client: Any, notice: dict[str, Any] | None = None) -> None:
    store = Store(client, 1, 2)
    if notice is not None:
        store.append("notices", notice)
    Watch(store, Agreement(store), Beats())._listen()


class Gone(Memory):
    """Process 0 is gone, and its store with it."""

    def blocking_key_value_get_bytes(self, key, milliseconds):
        raise JaxRuntimeError("UNAVAILABLE: connection refused")


def test_without_a_store_nothing_is_watched(exits):
    """jax ends the process then."""
    _hears(Gone())
    assert exits == []


def test_a_watch_that_fails_ends_the_process(exits, capfd):
    """Without it the main thread might wait for ever."""
    _hears(Memory(), {"kind": "a word that nobody knows"})
    assert exits == [(watchdog.INTERNAL, watchdog.UNWATCHED)]
    assert "Traceback" in capfd.readouterr().err


def test_a_process_follows_another_though_the_store_refuses_its_word(exits, monkeypatch):
    def refuse(key, value):
        raise JaxRuntimeError("UNAVAILABLE: connection refused")

    memory = Memory()
    monkeypatch.setattr(watchdog, "end", lambda code: (exits.append(code), monkeypatch.undo(), sys.exit(code)))
    Store(memory, 0, 2).append("notices", {"kind": LEAVING, "rank": 0, "code": 79})
    memory.key_value_set_bytes = refuse
    with pytest.raises(SystemExit):
        _hears(memory)
    assert exits == [79]
