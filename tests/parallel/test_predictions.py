"""Predicted memory and traffic against compiled programs; a step on devices that do not exist."""

from __future__ import annotations

import functools

import pytest
from compiled_steps import Subject, compare, subject

from sciml.parallel.plan import Plan
from sciml.parallel.profile import profile
from sciml.parallel.subject import traced
from sciml.pipeline.choosing import base_plan, subject_of
from sciml.pipeline.tasks import Context, task_of
from sciml.recipe import read

FACTOR = 3.0
"""Of temporaries: a compiler fuses, orders and reuses in ways that no formula follows; small programs most of all, and
the products of Muon."""
CASES = [
    ("fno", {"data": 8}),
    ("fno", {"fsdp": 2, "zero": 3, "tensor": 2, "domain": 2}),
    ("deeponet", {"data": 2, "tensor": 4}),
    ("mlp", {"fsdp": 8, "zero": 1}),
    ("pinn", {"data": 8}),
    ("plain", {"data": 2, "tensor": 2, "pipeline": 2, "microbatches": 4}),
    ("mixture", {"expert": 2, "tensor": 2, "data": 2}),
]
MORE = [
    ("fno", {"fsdp": 8, "zero": 2}),
    ("fno", {"domain": 4, "tensor": 2}),
    ("fno", {"domain": 4, "transform": "pencil", "data": 2}),
    ("deeponet", {"domain": 8}),
    ("mlp", {"tensor": 8}),
    ("plain", {"fsdp": 8, "zero": 3, "remat": True}),
    ("plain", {"fsdp": 2, "zero": 3, "remat": True, "pipeline": 2, "microbatches": 4, "data": 2}),
    ("plain", {"fsdp": 2, "zero": 3, "pipeline": 2, "microbatches": 4, "schedule": "1f1b", "data": 2}),
    ("plain", {"fsdp": 2, "zero": 3, "accumulate": 4, "remat": True, "data": 4}),
    ("plain", {"domain": 4, "data": 2}),
    ("plain", {"domain": 4, "attention": "all_to_all", "remat": True, "data": 2}),
    ("mixture", {"expert": 4, "data": 2}),
    ("mixture", {"expert": 2, "pipeline": 2, "microbatches": 2, "domain": 2}),
]


@functools.cache
def _profile(name: str, remat: bool):
    return profile(subject(name), Plan(), remat)


@pytest.mark.parametrize(("name", "plan"), CASES + [pytest.param(*case, marks=pytest.mark.long) for case in MORE])
def test_predictions_agree_with_the_compiled_step(name, plan):
    chosen = Plan(**plan)
    compare(subject(name), chosen, _profile(name, chosen.remat)).assert_close(FACTOR)


def _recipe_subject(recipe, name: str) -> Subject:
    context, section = Context(recipe, recipe.run_folder), recipe.models[name]
    return subject_of(recipe, section, task_of(section).outline(context, section), context.simulation)


SHIPPED = [("heat", "surrogate", {"data": 8})]
SHIPPED_SLOW = [
    *(("heat", name, {"data": 8}) for name in ("fno", "deeponet")),
    ("heat", "fno", {"data": 2, "domain": 4}),
    *(("burgers", name, {"data": 8}) for name in ("fno", "deeponet", "surrogate")),
    *(("darcy", name, {"data": 8}) for name in ("fno", "deeponet", "surrogate")),
    *((recipe, "pinn", {"data": 4}) for recipe in ("heat", "burgers")),
]


@pytest.mark.parametrize(
    ("recipe", "name", "plan"), SHIPPED + [pytest.param(*case, marks=pytest.mark.long) for case in SHIPPED_SLOW]
)
def test_models_of_the_shipped_recipes(recipe, name, plan, repository):
    read_recipe = read(repository / "experiments" / f"{recipe}.yaml")
    about = _recipe_subject(read_recipe, name)
    precision = base_plan(read_recipe, read_recipe.models[name]).precision
    compare(about, Plan(**plan, precision=precision)).assert_close(FACTOR)


def test_arithmetic_agrees_with_the_compiler():
    """XLA counts transcendental functions apart; counted before it is optimized, which depends on the backend."""
    about = subject("fno")
    counted = traced(about, Plan()).flops
    assert counted == pytest.approx(_lowered_flops(about), rel=0.05)


def _lowered_flops(about: Subject) -> float:
    import jax

    from sciml.parallel.step import build_step

    step = build_step(about.model, about.objective, about.optimizer, Plan())
    shapes = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), about.rows)
    return step.function.lower(about.state, shapes).cost_analysis()["flops"]


def test_formulas_between_traced_programs():
    """Three axes at once, predicted from each alone, against the traced program of the plan itself."""
    about, plan = subject("plain"), Plan(tensor=4, domain=2, pipeline=2, microbatches=2)
    from sciml.parallel.layout import Layout

    layout = Layout.abstract(about.model, plan, about.state.params)
    predicted, found = _profile("plain", False).work(layout, about.state.params), traced(about, plan)
    assert predicted.flops == pytest.approx(found.flops, rel=0.15)
    assert predicted.peak == pytest.approx(found.peak, rel=0.35)
