"""`--profile`: the trace, the ten lines, and what they add up to."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import tiny_runs

from sciml.pipeline.accounting import COSTS
from sciml.pipeline.profiling import NUMBERS, TEXT, summary
from sciml.training.hooks.watching import COMPILING, PURPOSES, STEPPING, TRACING, WAITING

MPIEXEC = shutil.which("mpiexec")


def test_the_summary_has_ten_lines():
    spent = dict.fromkeys(PURPOSES, 1.0) | {STEPPING: 2.0}
    lines = summary("fno", spent, 1001, Path("profile/fno")).splitlines()
    assert len(lines) == 10
    assert lines[0] == "fno: 1001 steps in 9.0 s"
    assert lines[2].split() == ["waiting", "for", "data", "1.00", "s", "11.1", "%"]
    assert lines[-1] == "  a step takes 3.00 ms, 1.00 ms of it waiting for data"


@pytest.mark.parametrize(("steps", "profiled"), [(40, True), (6, True), (6, False)])
def test_a_trace_and_a_summary_on_request(tmp_path, steps, profiled):
    """Of a training that is too short for the whole trace as well; nothing without the option."""
    tiny_runs.write("heat", tmp_path)
    small = ("data.samples.train=8", f"models.mlp.train.steps={steps}")
    tiny_runs.here("generate", "heat.yaml", *small, folder=tmp_path)
    option = ["--profile"] if profiled else []
    ended = tiny_runs.here("train", "heat.yaml", *small, "--model", "mlp", *option, folder=tmp_path)
    assert ended.code == 0, ended.err
    place = tmp_path / "runs" / "heat" / "profile" / "mlp"
    assert place.exists() == profiled
    if not profiled:
        return
    traces = list(place.rglob("*.xplane.pb"))
    assert len(traces) == 1 and traces[0].stat().st_size > 1000
    assert (place / TEXT).read_text().strip() in ended.out
    found = json.loads((place / NUMBERS).read_text())
    assert found["steps"] == steps
    assert all(found["seconds"][purpose] > 0 for purpose in (COMPILING, WAITING, STEPPING, TRACING))


@pytest.mark.long
@pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec: pip install 'sciml[mpi]'")
def test_of_two_processes_the_first_one_writes(tmp_path, monkeypatch):
    """The other one, which has less to do at the end, does not take it along."""
    tiny_runs.write("heat", tmp_path)
    few, two = ("data.samples.train=8", "models.mlp.train.steps=6", "plan.data=2"), (str(MPIEXEC), "-n", "2")
    tiny_runs.here("generate", "heat.yaml", *few, folder=tmp_path)
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=1")
    options = ("--model", "mlp", "--profile")
    ended = tiny_runs.sciml("train", "heat.yaml", *few, *options, folder=tmp_path, before=two)
    assert ended.code == 0, ended.err
    place = tmp_path / "runs" / "heat" / "profile" / "mlp"
    assert (place / TEXT).read_text().strip() in ended.out
    assert len(list(place.rglob("*.xplane.pb"))) == 1
    costs = json.loads((tmp_path / "runs" / "heat" / "models" / "mlp" / COSTS).read_text())
    assert costs["devices"] == 2 and costs["bytes_sent_per_device"]["data"] > 0
