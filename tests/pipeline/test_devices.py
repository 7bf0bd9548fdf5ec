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


DEEP = (
    "models.deep={kind: transformer, width: 8, heads: 2, layers: 4, patch: [2], waves: 2, dtype: float64, "
    "train: {steps: 6, batch: 16, precision: float64, checkpoint_every: 3}}",
)
SPREAD = "plan={fsdp: 2, tensor: 2, pipeline: 2, zero: 3, microbatches: 2, schedule: 1f1b, remat: true}"


def _trained(plan: str, folder: Path, names: tuple[str, ...] = MODELS, more: tuple[str, ...] = DOUBLE) -> Path:
    """A run folder in which models were trained under a plan."""
    if not (folder / "runs").exists():
        shutil.copytree(finished("heat") / "data", folder / "runs/heat/data")
    models = [word for name in names for word in ("--model", name)]
    ended = here("train", write("heat", folder), *more, plan, *models, folder=folder)
    assert ended.code == 0, ended.err
    return folder / "runs/heat"


@pytest.fixture(scope="module")
def one_and_eight(tmp_path_factory):
    """Run folders of one device and of eight."""
    return [_trained(f"plan={{data: {n}}}", tmp_path_factory.mktemp(f"devices{n}")) for n in (1, 8)]


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


def _losses(folder: Path) -> list[float]:
    return [record["loss"] for record in metrics(folder, "deep") if "loss" in record]


def test_a_deep_model_over_every_kind_of_device_and_back(tmp_path):
    """Stored in shards, split in width and depth; then half of the steps so and half on one device: one loss curve."""
    places = [tmp_path / name for name in ("one", "spread", "both")]
    for place in places:
        place.mkdir()
    alone = _trained("plan={data: 1}", places[0], ("deep",), DEEP)
    spread = _trained(SPREAD, places[1], ("deep",), DEEP)
    half = _trained(SPREAD, places[2], ("deep",), DEEP)
    shutil.rmtree(half / "models/deep/checkpoints/6")
    (half / "models/deep/metrics.jsonl").unlink()
    both = _trained("plan={data: 4, accumulate: 2}", places[2], ("deep",), DEEP)
    one, eight, again = (_losses(folder) for folder in (alone, spread, both))
    assert len(one) == 6 and len(again) == 3
    np.testing.assert_allclose(eight, one, rtol=1e-12)
    np.testing.assert_allclose(again, one[3:], rtol=1e-12)


def test_the_learning_rate_grows_with_the_batch():
    context = Context(recipe("heat", "models.fno.train.base_batch=4"), finished("heat"))
    section = context.recipe.models["fno"]
    prepared = task_of(section).prepare(context, section)
    optimizer, _ = start(context, section, prepared, prepared.plan)
    plain = section.train.optimizer.build().build(section.train.steps)
    step = section.train.steps // 2
    assert float(optimizer.learning_rate(step)) == pytest.approx(
        float(plain.learning_rate(step)) * section.train.batch / 4
    )
