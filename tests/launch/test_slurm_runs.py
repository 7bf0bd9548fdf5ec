"""Real trainings in a real Slurm: what a job goes through does not show in its loss curve."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from comparison import assert_close
from launch.test_slurm import HIGH
from tiny_runs import checkpoint, here, metrics, sciml

SECONDS = 240
STEPS = {1: 4000, 2: 600}
"""By the number of processes: a training that lasts long enough to be disturbed."""
ONE_DEVICE = "--xla_force_host_platform_device_count=1"
pytestmark = pytest.mark.long


def _train(tasks):
    return f"models.fno.train={{precision: float64, steps: {STEPS[tasks]}, batch: 8, checkpoint_every: 50}}"


@pytest.fixture
def submitting(monkeypatch):
    """A function: from now on commands submit to this cluster, whose jobs have one device per task."""

    def use(cluster):
        for name, value in cluster.environment.items():
            monkeypatch.setenv(name, value)
        own = Path(sys.executable).parent
        monkeypatch.setenv("PATH", os.pathsep.join([str(own), cluster.environment["PATH"]]))
        monkeypatch.setenv("XLA_FLAGS", ONE_DEVICE)

    return use


@pytest.fixture
def submit(recipe, tmp_path, submitting):
    """A function: cluster, site file, tasks, plan -> number of a job that trains with one device per task."""

    def run(cluster, site, tasks, plan):
        submitting(cluster)
        (tmp_path / "site.yaml").write_text(site)
        ended = here("submit", recipe, _train(tasks), plan, "--cluster", "site.yaml", folder=tmp_path)
        assert ended.code == 0, ended.err
        return re.search(r"submitted job (\d+)", ended.out)[1]

    return run


@pytest.fixture
def alone(recipe, tmp_path, monkeypatch):
    """A function: number of devices -> the folder of the same training in one undisturbed process."""

    def run(devices):
        monkeypatch.setenv("XLA_FLAGS", ONE_DEVICE.replace("=1", f"={devices}"))
        shutil.copytree(tmp_path / "runs/heat/data", tmp_path / "alone/data")
        plan = f"plan={{data: {devices}}}"
        ended = sciml("train", recipe, _train(devices), plan, "-o", "alone", folder=tmp_path)
        assert ended.code == 0, ended.err
        return tmp_path / "alone"

    return run


def _in_training(tmp_path):
    return (tmp_path / "runs/heat/models/fno/checkpoints/50").is_dir()


def _preempted(cluster, number, tmp_path):
    cluster.wait(lambda: _in_training(tmp_path), SECONDS, "the training to begin")
    (tmp_path / "high.sh").write_text(HIGH)
    assert cluster.ended(cluster.submit(tmp_path / "high.sh"), SECONDS)["JobState"] == "COMPLETED"
    job, output = cluster.ended(number, SECONDS), (tmp_path / f"runs/heat/slurm-{number}.out").read_text()
    assert (job["JobState"], job["Restarts"]) == ("COMPLETED", "1"), output
    assert re.search(r"SIGTERM: stopped at step \d+ of \d+, which is saved", output), output
    assert re.search(r"fno: continues from step \d+", output), output


@pytest.mark.parametrize("tasks", [1, 2])
def test_preempted_requeued_and_the_same_bits(tasks, cluster, submit, alone, tmp_path):
    """Two tasks on two nodes are one process with two devices."""
    number = submit(cluster, f"partition: low\nnodes: {tasks}\ntime: 10\n", tasks, f"plan={{data: {tasks}}}")
    _preempted(cluster, number, tmp_path)
    whole = alone(tasks)
    assert checkpoint(tmp_path / "runs/heat", "fno") == checkpoint(whole, "fno")
    assert metrics(tmp_path / "runs/heat", "fno") == metrics(whole, "fno")
    assert (tmp_path / "runs/heat/report.html").is_file()


def test_a_lost_node_and_the_same_curve(fragile_cluster, submit, alone, tmp_path):
    """Two processes, then the one that is left; sums over devices differ in their last bits."""
    number = submit(fragile_cluster, "partition: low\nnodes: 1-2\ntime: 10\n", 2, "plan={data: -1}")
    fragile_cluster.wait(lambda: _in_training(tmp_path), SECONDS, "the training to begin")
    fragile_cluster.lose_node("n2")
    job, output = fragile_cluster.ended(number, SECONDS), (tmp_path / f"runs/heat/slurm-{number}.out").read_text()
    assert (job["JobState"], job["Restarts"], job["NodeList"]) == ("COMPLETED", "1", "n1"), output
    assert re.search(r"fno: continues from step \d+", output), output
    folders = (tmp_path / "runs/heat", alone(2))
    curves = [{r["step"]: r["loss"] for r in metrics(folder, "fno") if "loss" in r} for folder in folders]
    assert curves[0].keys() == curves[1].keys()
    assert_close(curves[0], curves[1], rtol=1e-9)  # rounding grows over thousands of steps


def test_an_array_of_trainings_that_share_their_data(cluster, submitting, recipe, site, tmp_path):
    """They begin together: one makes the data, the other returns to the queue (75) where it comes too early."""
    submitting(cluster)
    site.write_text("partition: low\ntime: 10\n")
    ended = here("sweep", recipe, "models.fno.width=4,6", "--submit", "--cluster", site, folder=tmp_path)
    assert ended.code == 0, ended.err
    place = tmp_path / "runs/heat-sweep"
    table = cluster.ended(re.search(r"submitted job (\d+), which writes the table", ended.out)[1], 2 * SECONDS)
    text = (place / "table.out").read_text()
    assert table["JobState"] == "COMPLETED" and "2 of 2 points are finished" in text, text
    assert re.search(r"^width=4 +\S.*\nwidth=6 +\S", text, re.MULTILINE), text
    assert (place / "width=4/data").resolve() == (place / "width=6/data").resolve()
