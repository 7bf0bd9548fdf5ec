"""`plan: {data: 8}` in a recipe: the losses of one device, and gradients are all that travels."""

from __future__ import annotations

import shutil
from pathlib import Path

import jax
import numpy as np
import pytest
from tiny_runs import finished, here, metrics, recipe, write

from sciml.parallel.step import build_step
from sciml.parallel.traffic import collectives
from sciml.pipeline.tasks import Context, task_of
from sciml.pipeline.training import start

DOUBLE = (
    "models.fno.train.precision=float64",
    "models.adam={kind: pinn, width: 8, layers: 2, points: 64, train: {steps: 12, precision: float64}}",
)
MODELS = ("fno", "adam", "pinn")


def _trained(devices: int, folder: Path) -> Path:
    """A run folder in which both models were trained on so many devices."""
    shutil.copytree(finished("heat") / "data", folder / "runs/heat/data")
    models = [word for name in MODELS for word in ("--model", name)]
    plan = f"plan={{data: {devices}}}"
    ended = here("train", write("heat", folder), *DOUBLE, plan, *models, folder=folder)
    assert ended.code == 0, ended.err
    return folder / "runs/heat"


@pytest.fixture(scope="module")
def one_and_eight(tmp_path_factory):
    """Run folders of one device and of eight."""
    return [_trained(devices, tmp_path_factory.mktemp(f"devices{devices}")) for devices in (1, 8)]


@pytest.mark.parametrize("model", MODELS)
def test_same_losses(one_and_eight, model):
    """To rounding: sums over rows are made in another order.

    Levenberg-Marquardt amplifies that by the condition of its normal equations, so the loss of the PINN, which falls
    by eight orders of magnitude, is held to 1e-12 of where it began.
    """
    one, eight = ([r["loss"] for r in metrics(folder, model) if "loss" in r] for folder in one_and_eight)
    assert len(one) == 12 and one[-1] < one[0]
    np.testing.assert_allclose(eight, one, rtol=1e-12, atol=1e-12 * one[0] if model == "pinn" else 0.0)


@pytest.mark.parametrize("model", MODELS)
def test_nothing_is_gathered(model):
    chosen = recipe("heat", *DOUBLE, "plan={data: 8}")
    context, section = Context(chosen, finished("heat")), chosen.models[model]
    prepared = task_of(section).prepare(context, section)
    assert prepared.plan.data == 8 == len(jax.devices())
    optimizer, state = start(context, section, prepared, prepared.plan)
    step = build_step(prepared.model, prepared.objective, optimizer, prepared.plan)
    program = step.function.lower(state, next(prepared.batches)).compile().as_text()
    assert {c.kind for c in collectives(program)} == {"all-reduce"}
