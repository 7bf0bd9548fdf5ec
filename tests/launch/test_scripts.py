"""What a batch script decides when its run has ended, with stand-ins for srun, squeue and scontrol."""

from __future__ import annotations

import os
import subprocess

import pytest

from sciml.recipe import Site

FAKES = {
    "srun": 'echo "srun $*" >> calls; exit $CODE',
    "squeue": "echo $STATE",
    "scontrol": 'echo "scontrol $*" >> calls',
}


@pytest.fixture
def ended(tmp_path):
    """A function: exit code of the run, and more -> (exit code of the script, what it called)."""
    for name, text in FAKES.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{text}\n")
        (tmp_path / name).chmod(0o755)

    def run(code, *, state="RUNNING", restarts=0, site=None, array=None):
        script = (site or Site()).script(
            ("t",), {}, ["a b", "c"], ("sciml", "run", "$folder"), is_array=array is not None
        )
        job = {"SLURM_JOB_ID": "7", "SLURM_RESTART_COUNT": str(restarts), "CODE": str(code), "STATE": state}
        if array is not None:
            job |= {"SLURM_ARRAY_JOB_ID": "5", "SLURM_ARRAY_TASK_ID": str(array)}
        for folder in ("a b", "c"):
            (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / "calls").write_text("")
        environment = {**os.environ, **job, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
        command = ["bash", "-c", script.text()]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, (tmp_path / "calls").read_text().splitlines()

    return run


@pytest.mark.parametrize("code", [0, 1, 2, 65, 74, 78, 79, 130])
def test_these_codes_end_the_job(ended, code):
    assert ended(code) == (code, ["srun -K sciml run a b"])


def test_stopped_and_saved_returns_to_the_queue(ended):
    assert ended(75) == (75, ["srun -K sciml run a b", "scontrol requeue 7"])


@pytest.mark.parametrize("state", ["COMPLETING", "CANCELLED", ""])
def test_a_canceled_job_does_not_return(ended, state):
    assert ended(75, state=state) == (75, ["srun -K sciml run a b"])


def test_not_more_often_than_the_site_says(ended):
    site = Site(restarts=2)
    assert [len(ended(75, restarts=count, site=site)[1]) for count in (0, 1, 2)] == [2, 2, 1]
    assert len(ended(75, site=Site(requeue=False))[1]) == 1


def test_lost_or_killed_before_it_could_save(ended):
    """Three returns in a row; a run that saved starts the count again."""
    assert [len(ended(code)[1]) for code in (80, 137, 143, 143)] == [2, 2, 2, 1]
    ended(75)
    assert len(ended(143)[1]) == 2


def test_a_job_of_an_array(ended, tmp_path):
    """Its own folder, its own number, and the code is left for the table."""
    assert ended(75, array=1) == (75, ["srun -K sciml run c", "scontrol requeue 5_1"])
    assert (tmp_path / "c/exit_code").read_text() == "75\n"
    assert ended(0, array=0) == (0, ["srun -K sciml run a b"])
    assert (tmp_path / "a b/exit_code").read_text() == "0\n"


def test_what_is_set_up_must_succeed(ended):
    assert ended(0, site=Site(setup=("false",))) == (1, [])
