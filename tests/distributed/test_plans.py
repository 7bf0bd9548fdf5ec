"""A training under every plan is the training on one device."""

from __future__ import annotations

import plan_cases
import pytest

from sciml.parallel.plan import Plan


def _suited(count: int) -> list[tuple[str, str]]:
    return [(name, title) for name in plan_cases.MAKERS for title, plan in plan_cases.plans(count).items()
            if plan_cases.suits(name, plan)]


@pytest.mark.parametrize(("name", "title"), _suited(1) + _suited(3))
def test_three_steps_equal_those_of_one_device(name, title):
    plan = {**plan_cases.plans(1), **plan_cases.plans(3)}[title]
    state, history, _ = plan_cases.training(name, Plan(**plan))
    assert plan_cases.gradient_difference(name, state, history) < 1e-12
