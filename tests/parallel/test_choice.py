"""All plans for a number of devices, the one that is chosen, and the words for what cannot be done."""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
import math
from typing import Any

import jax
import pytest
from compiled_steps import subject

from sciml.errors import ConfigError
from sciml.parallel import choice
from sciml.parallel.choice import choose, factorizations
from sciml.parallel.hardware import PRESETS, hardware
from sciml.parallel.layout import Layout
from sciml.parallel.plan import Plan
from sciml.parallel.prediction import link_of

H100 = PRESETS["h100"]


@functools.cache
def _choice(name: str):
    return choose(subject(name), Plan(), 8, 1, H100)


def test_factorizations_are_all_and_different():
    found = [tuple(sizes.values()) for sizes in factorizations(12)]
    assert len(found) == len(set(found)) == 21 * 6  # 2^2 over six axes: C(7,5) = 21; 3: 6
    assert all(math.prod(sizes) == 12 for sizes in found)


@pytest.mark.parametrize("name", ["fno", "mixture"])
def test_feasible_plans_are_those_that_a_layout_accepts(name):
    about, found = subject(name), _choice(name)
    feasible = {tuple(p.plan.sizes.values()) for p in found.predictions}
    batch = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), about.batch)
    accepted = set()
    for sizes in factorizations(8):
        options: dict[str, Any] = {**sizes, "zero": int(sizes["fsdp"] > 1), "microbatches": sizes["pipeline"]}
        try:
            layout = Layout.of(about.model, Plan(**options))
            layout.batch(batch)
            accepted.add(tuple(sizes.values()))
        except ConfigError:
            pass
    groups = 2  # of tokens: a limit that shows itself only when the model is traced
    allowed = {sizes for sizes in accepted if name == "fno" or sizes[4] <= groups}
    assert feasible == allowed


def test_the_fastest_comes_first_and_says_why():
    found = _choice("fno")
    times = [p.seconds for p in found.predictions]  # equal to three digits: the simpler plan first
    assert all(a <= 1.01 * b for a, b in itertools.pairwise(times))
    assert found.best.plan.data == 8
    assert "data 8" in found.reason() and "per step" in found.reason()


def test_a_small_memory_leaves_plans_that_divide_parameters():
    about = subject("fno")
    memories = sorted(p.memory for p in _choice("fno").predictions)
    tight = choose(about, Plan(), 8, 1, dataclasses.replace(H100, memory=memories[len(memories) // 4]))
    assert tight.dropped[choice.MEMORY] > 0
    assert all(p.memory <= memories[len(memories) // 4] for p in tight.predictions)
    with pytest.raises(ConfigError, match="memory of a device"):
        choose(about, Plan(), 8, 1, dataclasses.replace(H100, memory=1e4))


def test_seven_devices_for_sixteen_rows_are_refused():
    with pytest.raises(ConfigError, match=r"no plan for 7 devices(.|\n)*rows of a batch(.|\n)*--devices 4"):
        choose(subject("deeponet"), Plan(), 7, 1, H100)


def test_nodes_that_do_not_divide_are_refused():
    with pytest.raises(ConfigError, match=r"nodes do not divide the devices(.|\n)*--devices 6 --nodes 3"):
        choose(subject("mlp"), Plan(), 8, 3, H100)


def test_unknown_hardware_is_refused():
    with pytest.raises(ConfigError, match=r"unknown hardware 'b9000'(.|\n)*measured"):
        hardware("b9000")


def test_links_between_nodes_are_used_where_an_axis_crosses_them():
    plan = Plan(data=8, tensor=8)
    assert link_of(plan, "tensor", H100, 8) == H100.inside
    assert link_of(plan, "data", H100, 8) == H100.across  # one member per node
    assert link_of(plan, "tensor", H100, 4) == H100.across
    together = link_of(Plan(data=64), "data", H100, 8)
    assert together.bandwidth == pytest.approx(8 * H100.across.bandwidth)


def test_an_optimizer_that_needs_whole_parameters_leaves_the_batch():
    from sciml.registry import load

    about = subject("fno")
    about = dataclasses.replace(about, optimizer=load("optimizer", "muon")().build(3))
    found = choose(about, Plan(), 8, 1, H100)
    used = collections.Counter(n for p in found.predictions for n, size in p.plan.sizes.items() if size > 1)
    assert set(used) == {"data", "domain"}
    assert found.dropped[choice.OPTIMIZER]
