"""The stages of a run. Each reads what the one before it wrote, skips what is there and verified, stands alone."""

from __future__ import annotations

import contextlib
import platform
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console

import sciml
from sciml.data.provenance import code
from sciml.data.ranks import Ranks
from sciml.launch.job import Job
from sciml.pipeline.continuing import RECIPE, model_folder, refuse_other_recipe
from sciml.pipeline.evaluation import JUDGES, Evaluation, Outcome
from sciml.pipeline.generation import generate_data
from sciml.pipeline.progress import Progress
from sciml.pipeline.targeting import choose
from sciml.pipeline.tasks import Context
from sciml.pipeline.training import Trained, load_trained, refuse_impossible_plans, train_model
from sciml.recipe import Recipe
from sciml.report import Curve, results_table, write_report
from sciml.runfolder import FolderLock, write_json, write_text
from sciml.surrogate import export as export_artifact
from sciml.training.hooks.log import METRICS, read_metrics

ENVIRONMENT, RESULTS, REPORT = "environment.json", "results.json", "report.html"
PACKAGES = ("jax", "flax", "optax", "orbax-checkpoint", "grain", "h5py", "numpy")


def run(recipe: Recipe, folder: Path, job: Job | None = None, profile: bool = False) -> None:
    """Generate, train, evaluate, export: these four in a row, nothing more.

    All processes of a `job` call this together: they share the samples and the training; process 0 does the rest.
    """
    job = job or Job()
    with _held(recipe, folder, job):
        context, progress = Context(recipe, folder), _progress(job)
        refuse_impossible_plans(context, job)
        _generate(context, progress, None if job.ranks.size == 1 else job.ranks.comm)
        _train(context, list(recipe.models), progress, job, profile)

        def finish() -> None:
            trained = {name: load_trained(context, name) for name in recipe.models}
            _export(context, trained, progress)
            _evaluate(context, trained, progress)

        job.ranks.on_first(finish)


def generate(recipe: Recipe, folder: Path) -> None:
    """Solve the problem for every sample that is not there yet. May run on many MPI ranks; they share the folder."""
    job = Job(Ranks())
    with _held(recipe, folder, job):
        _generate(Context(recipe, folder), _progress(job))


def train(
    recipe: Recipe,
    folder: Path,
    models: Sequence[str] | None = None,
    job: Job | None = None,
    profile: bool = False,
) -> None:
    """Train the models (all by default) on verified data; the processes of a `job` do it together."""
    job = job or Job()
    with _held(recipe, folder, job):
        _train(Context(recipe, folder), list(models or recipe.models), _progress(job), job, profile)


def evaluate(recipe: Recipe, folder: Path) -> None:
    """Compare the trained models with the solver; prints the table, writes results.json and report.html."""
    with FolderLock(folder):
        refuse_other_recipe(recipe, folder)
        context = Context(recipe, folder)
        _evaluate(context, {name: load_trained(context, name) for name in recipe.models}, Progress())


def export(recipe: Recipe, folder: Path) -> None:
    """Write one artifact `<model>.sciml` per trained model."""
    with FolderLock(folder):
        refuse_other_recipe(recipe, folder)
        context = Context(recipe, folder)
        _export(context, {name: load_trained(context, name) for name in recipe.models}, Progress())


def environment() -> dict[str, str]:
    """What a run was made with."""
    packages = {name: version(name) for name in PACKAGES}
    devices = ", ".join(str(d) for d in jax.devices())
    here = {"python": sys.version.split()[0], "machine": platform.machine(), "devices": devices}
    return {"sciml": sciml.__version__, **code(), **here, **packages}


@contextlib.contextmanager
def _held(recipe: Recipe, folder: Path, job: Job) -> Iterator[None]:
    """The right to use the folder, taken by process 0 for all; recipe and environment are written there."""
    with contextlib.ExitStack() as held:

        def begin() -> None:
            held.enter_context(FolderLock(folder))
            _start(recipe, folder)
            choose(recipe, folder, _progress(job).say)

        job.ranks.on_first(begin)
        yield


def _progress(job: Job) -> Progress:
    """Process 0 speaks for all."""
    return Progress(Console(file=sys.stdout, quiet=not job.first))


def _start(recipe: Recipe, folder: Path) -> None:
    refuse_other_recipe(recipe, folder)
    write_text(folder / RECIPE, recipe.to_yaml())
    write_json(folder / ENVIRONMENT, environment())


def _generate(context: Context, progress: Progress, comm: Any = None) -> None:
    made = generate_data(context.recipe, context.folder, progress, comm)
    if made is not None:
        progress.say(f"data: {made.computed} samples computed, {made.found + made.adopted} found")


def _train(context: Context, names: list[str], progress: Progress, job: Job, profile: bool) -> None:
    for name in names:
        train_model(context, name, progress, job, profile)
    job.ranks.on_first(lambda: None)  # nobody leaves while process 0 still writes


def _export(context: Context, trained: dict[str, Trained], progress: Progress) -> None:
    progress.say("exporting")
    for name, model in trained.items():
        section, spec = context.recipe.models[name], model.prepared.spec
        inputs = model.prepared.selftest_inputs
        place = export_artifact(
            model.model,
            spec,
            context.folder / f"{name}.sciml",
            config={"model": section.component.plain(), "precision": section.train.precision},
            provenance={
                "recipe": context.recipe.to_yaml(),
                "data": context.dataset.provenance.get("fingerprint"),
                "training": model.summary,
                **environment(),
            },
            selftest_inputs=inputs,
        )
        progress.say(f"surrogate: {place}")


def _evaluate(context: Context, trained: dict[str, Trained], progress: Progress) -> None:
    progress.say("evaluating")
    evaluation = Evaluation(context)
    outcomes = {}
    for name, model in trained.items():
        section = context.recipe.models[name]
        judge = JUDGES[section.component.load().task]
        outcomes[name] = judge.evaluate(evaluation, name, section, model)
    rows = [outcome.row for outcome in outcomes.values()]
    write_json(context.folder / RESULTS, {"rows": [_plain(row) for row in rows], "facts": _facts(evaluation)})
    progress.show(results_table(rows))
    for row in rows:
        if row.note:
            progress.say(f"{row.name}: {row.note}")
    progress.say(f"report: {_report(context, evaluation, outcomes)}")


def _report(context: Context, evaluation: Evaluation, outcomes: dict[str, Outcome]) -> Path:
    shown = outcomes.values()
    return write_report(
        context.folder / REPORT,
        title=context.recipe.name,
        recipe_text=context.recipe.to_yaml(),
        facts={**_facts(evaluation), **_waits(context, list(outcomes))},
        rows=[o.row for o in shown],
        fields=[f for o in shown for f in o.fields],
        quantities=[q for o in shown for q in o.quantities],
        curves=[Curve(name, read_metrics(model_folder(context.folder, name) / METRICS)) for name in outcomes],
        environment=environment(),
    )


def _waits(context: Context, names: list[str]) -> dict[str, str]:
    parts = []
    for name in names:
        records = read_metrics(model_folder(context.folder, name) / METRICS)
        waits = [record["wait_fraction"] for record in records if "wait_fraction" in record]
        parts += [f"{name} {100 * float(np.mean(waits)):.1f} %"] if waits else []
    return {"time waiting for data": ", ".join(parts)} if parts else {}


def _facts(evaluation: Evaluation) -> dict[str, str]:
    dataset, references = evaluation.context.dataset, evaluation.references
    facts = {"samples": ", ".join(f"{name} {len(rows)}" for name, rows in dataset.splits.items())}
    if references is None:
        return {**facts, "data": dataset.name}
    simulation, estimate = references.simulation, dataset.provenance["measured_relative_error"]
    return {
        "equation": (simulation.family.equation_class.__doc__ or simulation.data.method.kind).partition("\n")[0],
        "solver": simulation.data.method.kind,
        "grid": " x ".join(map(str, simulation.grid.shape)),
        **facts,
        "reference": f"{references.kind}, own relative error {references.own_error:.1e}",
        "errors measured on": f"the first {len(references.numbers)} test samples",
        "solver error": f"{references.solver_error:.1e} against the reference",
        "solver error, estimated": "unknown" if estimate is None else f"{estimate:.1e} by refinement",
    }


def _plain(row: Any) -> dict[str, Any]:
    return {k: None if isinstance(v, float) and not np.isfinite(v) else v for k, v in vars(row).items()}
