"""`run` and its stages: what reaches the pipeline, and what each failure becomes."""

from __future__ import annotations

from pathlib import Path

import pytest

from sciml.errors import Interrupted, NumericalError


@pytest.mark.parametrize("stage", ["run", "generate", "evaluate", "export"])
def test_stages_get_the_recipe_and_the_folder(run_sciml, pipeline, heat, stage):
    assert run_sciml(stage, heat, "seed=3").code == 0
    ((called, (recipe, folder, *_)),) = pipeline.calls
    assert (called, recipe.seed, folder) == (stage, 3, Path("runs/heat"))


def test_the_run_folder_can_be_chosen(run_sciml, pipeline, heat):
    run_sciml("run", heat, "--run-folder", "elsewhere")
    run_sciml("run", heat, "run=some/where")
    assert [arguments[1] for _, arguments in pipeline.calls] == [Path("elsewhere"), Path("some/where")]


def test_a_run_folder_stands_for_its_recipe(run_sciml, pipeline, heat):
    folder = Path("moved")
    folder.mkdir()
    heat.rename(folder / "recipe.yaml")
    assert run_sciml("run", folder).code == 0
    assert pipeline.calls[0][1][1] == folder


def test_a_profile_is_asked_for(run_sciml, pipeline, heat):
    for stage in ("run", "train"):
        run_sciml(stage, heat, "--profile")
        run_sciml(stage, heat)
    assert [arguments[-1] for _, arguments in pipeline.calls] == [True, False, True, False]


def test_train_takes_names_of_models(run_sciml, pipeline, heat):
    run_sciml("train", heat, "--model", "fno")
    run_sciml("train", heat)
    assert [arguments[2] for _, arguments in pipeline.calls] == [["fno"], None]
    result = run_sciml("train", heat, "--model", "fmo")
    assert result.code == 2
    assert "no model 'fmo'" in result.errors


def test_dry_run_only_describes(run_sciml, pipeline, heat):
    result = run_sciml("run", heat, "--dry-run")
    assert (result.code, result.output, pipeline.calls) == (0, "described heat\n", [])


def test_a_wrong_recipe_never_reaches_the_pipeline(run_sciml, pipeline, heat):
    result = run_sciml("run", heat, "models.fno.widht=3")
    assert result.code == 78
    expected = "command line: models.fno.widht=3: models.fno.widht: unknown key 'widht', did you mean 'width'?"
    assert expected in result.errors
    assert pipeline.calls == []
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("failure", "code", "message"),
    [
        (
            NumericalError("diverged", got="NaN", fix="dt: 0.001"),
            79,
            "diverged\n  got: NaN\n  write instead: dt: 0.001",
        ),
        (Interrupted("stopped at step 12"), 75, "stopped at step 12"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (PermissionError(13, "Permission denied", "runs"), 77, "runs: Permission denied"),
        (OSError(28, "No space left on device", "shard.h5"), 74, "shard.h5: No space left on device"),
        (ZeroDivisionError("by zero"), 70, "internal error: ZeroDivisionError: by zero (set SCIML_DEBUG=1"),
    ],
)
def test_failures_have_one_message_and_a_code(run_sciml, pipeline, heat, failure, code, message):
    pipeline.failure = failure
    result = run_sciml("run", heat)
    assert result.code == code
    assert message in result.errors
    assert "Traceback" not in result.errors


def test_ctrl_c_that_saved_its_state(run_sciml, pipeline, heat):
    pipeline.failure = Interrupted("saved at step 12")
    pipeline.failure.exit_code = 130
    assert run_sciml("run", heat).code == 130


def test_the_traceback_on_request(run_sciml, pipeline, heat, monkeypatch):
    monkeypatch.setenv("SCIML_DEBUG", "1")
    pipeline.failure = ZeroDivisionError("by zero")
    result = run_sciml("run", heat)
    assert "Traceback" in result.errors and result.code == 70


def test_wrong_usage(run_sciml):
    assert run_sciml("frobnicate").code == 2
    assert run_sciml("run").code == 2
    assert run_sciml("--version").output.startswith("sciml ")
