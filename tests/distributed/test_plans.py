"""Under every plan a training is that on one device, stores and sends what the formulas say, and nothing else.

More of them take long to compile: they are marked slow. `benchmarks/plans/proof_table.py --pairs` proves all.
"""

from __future__ import annotations

import jax
import plan_cases
import pytest

from sciml.errors import ConfigError
from sciml.parallel import buffers
from sciml.parallel.plan import Plan
from sciml.parallel.step import build_step
from sciml.registry import load

QUICK = [
    *[("fno", title) for title in plan_cases.plans("fno", 1)],
    ("experts", "expert 8"),
    ("transformer", "data 2 tensor 2 pipeline 2 microbatches 2 1f1b"),
    ("deeponet", "fsdp 2 domain 2 tensor 2 zero 3"),
    ("mlp", "data 2 fsdp 2 tensor 2 zero 2"),
    ("pinn", "data 2 fsdp 2 domain 2 zero 1"),
    ("pinn", "tensor 8"),
]
MORE = [
    *[
        (name, title)
        for name in ("fno", "deeponet", "mlp", "pinn", "transformer", "experts")
        for title in plan_cases.plans(name, 1)
    ],
    *[(name, title) for name in ("fno", "deeponet", "mlp", "pinn") for title in plan_cases.plans(name, 3)],
    *[("transformer", title) for title in plan_cases.plans("transformer", 3) if title.startswith("data")],
    ("transformer", "tensor 2 pipeline 4 microbatches 2 1f1b"),
    ("transformer", "domain 2 tensor 4"),
    ("experts", "expert 2 domain 4"),
    ("experts", "expert 2 tensor 4"),
    ("experts", "fsdp 2 expert 4 zero 3"),
    ("experts", "expert 2 domain 2 pipeline 2 microbatches 2 1f1b"),  # hangs if its loops run at the same time
]
KINDS = {
    "data": {"all-reduce"},
    "fsdp": {"all-reduce", "all-gather", "reduce-scatter"},
    "tensor": {"all-reduce"},
    "domain": {"all-reduce", "all-to-all", "collective-permute"},
    "pipeline": {"all-reduce", "collective-permute"},
    "expert": {"all-reduce", "all-to-all"},
}


def _plan(name: str, title: str) -> Plan:
    return Plan(**next(p[title] for p in (plan_cases.plans(name, n) for n in (1, 2, 3)) if title in p))


def _check(name: str, title: str) -> None:
    plan = _plan(name, title)
    found, expected = plan_cases.measured(name, plan), plan_cases.predicted(name, plan)
    allowed = set().union(*(KINDS[axis] for axis in plan.used(*KINDS)))
    assert found.difference < 1e-12
    assert set(found.kinds) <= allowed
    assert abs(found.sent - expected.sent) < 0.01 * expected.sent
    assert abs(found.arguments - expected.arguments) < max(64, 0.01 * expected.arguments)


@pytest.mark.parametrize(("name", "title"), QUICK)
def test_one_axis_and_some_triples(name, title):
    _check(name, title)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "title"), [pair for pair in MORE if pair not in QUICK])
def test_more_axes_and_triples(name, title):
    _check(name, title)


def test_a_wrong_sum_would_be_noticed(monkeypatch):
    """The control of the proofs: sums over devices that are a millionth too large."""
    plan_cases.alone("mlp")
    right = buffers.sums
    monkeypatch.setattr("sciml.parallel.buffers.sums", lambda arrays, over: [1.000001 * a for a in right(arrays, over)])
    state, history, _ = plan_cases.training("mlp", Plan(data=8))
    assert plan_cases.difference("mlp", state, history) > 1e-9


def test_axes_may_be_left_whole():
    state, history, _ = plan_cases.training("fno", Plan(tensor=2, whole=("spectral",)))
    assert plan_cases.difference("fno", state, history) < 1e-12


def test_shards_are_real_before_and_after_a_step():
    """Every device holds an eighth of what ZeRO stage 3 stores in parts, and stage 1 of the optimizer state only."""
    for stage, shares in {1: (1, 8), 3: (8, 8)}.items():
        state, _, _ = plan_cases.training("fno", Plan(fsdp=8, zero=stage), steps=1)
        for tree, share in zip((state.params, state.opt_state), shares, strict=True):
            large = [leaf for leaf in jax.tree.leaves(tree) if leaf.size > 64]
            assert {leaf.size // leaf.addressable_shards[0].data.size for leaf in large} == {share}


@pytest.mark.parametrize(
    ("name", "sizes", "words"),
    [
        ("fno", {"tensor": 3}, "does not divide"),
        ("fno", {"pipeline": 2}, "split nothing"),
        ("mlp", {"expert": 2}, "split nothing"),
        ("fno", {"domain": 3}, "does not divide"),
        ("fno", {"data": 3}, "do not divide"),
        ("fno", {"fsdp": 2}, "belong together"),
        ("fno", {"zero": 3}, "belong together"),
        ("fno", {"data": 16}, "does not fit the devices"),
        ("fno", {"tensor": 2, "whole": ("hiden",)}, "matches nothing"),
        ("fno", {"domain": 2, "whole": ("space",)}, "matches nothing"),
        ("mlp", {"tensor": 2, "whole": ("hidden",)}, "split nothing"),
        ("fno", {"data": 2, "microbatches": 2}, "belong to a pipeline"),
        ("fno", {"tensor": 0}, "whole numbers"),
        ("fno", {"data": 2, "compress": "one_bit"}, "float64"),
    ],
)
def test_what_does_not_fit_is_said_in_words(name, sizes, words):
    with pytest.raises(ConfigError, match=words):
        plan_cases.training(name, Plan(**sizes), steps=1)


def test_optimizers_that_mix_numbers_need_whole_parameters():
    known = plan_cases.case("mlp")
    for optimizer in ("levenberg_marquardt", "lbfgs"):
        with pytest.raises(ConfigError, match="whole parameters"):
            build_step(known.model, known.objective, load("optimizer", optimizer)().build(1), Plan(tensor=2))
