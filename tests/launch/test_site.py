"""Site files: every mistake is told with its place, before anything is submitted; the script says what they ask for."""

from __future__ import annotations

import subprocess

import pytest
from tiny_runs import here

from sciml.recipe import RecipeError, read_site

MISTAKES = {
    "gpus: 4": "site.yaml:1:1: gpus: unknown key 'gpus'",
    "partitoin: gpu": "site.yaml:1:1: partitoin: unknown key 'partitoin', did you mean 'partition'?",
    "account: my project": "account: must be one word (got 'my project')",
    "nodes: 4-1": "nodes: the range is reversed: write 1-4 (got '4-1')",
    "nodes: 0": "nodes: must be a number of nodes >= 1, or a range such as 1-4 (got 0)",
    "nodes: many": "nodes: must be a number of nodes >= 1, or a range such as 1-4 (got 'many')",
    "time: 4:00": "(Slurm takes 4:00 for four minutes) (got '4:00')",
    "time: 2 hours": "time: must be hours:minutes:seconds, days-hours:minutes:seconds or minutes (got '2 hours')",
    "time: 1:61:00": "time: must be hours:minutes:seconds",
    "time: 00:00:00": "time: must be hours:minutes:seconds",
    "{time: 2, signal: 120}": "signal: must be less than the time limit, which is 120 s (got 120)",
    "memory: 64 GB": "memory: must be a whole number and K, M, G or T, such as 64G (got '64 GB')",
    "tasks_per_node: 0": "tasks_per_node: must be >= 1 (got 0)",
    "gpus_per_node: -1": "gpus_per_node: must be >= 0 (got -1)",
    "container: {image: a.sif, runtime: aptainer}": "(got 'aptainer'), did you mean 'apptainer'?",
    "container: {runtime: enroot}": "container.image: this key is required",
    "environment: {1X: a}": "environment.1X: must be the name of a variable (got '1X')",
    "environment: {X: [1]}": "environment.X: must be text or a number (got [1])",
    "sbatch: [constraint]": "sbatch.0: must be an option of sbatch, such as --constraint=a100 (got 'constraint')",
    'setup: "a\\nb"': "setup.0: must be one line of text",
    "array: {at_once: 0}": "array.at_once: must be >= 1 (got 0)",
    "# nothing": "the file is empty; a file with the line `partition: NAME`",
    "requeue: perhaps": "requeue: must be true or false (got 'perhaps')",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_is_told_with_its_place(text, tmp_path):
    path = tmp_path / "site.yaml"
    path.write_text(text + "\n")
    with pytest.raises(RecipeError) as caught:
        read_site(path)
    assert MISTAKES[text] in str(caught.value) and f"{path}:1:" in caught.value.problems[0]


def test_all_mistakes_at_once(tmp_path):
    path = tmp_path / "site.yaml"
    path.write_text("nodes: 4-1\ntime: 4:00\nqueue: a\n")
    with pytest.raises(RecipeError) as caught:
        read_site(path)
    assert [line.split(": ")[1] for line in caught.value.problems] == ["nodes", "time", "queue"]


@pytest.mark.parametrize(
    ("given", "limit"), [("90", "01:30:00"), ("1500", "1-01:00:00"), ("02:00:00", "02:00:00"), ("2-12:00:00",) * 2]
)
def test_time_limits(given, limit, tmp_path):
    (tmp_path / "site.yaml").write_text(f"time: {given}\n")
    assert read_site(tmp_path / "site.yaml").options("a", "b", "c")["time"] == limit


def _printed(text, recipe, tmp_path, *options):
    (tmp_path / "site.yaml").write_text(text)
    ended = here("submit", recipe, *options, "--cluster", "site.yaml", "--print", folder=tmp_path)
    assert ended.code == 0, ended.err
    checked = subprocess.run(["bash", "-n"], input=ended.out, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    return ended.out.splitlines()


def test_every_key_is_in_the_script(recipe, tmp_path):
    site = """
partition: gpu
account: climate
qos: long
nodes: 2
tasks_per_node: 4
gpus_per_node: 4
cpus_per_task: 8
memory: 200G
time: 12:00:00
signal: 300
modules: [cuda/12.4, hdf5]
setup: source venv/bin/activate
environment: {NCCL_DEBUG: WARN, WORDS: two words, OMP_NUM_THREADS: 8}
sbatch: ["#SBATCH --constraint=a100", --exclusive]
srun: --cpu-bind=cores
"""
    lines = _printed(site, recipe, tmp_path, "seed=1")
    options = {line.removeprefix("#SBATCH --") for line in lines if line.startswith("#SBATCH")}
    assert options == {
        *("job-name=heat", f"chdir={tmp_path}", "output=runs/heat/slurm-%j.out", "open-mode=append"),
        *("partition=gpu", "account=climate", "qos=long", "nodes=2", "ntasks-per-node=4", "gpus-per-node=4"),
        *("cpus-per-task=8", "mem=200G", "time=12:00:00", "signal=TERM@300", "requeue"),
        *("constraint=a100", "exclusive"),
    }
    for line in (
        "module load cuda/12.4 hdf5",
        "export NCCL_DEBUG=WARN",
        "export WORDS='two words'",
        "export OMP_NUM_THREADS=8",
        "source venv/bin/activate",
        "folder=runs/heat",
    ):
        assert line in lines
    start = 'srun -K --cpus-per-task=8 --cpu-bind=cores sciml run "$folder/recipe.yaml" -o "$folder" || code=$?'
    assert start in lines and "seed=1" in lines[1]
    assert not (tmp_path / "runs").exists()


def test_a_range_of_nodes(recipe, tmp_path):
    """Told the tasks per node, sbatch would give the least number of nodes; srun is told instead."""
    lines = _printed("nodes: 1-4\ntasks_per_node: 4\ncpus_per_task: 8\n", recipe, tmp_path)
    assert {"#SBATCH --nodes=1-4", "#SBATCH --cpus-per-task=32"} <= set(lines)
    assert not [line for line in lines if line.startswith("#SBATCH --ntasks")]
    assert [line for line in lines if line.startswith("srun -K --ntasks-per-node=4 --cpus-per-task=8 sciml run")]


def test_the_command_line_wins(recipe, tmp_path):
    lines = _printed("nodes: 1\ntime: 10\n", recipe, tmp_path, "--nodes", "2", "--time", "01:00:00")
    assert {"#SBATCH --nodes=2", "#SBATCH --time=01:00:00"} <= set(lines)
    ended = here("submit", recipe, "--cluster", "site.yaml", "--nodes", "3-2", "--print", folder=tmp_path)
    assert ended.code == 78 and "command line: nodes=3-2: nodes: the range is reversed" in ended.err


@pytest.mark.parametrize(
    ("container", "start"),
    [
        ("{image: a.sif, mounts: [/scratch]}", "srun -K apptainer exec --bind /scratch a.sif sciml run"),
        ("{image: a.sif}\ngpus_per_node: 2", "srun -K apptainer exec --nv --bind {} a.sif sciml run"),
        ("{image: a+b, runtime: enroot, mounts: /s}", "srun -K enroot start --mount /s a+b sciml run"),
        (
            "{image: ghcr.io#a:1, runtime: pyxis, mounts: [/s, /t]}",
            "srun -K '--container-image=ghcr.io#a:1' --container-mounts=/s,/t sciml run",
        ),
    ],
)
def test_containers(container, start, recipe, tmp_path):
    lines = _printed(f"container: {container}\n", recipe, tmp_path)
    assert [line for line in lines if line.startswith(start.format(tmp_path))], lines


def test_odd_names_are_quoted(recipe, tmp_path):
    odd = tmp_path / "a folder; with 'words'"
    odd.mkdir()
    (odd / "heat.yaml").write_text(recipe.read_text())
    lines = _printed("nodes: 1", odd / "heat.yaml", tmp_path, "-o", "runs/it's 100%")
    assert "folder='runs/it'\"'\"'s 100%'" in lines
    assert "#SBATCH --output='runs/it'\"'\"'s 100%%/slurm-%j.out'" in lines


def test_shipped_site_files(recipe, repository, tmp_path):
    shipped = sorted((repository / "experiments/sites").glob("*.yaml"))
    assert shipped
    for path in shipped:
        assert here("submit", recipe, "--cluster", path, "--print", folder=tmp_path).code == 0


def test_mistakes_of_the_command(recipe, site, tmp_path, monkeypatch):
    """Each is told before anything is written."""
    monkeypatch.setenv("PATH", "")
    without = here("submit", recipe, "--cluster", site, folder=tmp_path)
    assert without.code == 78 and "there is no program sbatch" in without.err and "--print" in without.err
    sweep = here("sweep", recipe, "seed=0,1", "--submit", "--cluster", site, folder=tmp_path)
    assert sweep.code == 78 and "there is no program sbatch" in sweep.err
    assert here("submit", recipe, folder=tmp_path).code == 2
    absent = here("submit", recipe, "--cluster", "sight.yaml", folder=tmp_path)
    assert absent.code == 78 and "no site file sight.yaml, did you mean 'site.yaml'?" in absent.err
    unknown = here("submit", recipe, "models.fno.widht=3", "--cluster", site, folder=tmp_path)
    assert unknown.code == 78 and "did you mean 'width'?" in unknown.err
    assert not (tmp_path / "runs").exists()


SAID = {
    "sbatch: fatal: Could not establish a configuration source": (78, "knows no cluster", "SLURM_CONF"),
    "sbatch: error: Unable to contact slurm controller (connect failure)": (75, "Slurm does not answer", "later"),
    "sbatch: error: invalid partition specified: low": (78, "Slurm refused the job", "edit the site file"),
}


@pytest.mark.parametrize("words", SAID)
def test_a_site_file_is_blamed_only_for_what_it_says(words, recipe, site, tmp_path, monkeypatch):
    """A Slurm that is installed and not set up, one that is silent, and (the control) one that refuses the job."""
    code, what, fix = SAID[words]
    for name in ("sbatch", "scontrol"):
        program = tmp_path / "programs" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f'#!/bin/sh\necho "{words}" >&2\nexit 1\n')
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "programs"))
    ended = here("submit", recipe, "--cluster", site, folder=tmp_path)
    assert ended.code == code and what in ended.err and fix in ended.err
    assert ("site file asks" in ended.err) == (what == "Slurm refused the job")
