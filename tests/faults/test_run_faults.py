"""What goes wrong in a whole run: one message, one exit code, and nothing lost. Every injection has its control."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
from pathlib import Path

import numpy as np
import pytest
from tiny_runs import checkpoint, finished, here, metrics, tree, write

from sciml.data import Dataset
from sciml.runfolder import FolderLock


@pytest.fixture
def run(tmp_path):
    """A copy of the finished run with its recipe file beside it; commands are given in `tmp_path`."""
    shutil.copytree(finished("heat"), tmp_path / "run")
    write("heat", tmp_path)
    return tmp_path / "run"


@pytest.fixture
def data_only(tmp_path):
    """A run folder with data and no model trained."""
    shutil.copytree(finished("heat") / "data", tmp_path / "run" / "data")
    write("heat", tmp_path)
    return tmp_path / "run"


def command(folder: Path, stage: str, *arguments: str):
    """A stage of the recipe beside `folder`, which is called `run`."""
    return here(stage, "heat.yaml", *arguments, "--run-folder", "run", folder=folder.parent)


@contextlib.contextmanager
def no_room_for(size: int):
    """A limit on the size of a file stands for the full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def flip(path: Path) -> None:
    """One bit in the middle."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


def largest(folder: Path, pattern: str) -> Path:
    """The largest file."""
    return max(folder.glob(pattern), key=lambda path: path.stat().st_size)


@pytest.mark.parametrize("stage", ["train", "export"])
def test_control(run, stage):
    ended = command(run, stage)
    assert ended.code == 0, ended.err
    assert checkpoint(run, "fno") == checkpoint(finished("heat"), "fno")


@pytest.mark.parametrize("stage", ["run", "generate", "train", "evaluate", "export"])
@pytest.mark.parametrize(
    ("change", "text"),
    [
        ("models.fno.width=6", "models.fno.width: was 8, is 6"),
        ("problem.horizon=1.0", "problem.horizon: was 0.5, is 1.0"),
        ("seed=1", "seed: was 0, is 1"),
    ],
)
def test_a_changed_recipe(run, stage, change, text):
    before = tree(run)
    ended = command(run, stage, change)
    assert ended.code == 78
    assert "made with another recipe; nothing was changed" in ended.err and text in ended.err
    assert tree(run) == before


def test_a_model_may_be_added(run):
    extra = "models.small={kind: mlp, width: 4, train: {steps: 2, batch: 8}}"
    ended = command(run, "train", extra)
    assert ended.code == 0, ended.err
    assert "fno: trained already" in ended.out and metrics(run, "small")[-1]["step"] == 2


@pytest.mark.parametrize("stage", ["run", "generate", "train", "evaluate", "export"])
def test_a_folder_in_use(run, stage):
    before = tree(run)
    with FolderLock(run):
        ended = command(run, stage)
    assert ended.code == 75
    assert "in use by another process" in ended.err and f"process {os.getpid()} on" in ended.err
    assert tree(run) == before


def test_a_full_disk_while_generating(tmp_path):
    write("heat", tmp_path)
    with no_room_for(10_000):
        ended = command(tmp_path / "run", "generate")
    assert ended.code == 74 and "the disk is full" in ended.err, ended.err
    assert not list((tmp_path / "run/data").glob("shard*"))
    ended = command(tmp_path / "run", "generate")
    assert ended.code == 0 and "24 samples computed, 0 found" in ended.out
    assert _content(tmp_path / "run") == _content(finished("heat"))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # from the writing threads of orbax
def test_a_full_disk_while_training(data_only):
    with no_room_for(20_000):
        ended = command(data_only, "train", "--model", "fno")
    assert ended.code == 74 and "no space left" in ended.err and "start the same command again" in ended.err, ended.err
    ended = command(data_only, "train", "--model", "fno")
    assert ended.code == 0, ended.err
    assert checkpoint(data_only, "fno") == checkpoint(finished("heat"), "fno")


def test_a_training_that_becomes_nan(data_only):
    changes = ("models.mlp.train.optimizer={kind: adam, learning_rate: 1e30}", "models.mlp.train.checkpoint_every=1")
    ended = command(data_only, "train", "--model", "mlp", *changes)
    assert ended.code == 79, ended.err
    assert "not finite at step" in ended.err and "the last good checkpoint is" in ended.err
    assert "lower learning_rate" in ended.err and "Traceback" not in ended.err


def test_a_flipped_bit_in_the_data(run):
    flip(largest(run, "data/shard-*.h5"))
    for stage in ("train", "evaluate"):
        ended = command(run, stage)
        assert ended.code == 76 and "shard-" in ended.err and "was altered" in ended.err


def test_a_flipped_bit_in_the_newest_checkpoint(run, caplog):
    """The one before it is used, and the rest trained again: the same bits."""
    flip(largest(run / "models/fno/checkpoints/12", "**/d/*"))
    ended = command(run, "train", "--model", "fno")
    assert ended.code == 0, ended.err
    assert "checkpoint 12 is damaged and is skipped" in caplog.text
    assert "fno: continues from step 8" in ended.out
    assert checkpoint(run, "fno") == checkpoint(finished("heat"), "fno")


def test_a_flipped_bit_in_every_checkpoint(run):
    for step in (4, 8, 12):
        flip(largest(run / f"models/fno/checkpoints/{step}", "**/d/*"))
    before = tree(run / "models")
    ended = command(run, "train", "--model", "fno")
    assert ended.code == 76 and "every checkpoint" in ended.err
    assert tree(run / "models") == before


def test_a_flipped_bit_in_an_artifact(run):
    rows = Dataset.open(run / "data").read(["u0", "diffusivity"], split="test")
    np.savez(run.parent / "in.npz", **rows)
    control = here("predict", "run/fno.sciml", "in.npz", "-o", "out.npz", folder=run.parent)
    assert control.code == 0 and "u: shape (4, 4, 16)" in control.out, control.err
    flip(largest(run / "fno.sciml", "*.npz"))
    ended = here("predict", "run/fno.sciml", "in.npz", "-o", "again.npz", folder=run.parent)
    assert ended.code == 76 and "fno.sciml" in ended.err
    assert not (run.parent / "again.npz").exists()


def test_an_unstable_step(tmp_path):
    """RK4 on the heat equation: refused, or divided when the recipe says so (the control)."""
    write("heat", tmp_path)
    method = "data.method={kind: rk4, dt: 0.125, unstable: %s}"
    ended = command(tmp_path / "run", "generate", method % "refuse")
    assert ended.code == 79, ended.err
    assert "sample 0: the time step is unstable" in ended.err and "dt <= 0.0" in ended.err
    assert not list((tmp_path / "run/data").glob("shard*"))
    shutil.rmtree(tmp_path / "run")
    control = command(tmp_path / "run", "generate", method % "substep")
    assert control.code == 0, control.err


def test_a_coefficient_drawn_outside_of_its_limits(tmp_path):
    write("heat", tmp_path)
    drawn = "problem.equation.diffusivity={kind: normal, mean: -0.01, std: 0.001}"
    ended = command(tmp_path / "run", "generate", drawn)
    assert ended.code == 78 and "diffusivity of sample 0" in ended.err and ">= 0" in ended.err, ended.err
    assert not list((tmp_path / "run/data").glob("shard*"))


@pytest.mark.parametrize(
    "change",
    ["problem.equation.diffusivity=-0.01", "models.fno.widht=3", "data.grid.x=2", "models.mlp.train.steps=0"],
)
def test_a_mistake_in_the_recipe_makes_no_folder(tmp_path, change):
    write("heat", tmp_path)
    ended = command(tmp_path / "run", "run", change)
    assert ended.code == 78 and change.split("=")[0] in ended.err
    assert not (tmp_path / "run").exists()


BLOW_UP = '''
from sciml.equations import Evolution, Field, equation, parameter


@equation
class BlowUp(Evolution):
    """u_t = r u^2, infinite at t = 1/(r u0)."""

    fields = (Field("u"),)
    rate: float = parameter(1.0, unit="1/s")

    def nonstiff(self, u, d):
        return {"u": self.rate * u.u * u.u}
'''


def test_a_solution_that_blows_up_is_named_and_not_written(tmp_path):
    """Growth rates from 0.5 to 3 per second and u0 = 1: some samples are infinite before t = 1 s, others are not."""
    (tmp_path / "mine.py").write_text(BLOW_UP)
    path = write("heat", tmp_path)
    text = path.read_text().replace("kind: heat, diffusivity:", 'kind: "mine.py:BlowUp", rate:')
    text = text.replace("low: 0.02, high: 0.06", "low: 0.5, high: 3.0").replace("horizon: 0.5", "horizon: 1.0")
    text = text.replace("u: {kind: fourier_series, modes: 2}", "u: 1.0").replace("kind: etdrk4", "kind: rk4")
    path.write_text(text[: text.index("models:")] + "models: {mlp: {kind: mlp, train: {batch: 8}}}")
    ended = command(tmp_path / "run", "generate")
    assert ended.code == 79, ended.err
    assert "samples blew up and were not written; the others are stored" in ended.err
    manifest = json.loads((tmp_path / "run/data/manifest.json").read_text())
    stored = {i for shard in manifest["shards"] for first, last in shard["ids"] for i in range(first, last + 1)}
    assert 0 < len(stored) < 24 and not manifest["complete"]
    named = {int(part.split(":")[0].split()[-1]) for part in ended.err.split("sample ")[1:] if ":" in part[:6]}
    assert named and not named & stored
    assert "t = " in ended.err or "time" in ended.err


def _content(folder: Path) -> str:
    return Dataset.open(folder / "data").content_hash()
