"""Training the models of a recipe: one folder per model, resumed from its last verified checkpoint."""

from __future__ import annotations

import dataclasses
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from flax import nnx

from sciml.checkpoint import Checkpoints, noted, these
from sciml.errors import ConfigError, DataError, IntegrityError
from sciml.launch.job import Job
from sciml.parallel.compression import compressed
from sciml.parallel.plan import Plan
from sciml.parallel.step import build_step
from sciml.pipeline.accounting import COSTS, Account, kept_costs
from sciml.pipeline.choosing import refuse_impossible
from sciml.pipeline.continuing import HASH, model_folder, model_hash
from sciml.pipeline.family import TRAINING
from sciml.pipeline.feeding import Together, refuse_idle, share, spread
from sciml.pipeline.profiling import profiled
from sciml.pipeline.progress import Progress
from sciml.pipeline.resizing import (
    DEVICES,
    PLAN,
    Remembered,
    began_with,
    is_open,
    over_processes,
    refuse_unshared,
    resized,
)
from sciml.pipeline.tasks import Context, Prepared, task_of
from sciml.recipe import ModelSection, TrainSection
from sciml.runfolder import write_json
from sciml.training.hooks.base import Hook
from sciml.training.hooks.beat import Beat
from sciml.training.hooks.evaluation import Evaluate
from sciml.training.hooks.guard import StopAtNonFinite
from sciml.training.hooks.log import METRICS, MetricsFile, TensorBoard
from sciml.training.hooks.progress import ShowProgress
from sciml.training.hooks.saving import BLOCKED, SECONDS, SaveCheckpoints, resume
from sciml.training.loop import train
from sciml.training.optimizer import Optimizer
from sciml.training.state import TrainState, cast, parameter_count, parameters, with_parameters
from sciml.types import PyTree

EVALUATIONS = 10
SUMMARY = "training.json"

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Trained:
    """A trained model with what is known of its training (`training.json`)."""

    prepared: Prepared
    model: nnx.Module
    summary: dict[str, Any]


def train_model(context: Context, name: str, progress: Progress, job: Job | None = None, profile: bool = False) -> None:
    """Train one model to the end of its steps; returns at once when that is done already.

    All processes of a `job` call this together; process 0 writes. `profile`: see `pipeline.profiling`. Raises
    NumericalError (79) at a loss that is not finite, Interrupted (75, 130) after a signal. That the folder holds no
    training of another recipe was seen to before.
    """
    section, place = context.recipe.models[name], model_folder(context.folder, name)
    prepared = task_of(section).prepare(context, section)
    job = job or Job()
    with Checkpoints(place / "checkpoints") as checkpoints, Checkpoints(place / "best", keep=1) as best:
        plan, devices = _laid_out(context, section, checkpoints, job)
        if is_open(context.recipe.plan, job.wanted):
            progress.say(f"{name}: no plan is given, the batch goes over {_all(job)}, as with plan: {{data: -1}}")
        optimizer, state = start(context, section, prepared, plan)
        remembered = Remembered()
        state, found = resume(checkpoints, state, prepared.batches, job.ranks, remembered)
        if int(state.step) >= section.train.steps:
            progress.say(f"{name}: trained already ({int(state.step)} steps)")
            return
        if found:
            progress.say(f"{name}: continues from step {int(state.step)}")
            if found.get(PLAN, plan.written()) != plan.written():
                progress.say(f"{name}: another plan than before: was {found[PLAN]}, is {plan.written()}")
        if remembered.anew:
            progress.say(f"{name}: other devices than before: what compression lost there is forgotten, it starts anew")
        batches = prepared.batches if job.ranks.size == 1 else share(prepared.batches, plan)
        evaluate = Evaluate(
            lambda params: prepared.measure(with_parameters(prepared.model, params)),
            max(section.train.steps // EVALUATIONS, 1),
            store=best if prepared.selects else None,
            ranks=job.ranks,
        )
        with job.stopping() as stop_requested:
            saving = SaveCheckpoints(
                checkpoints,
                section.train.checkpoint_every,
                {HASH: model_hash(context.recipe, name), DEVICES: devices, PLAN: plan.written()},
                stop_requested,
                job.ranks,
                found.get(BLOCKED, 0.0),
            )
            step = build_step(prepared.model, prepared.objective, optimizer, plan)
            step = dataclasses.replace(step, function=Together(step.function, job.ranks))
            hooks = (
                Account(step, plan.precision, place / COSTS if job.first else None),
                *(_logs(place, name, section.train.steps, progress) if job.first else ()),
                StopAtNonFinite(checkpoints),
                evaluate,
                Beat(job.beats.step, job.beats.pause),
                saving,
                *(profiled(context.folder, name, progress) if profile and job.first else ()),
            )
            if job.ranks.size > 1:
                state = spread(state, step.shardings)
            spent = found.get(SECONDS, 0.0)
            train(state, step, batches, hooks, steps=section.train.steps, seconds_before=spent)


def refuse_impossible_plans(context: Context, job: Job | None = None) -> None:
    """Raise ConfigError (78) where the plan cannot train some model, before any data are made for it.

    Without a job the devices need not be there, and `data: -1` is any number of them.
    """
    for name, section in context.recipe.models.items():
        try:
            plan = _anywhere(context, section) if job is None else _laid_out_for(context, name, job)
            if not context.recipe.plan.auto and plan != Plan(precision=plan.precision):
                outline = task_of(section).outline(context, section)
                refuse_impossible(context.recipe, section, outline, context.simulation, plan)
        except ConfigError as error:
            parts = {"expected": error.expected, "got": error.got, "reason": error.reason, "fix": error.fix}
            raise ConfigError(f"model {name!r}: {error.what}", **parts) from error


def _anywhere(context: Context, section: ModelSection) -> Plan:
    if context.recipe.plan.auto:
        return Plan(precision=section.train.precision)
    plan = context.plan(section)
    return dataclasses.replace(plan, data=abs(plan.data))


def _laid_out_for(context: Context, name: str, job: Job) -> Plan:
    with Checkpoints(model_folder(context.folder, name) / "checkpoints") as checkpoints:
        return _laid_out(context, context.recipe.models[name], checkpoints, job)[0]


def _laid_out(context: Context, section: ModelSection, checkpoints: Checkpoints, job: Job) -> tuple[Plan, int]:
    """The plan for the devices that there are, and the number of devices that the training began with."""
    refuse_unshared(context.recipe.plan, section, job)
    began = began_with(job, job.ranks.on_first(lambda: noted(checkpoints)).get(DEVICES, 0))
    plan = resized(over_processes(context.plan(section), context.recipe.plan, job.wanted), began, section)
    refuse_idle(plan.mesh(), job.ranks.size)
    return plan, began


def _all(job: Job) -> str:
    return f"{len(jax.devices())} device(s) of {job.ranks.size} process(es)"


def _logs(place: Path, name: str, steps: int, progress: Progress) -> tuple[Hook, ...]:
    return (
        MetricsFile(place / METRICS, every=max(steps // 2000, 1)),
        TensorBoard(place / "tensorboard", every=max(steps // 200, 1)),
        ShowProgress(name, console=progress.console),
    )


def _best(place: Path, template: PyTree, last: PyTree) -> PyTree:
    """The parameters with the smallest error on held-out data; the last ones where these are missing or damaged."""
    with Checkpoints(place / "best", keep=1) as best:
        try:
            return best.restore(template)[0] if best.steps() else last
        except IntegrityError as error:
            logger.warning("the best parameters are damaged, the last ones are used: %s", error.what)
            return last


def start(context: Context, section: ModelSection, prepared: Prepared, plan: Plan) -> tuple[Optimizer, TrainState]:
    """The optimizer and the state before the first step."""
    config = _scaled(section.train.optimizer.build(), section.train)
    optimizer = compressed(config.build(section.train.steps), prepared.model, plan)
    key = jax.random.fold_in(jax.random.key(context.recipe.seed), TRAINING)
    return optimizer, TrainState.start(prepared.model, optimizer, key, section.train.precision)


def _scaled(config: Any, train: TrainSection) -> Any:
    """The optimizer with the learning rate of a larger batch.

    Source: P. Goyal et al., arXiv:1706.02677, section 2.1 (the linear scaling rule; combine with `warmup_cosine`).
    """
    if train.base_batch is None:
        return config
    if not hasattr(config, "learning_rate"):
        raise ConfigError(
            "base_batch scales a learning rate, which this optimizer does not have",
            got=type(config).__name__,
            fix="leave base_batch out",
        )
    return dataclasses.replace(config, learning_rate=config.learning_rate * train.batch / train.base_batch)


def load_trained(context: Context, name: str) -> Trained:
    """The trained model; `DataError` (65) when its training is not finished."""
    section, place = context.recipe.models[name], model_folder(context.folder, name)
    prepared = task_of(section).prepare(context, section)
    template = {"step": np.int32(0), "params": cast(parameters(prepared.model), section.train.precision)}
    with Checkpoints(place / "checkpoints") as checkpoints:  # the state of the optimizer may be that of many devices
        state, meta = checkpoints.restore(template, choose=these)
    step = int(state["step"])
    if step < section.train.steps:
        raise DataError(
            f"model {name!r} is not trained to the end",
            expected=f"{section.train.steps} steps",
            got=step,
            fix=f"sciml train {context.folder} --model {name}",
        )
    params = _best(place, template["params"], state["params"])
    model = with_parameters(prepared.model, params)
    spent = {"seconds": meta[SECONDS], "seconds_held_up_by_saving": meta.get(BLOCKED, 0.0)}
    summary = {"parameters": parameter_count(model), "steps": step, **spent, "step": kept_costs(place)}
    write_json(place / SUMMARY, summary)
    return Trained(prepared, model, summary)
