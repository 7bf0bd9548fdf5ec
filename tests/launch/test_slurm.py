"""Scripts of `sciml submit` and `sciml sweep --submit` in a real Slurm: two tasks on two virtual nodes.

What the jobs run is a stand-in for `sciml run` that starts at once; `test_slurm_runs.py` has real trainings.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from launch.slurm_daemons import ENDED
from tiny_runs import here

SECONDS = 60
HIGH = "#!/bin/bash\n#SBATCH --partition=high --nodes=2 --ntasks-per-node=2 --time=1 --output=/dev/null\nsleep 1\n"


@pytest.fixture
def slurm(cluster, stand_in, monkeypatch, tmp_path):
    """The cluster, in whose jobs `sciml run` is the stand-in; the current environment may submit to it."""
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)
    own = Path(sys.executable).parent
    monkeypatch.setenv("PATH", os.pathsep.join([str(stand_in), str(own), cluster.environment["PATH"]]))
    monkeypatch.chdir(tmp_path)
    return cluster


@pytest.fixture
def submitted(slurm, recipe, site, tmp_path, monkeypatch):
    """A function: behavior -> number of the submitted job."""

    def submit(behavior, *options):
        monkeypatch.setenv("STAND_IN", behavior)
        ended = here("submit", recipe, "--cluster", site, *options, folder=tmp_path)
        assert ended.code == 0, ended.err
        return re.search(r"submitted job (\d+)", ended.out)[1]

    return submit


def story(tmp_path, run="runs/heat"):
    path = tmp_path / run / "story.txt"
    return path.read_text().splitlines() if path.is_file() else []


def waiting(tmp_path):
    return sum(line.endswith("waits") for line in story(tmp_path)) == 2


def test_the_job_runs_one_task_per_node_and_ends(slurm, submitted, tmp_path):
    number = submitted("end")
    job = slurm.ended(number, SECONDS)
    assert (job["JobState"], job["Restarts"]) == ("COMPLETED", "0")
    assert sorted(story(tmp_path)) == [f"life 0 task {task} of 2: ends with 0" for task in (0, 1)]
    assert (tmp_path / f"runs/heat/slurm-{number}.out").is_file()


def test_code_75_returns_to_the_queue(slurm, submitted, tmp_path):
    job = slurm.ended(submitted("again"), SECONDS)
    assert (job["JobState"], job["Restarts"]) == ("COMPLETED", "1")
    assert {line[:6] for line in story(tmp_path)} == {"life 0", "life 1"}


def test_any_other_code_ends_the_job(slurm, submitted, tmp_path):
    job = slurm.ended(submitted("fail"), SECONDS)
    assert (job["JobState"], job["Restarts"]) == ("FAILED", "0")
    assert not [line for line in story(tmp_path) if line.startswith("life 1")]


def test_no_return_where_the_site_forbids_it(slurm, submitted, site, tmp_path):
    site.write_text(site.read_text() + "requeue: false\n")
    job = slurm.ended(submitted("again"), SECONDS)
    assert (job["JobState"], job["ExitCode"], job["Restarts"]) == ("FAILED", "75:0", "0")


def test_a_signal_to_the_tasks_returns_to_the_queue(slurm, submitted, tmp_path):
    """`scancel --signal` reaches all tasks and leaves the shell alone."""
    number = submitted("wait")
    slurm.wait(lambda: waiting(tmp_path), SECONDS, "both tasks to wait")
    slurm.call("scancel", "--signal=TERM", number)
    job = slurm.ended(number, SECONDS)
    assert (job["JobState"], job["Restarts"]) == ("COMPLETED", "1")
    assert sum(line.endswith("signal 15") for line in story(tmp_path)) >= 2


def test_a_canceled_job_does_not_come_back(slurm, submitted, tmp_path):
    """It saves and exits with 75 like every other job that is told to stop."""
    number = submitted("wait")
    slurm.wait(lambda: waiting(tmp_path), SECONDS, "both tasks to wait")
    slurm.call("scancel", number)
    slurm.ended(number, SECONDS)
    slurm.wait(lambda: "COMPLETING" not in slurm.call("squeue", "--noheader", "-o%T"), SECONDS, "the job to be gone")
    assert slurm.state(number) == "CANCELLED"
    assert not [line for line in story(tmp_path) if line.startswith("life 1")]


@pytest.mark.parametrize("behavior", ["wait", "deaf"])
def test_preempted_by_a_higher_partition_and_finished(slurm, submitted, tmp_path, behavior):
    """Also a run that is ended by the signal because it has only just started."""
    number = submitted(behavior)
    slurm.wait(lambda: waiting(tmp_path), SECONDS, "both tasks to wait")
    (tmp_path / "high.sh").write_text(HIGH)
    assert slurm.ended(slurm.submit(tmp_path / "high.sh"), SECONDS)["JobState"] == "COMPLETED"
    job = slurm.ended(number, SECONDS)
    assert (job["JobState"], job["Restarts"]) == ("COMPLETED", "1")
    assert sum("life 1" in line and "ends with 0" in line for line in story(tmp_path)) == 2


def test_a_killed_task_ends_the_others(slurm, submitted, tmp_path):
    """`srun -K`: they do not wait for ever, and the job starts again."""
    job = slurm.ended(submitted("die"), SECONDS)
    assert (job["JobState"], job["Restarts"]) == ("COMPLETED", "1")
    assert "life 0 task 0 of 2: signal 15" in story(tmp_path)


def test_many_tasks_without_srun_are_refused(slurm, recipe, tmp_path):
    """A script of one's own that runs one process where there should be two."""
    own = f"{sys.executable} -c 'from sciml.cli import main; main()' run {recipe}"
    (tmp_path / "own.sh").write_text(f"#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=1 --output=own.out\n{own}\n")
    job = slurm.ended(slurm.submit(tmp_path / "own.sh"), SECONDS)
    assert job["ExitCode"] == "78:0" and "without srun" in (tmp_path / "own.out").read_text()


def test_one_job_per_run_folder(slurm, submitted, recipe, site, tmp_path):
    number = submitted("wait")
    again = here("submit", recipe, "--cluster", site, folder=tmp_path)
    slurm.call("scancel", number)
    assert again.code == 75 and f"job {number} for the run folder runs/heat is still in the queue" in again.err
    slurm.ended(number, SECONDS)


def test_the_recipe_is_that_of_the_submission(slurm, submitted, recipe, tmp_path):
    """A file that is edited while its job waits does not reach the job."""
    before = recipe.read_text()
    slurm.ended(submitted("end", "seed=3"), SECONDS)
    recipe.write_text("edited: true\n")
    frozen = (tmp_path / "runs/heat/recipe.yaml").read_text()
    assert "seed: 3" in frozen and "edited" not in frozen and before


def test_what_slurm_refuses_is_told_in_its_words(slurm, recipe, site, tmp_path):
    site.write_text("partition: nowhere\n")
    ended = here("submit", recipe, "--cluster", site, folder=tmp_path)
    assert ended.code == 78 and "invalid partition" in ended.err


def test_an_array_larger_than_slurm_allows(slurm, recipe, site, tmp_path):
    """MaxArraySize of the test cluster is 101."""
    ended = here("sweep", recipe, "seed=0:149:150", "--submit", "--cluster", site, folder=tmp_path)
    assert ended.code == 78 and "an array of 150 jobs is larger than Slurm (MaxArraySize) allows" in ended.err
    assert not (tmp_path / "runs").exists()


def test_a_sweep_as_an_array_ends_in_one_table(slurm, recipe, site, tmp_path, monkeypatch):
    """One point fails, one is stopped and returns; the table has the others, names the failed one, and exits by it."""
    monkeypatch.setenv("STAND_IN", "end")
    place = tmp_path / "runs/heat-sweep"
    for point, behavior in {"width=6": "fail", "width=8": "again"}.items():
        (place / point).mkdir(parents=True)
        (place / point / "stand_in.txt").write_text(behavior)
    site.write_text("partition: low\narray: {at_once: 3}\n")
    ended = here("sweep", recipe, "models.fno.width=4,6,8", "--submit", "--cluster", site, folder=tmp_path)
    assert ended.code == 0, ended.err
    table = slurm.ended(re.search(r"submitted job (\d+), which writes the table", ended.out)[1], 2 * SECONDS)
    text = (place / "table.out").read_text()
    assert (table["JobState"], table["ExitCode"]) == ("FAILED", "78:0"), text
    assert re.search(r"width=4 +7 +2\.5e-01\nwidth=8 +7 +2\.5e-01\n", text), text
    assert "width=6: failed (78)" in text and "2 of 3 points are finished" in text
    assert "life 1 task 0 of 1: ends with 0" in story(tmp_path, "runs/heat-sweep/width=8")


@pytest.mark.long
def test_the_time_limit_is_a_signal_to_the_tasks(slurm, submitted, site, tmp_path):
    """`--signal=TERM@60`: Slurm sends it up to a minute early."""
    site.write_text("partition: low\nnodes: 2\ntime: 00:02:00\nsignal: 60\n")
    number = submitted("wait")
    job = slurm.ended(number, 200)
    assert (job["JobState"], job["Restarts"]) == ("COMPLETED", "1")
    assert sum("life 0" in line and line.endswith("signal 15") for line in story(tmp_path)) >= 2


@pytest.mark.long
def test_without_a_signal_the_time_limit_ends_the_job(slurm, submitted, site, tmp_path):
    """The control: Slurm ends the job at its limit, it does not come back."""
    site.write_text("partition: low\nnodes: 2\ntime: 1\nsignal: 0\n")
    job = slurm.ended(submitted("wait"), 200)
    assert job["JobState"] in ENDED and (job["JobState"], job["Restarts"]) == ("TIMEOUT", "0")


@pytest.mark.long
def test_a_dead_node_is_done_without(fragile_cluster, slurm, submitted, site, tmp_path, monkeypatch):
    """With a range of nodes the job goes on with what is left; Slurm itself requeues it."""
    monkeypatch.setenv("SLURM_CONF", str(fragile_cluster.conf))
    site.write_text("partition: low\nnodes: 1-2\n")
    number = submitted("wait")
    fragile_cluster.wait(lambda: waiting(tmp_path), SECONDS, "both tasks to wait")
    fragile_cluster.lose_node("n2")
    job = fragile_cluster.ended(number, 3 * SECONDS)
    assert (job["JobState"], job["Restarts"], job["NodeList"]) == ("COMPLETED", "1", "n1")
    assert "life 1 task 0 of 1: ends with 0" in story(tmp_path)


@pytest.mark.long
def test_a_fixed_number_of_nodes_waits_for_the_dead_one(fragile_cluster, slurm, submitted, tmp_path, monkeypatch):
    """The control: without a range the job stays in the queue, and ends when the node is back."""
    monkeypatch.setenv("SLURM_CONF", str(fragile_cluster.conf))

    def queued() -> str:
        return fragile_cluster.call("squeue", "--noheader", "--format=%T %R")

    number = submitted("wait")
    fragile_cluster.wait(lambda: waiting(tmp_path), SECONDS, "both tasks to wait")
    fragile_cluster.lose_node("n2")
    fragile_cluster.wait(lambda: fragile_cluster.job(number)["Restarts"] == "1", SECONDS, "the node to be given up")
    fragile_cluster.wait(lambda: "(Nodes required" in queued(), SECONDS, "the job to wait for its nodes")
    fragile_cluster.start_node("n2")
    job = fragile_cluster.ended(number, 2 * SECONDS)
    assert (job["JobState"], job["NodeList"]) == ("COMPLETED", "n[1-2]")
