"""One training on several processes is the training of one process with as many devices, bit for bit."""

from __future__ import annotations

import signal
import sys

import jax
import numpy as np
import pytest
from comparison import assert_close
from tiny_jobs import DOUBLE, MPIEXEC, SMALL, copied, mpi, start, until
from tiny_runs import checkpoint, here, metrics, sciml, write

from sciml.parallel.plan import Plan
from sciml.pipeline.feeding import rows

needs_mpi = pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec: pip install 'sciml[mpi]'")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The samples that all trainings here share."""
    folder = tmp_path_factory.mktemp("data")
    ended = here("generate", write("heat", folder), SMALL, folder=folder)
    assert ended.code == 0, ended.err
    return folder / "runs/heat/data"


@pytest.fixture(scope="module", params=[2])
def alone(request, data, tmp_path_factory):
    """(run folder, devices) of a training in one process with several devices."""
    return _alone(data, tmp_path_factory.mktemp("alone"), request.param)


def _alone(data, folder, devices: int, model: str = "fno"):
    ended = here("train", copied(data, folder), *_options(devices), "--model", model, folder=folder)
    assert ended.code == 0, ended.err
    return folder / "runs/heat"


def _options(devices: int) -> tuple[str, ...]:
    return (SMALL, DOUBLE, f"plan={{data: {devices}}}")


def _assert_same(one, other, model: str = "fno") -> None:
    assert checkpoint(one, model) == checkpoint(other, model)
    assert metrics(one, model) == metrics(other, model)


@needs_mpi
def test_two_processes_of_mpiexec(data, alone, tmp_path):
    ended = mpi(2, tmp_path, "train", copied(data, tmp_path), *_options(2), "--model", "fno")
    assert ended.code == 0, ended.err
    assert ended.out.count("fno: step 12/12") == 1  # process 0 speaks for both
    _assert_same(tmp_path / "runs/heat", alone)


@needs_mpi
def test_without_a_plan_all_processes_share_the_batch(data, alone, tmp_path):
    ended = mpi(2, tmp_path, "train", copied(data, tmp_path), SMALL, DOUBLE, "--model", "fno")
    assert ended.code == 0, ended.err
    assert ended.out.count("fno: no plan is given, the batch goes over 2 device(s) of 2 process(es)") == 1
    _assert_same(tmp_path / "runs/heat", alone)


@pytest.mark.long
@needs_mpi
def test_a_batch_that_does_not_divide_is_refused_before_data_are_made(tmp_path):
    ended = mpi(3, tmp_path, "run", write("heat", tmp_path), SMALL, DOUBLE)
    assert ended.code == 78, ended
    assert "no plan is given, and the batch does not divide over 3 devices" in ended.err
    assert not (tmp_path / "runs/heat/data").exists()


@pytest.mark.long
@pytest.mark.parametrize("model", ["fno", "pinn"])
def test_four_processes_without_a_launcher(data, tmp_path, model):
    """Sums over more than two devices are made in another order: rounding."""
    one = _alone(data, tmp_path / "one", 4, model)
    folder = tmp_path / "four"
    ended = start(4, folder, "train", copied(data, folder), *_options(4), "--model", model).wait()
    assert [e.code for e in ended] == [0, 0, 0, 0], ended
    losses = [[r["loss"] for r in metrics(f, model) if "loss" in r] for f in (folder / "runs/heat", one)]
    assert len(losses[0]) == 12
    np.testing.assert_allclose(*losses, rtol=1e-12, atol=1e-12 * losses[1][0] if model == "pinn" else 0.0)


@pytest.mark.long
@needs_mpi
def test_a_whole_run_of_four_processes(tmp_path):
    """Samples are shared, the training is one, process 0 exports and evaluates."""
    ended = mpi(4, tmp_path, "run", write("heat", tmp_path), *_options(4))
    assert ended.code == 0, ended.err
    folder = tmp_path / "runs/heat"
    assert len(list((folder / "data").glob("shard-*.h5"))) == 2  # as many as there are chunks of samples
    assert (folder / "report.html").exists() and (folder / "fno.sciml").exists()


def test_a_signal_to_one_process_stops_all_at_the_same_step(data, alone, tmp_path):
    """Both save and leave with 75; one process with two devices, then two processes, finish with the same bits."""
    recipe, folder = copied(data, tmp_path), tmp_path / "runs/heat"
    slow = start(2, tmp_path, "train", recipe, *_options(2), "--model", "fno", program=_slowed())
    until(lambda: (folder / "models/fno/checkpoints/4").exists(), slow)
    slow.started[1].send_signal(signal.SIGUSR1)
    ended = slow.wait()
    assert [e.code for e in ended] == [75, 75], ended
    said = "".join(e.err for e in ended)
    assert said.count("SIGUSR1: stopped at step") == 1 and "start the same command again" in said
    continued = here("train", recipe, *_options(2), "--model", "fno", folder=tmp_path)
    assert continued.code == 0 and "fno: continues from step" in continued.out, continued
    _assert_same(folder, alone)


def _slowed() -> tuple[str, ...]:
    """The command line with a pause after every step, so that a signal meets the training under way."""
    code = (
        "import sys, time\n"
        "from sciml.cli import main\n"
        "from sciml.training.hooks.beat import Beat\n"
        "step = Beat.on_step\n"
        "Beat.on_step = lambda hook, run: (time.sleep(0.2), step(hook, run))\n"
        "sys.exit(main())\n"
    )
    return (sys.executable, "-c", code)


@pytest.mark.long
def test_continues_on_another_number_of_processes(data, alone, tmp_path):
    """Stopped after half of the steps in one process, finished by two."""
    recipe = copied(data, tmp_path)
    half = sciml("train", recipe, *_options(2), "--model", "fno", folder=tmp_path, fault="train:fno:6:SIGTERM")
    assert half.code == 75, half.err
    ended = start(2, tmp_path, "train", recipe, *_options(2), "--model", "fno").wait()
    assert [e.code for e in ended] == [0, 0], ended
    assert "fno: continues from step 6" in ended[0].out
    _assert_same(tmp_path / "runs/heat", alone)


def test_different_recipes_are_refused_by_all(data, tmp_path):
    """The control is every other test here."""
    each = ("models.fno.width=8", "models.fno.width=6")
    ended = start(2, tmp_path, "train", copied(data, tmp_path), *_options(2), each=each).wait()
    assert [e.code for e in ended] == [78, 78], ended
    said = "".join(e.err for e in ended)
    assert said.count("the processes of this job do not run the same") == 1
    assert "recipe: " in said and "on process 1" in said
    assert not (tmp_path / "runs/heat/models").exists()


@pytest.mark.long
@pytest.mark.parametrize("plan", ["{fsdp: 2, zero: 3}", "{tensor: 2}"])
def test_states_in_parts(data, tmp_path, plan):
    """Parameters and optimizer state that no process has whole are saved, and read by one process.

    Held-out errors agree to rounding only: one process evaluates the parts where they are.
    """
    options = (SMALL, DOUBLE, f"plan={plan}", "--model", "fno")
    one, two = tmp_path / "one", tmp_path / "two"
    alone = here("train", copied(data, one), *options, folder=one)
    assert alone.code == 0, alone.err
    ended = start(2, two, "train", copied(data, two), *options).wait()
    assert [e.code for e in ended] == [0, 0], ended
    assert checkpoint(one / "runs/heat", "fno") == checkpoint(two / "runs/heat", "fno")


@pytest.mark.long
def test_a_requeued_run_with_fewer_devices_keeps_its_batch(data, tmp_path, monkeypatch):
    """Four devices, then two: the run folder alone tells that there were four. Sums in another order: rounding."""
    whole = _alone(data, tmp_path / "whole", 4)
    copied(data, tmp_path)
    command = ("train", "heat.yaml", *_options(4), "--model", "fno")
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=4")
    half = sciml(*command, folder=tmp_path, fault="train:fno:6:SIGTERM")
    assert half.code == 75, half.err
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=2")
    ended = sciml(*command, folder=tmp_path)
    assert ended.code == 0 and "fno: continues from step 6" in ended.out, ended.err
    losses = [[r["loss"] for r in metrics(folder, "fno") if "loss" in r] for folder in (tmp_path / "runs/heat", whole)]
    assert_close(*losses, rtol=1e-12)
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=1")
    copied(data, tmp_path / "fresh")
    fresh = sciml(*command, folder=tmp_path / "fresh")  # the control: a new run does not shrink by itself
    assert fresh.code == 78 and "does not fit the devices" in fresh.err, fresh.err


def test_states_know_their_place():
    """A batch that does not divide is left whole, so that the step can say what does not divide."""
    mesh = Plan(data=8).mesh()
    assert rows(mesh, 16).spec == jax.sharding.PartitionSpec(("data", "fsdp", "expert"))
    assert rows(mesh, 12).spec == jax.sharding.PartitionSpec()
