"""`sciml run` that is killed, stopped and given again ends as if nothing had happened, for every kind of model."""

from __future__ import annotations

import json

import numpy as np
import pytest
from comparison import assert_identical
from tiny_runs import SCIML, checkpoint, finished, metrics, sciml, write

FAULTS = [  # one after the other in the same run folder; checkpoints are due at steps 4, 8 and 12
    ("generate:2:SIGKILL", -9),
    ("train:fno:3:SIGTERM", 75),
    ("train:fno:7:SIGKILL", -9),
    ("train:deeponet:3:SIGINT", 130),
    ("train:deeponet:7:SIGKILL", -9),
    ("train:mlp:7:SIGKILL", -9),
    ("train:pinn:7:SIGKILL", -9),
]
MODELS = ("fno", "deeponet", "mlp", "pinn")


@pytest.fixture(scope="module")
def battered(tmp_path_factory):
    """(run folder, how each process ended): the same command, again and again."""
    folder = tmp_path_factory.mktemp("battered")
    recipe = write("heat", folder)
    ended = {fault: sciml("run", recipe, folder=folder, fault=fault) for fault, _ in FAULTS}
    ended["none"] = sciml("run", recipe, folder=folder)
    return folder / "runs/heat", ended


@pytest.mark.parametrize(("fault", "code"), [*FAULTS, ("none", 0)])
def test_exit_codes(battered, fault, code):
    ended = battered[1][fault]
    assert ended.code == code, ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("model", MODELS)
def test_same_bits_as_undisturbed(battered, model):
    """Parameters, optimizer state, step, random key, position in the data; and every record of the training."""
    folder, whole = battered[0], finished("heat")
    assert checkpoint(folder, model) == checkpoint(whole, model)
    assert metrics(folder, model) == metrics(whole, model)
    surrogates = (place / f"{model}.sciml/params.npz" for place in (folder, whole))
    assert_identical(*(dict(np.load(path)) for path in surrogates))


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ("train:fno:3:SIGTERM", "SIGTERM: stopped at step 3 of 12, which is saved"),
        ("train:deeponet:3:SIGINT", "SIGINT: stopped at step 3 of 12, which is saved"),
    ],
)
def test_a_signal_is_explained(battered, fault, text):
    err = battered[1][fault].err
    assert text in err and "start the same command again" in err


def test_each_process_took_up_where_the_one_before_it_ended(battered):
    ended = battered[1]
    assert "data: 8 samples computed, 16 found" in ended["train:fno:3:SIGTERM"].out
    assert "fno: continues from step 3" in ended["train:fno:7:SIGKILL"].out
    assert "fno: continues from step 4" in ended["train:deeponet:3:SIGINT"].out
    assert "deeponet: continues from step 3" in ended["train:deeponet:7:SIGKILL"].out
    assert "deeponet: continues from step 4" in ended["train:mlp:7:SIGKILL"].out
    assert "mlp: continues from step 4" in ended["train:pinn:7:SIGKILL"].out
    assert "fno: trained already (12 steps)" in ended["train:pinn:7:SIGKILL"].out
    assert "pinn: continues from step 4" in ended["none"].out


def test_same_results(battered):
    """All but what a clock says."""

    def errors(folder):
        rows = json.loads((folder / "results.json").read_text())["rows"]
        return {row["name"]: (row["error"], row["error_spread"], row["note"]) for row in rows}

    assert errors(battered[0]) == errors(finished("heat"))


def test_the_command_is_the_real_one():
    """What `faulty_sciml` calls is what the console script calls."""
    assert SCIML[-1].startswith("import sys; from sciml.cli import main")
