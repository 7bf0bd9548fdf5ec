"""How often a residual evaluates its network, and what that sends where the layers are split."""

from __future__ import annotations

import jax
import numpy as np
import plan_cases
import pytest

from sciml.domain import Box
from sciml.parallel.plan import Plan
from sciml.pinn.model import PINNConfig
from sciml.pinn.objectives import POINTS, PointResidual
from sciml.pinn.traffic import Evaluated, evaluated, tensor_traffic
from sciml.problem import make_problem
from sciml.registry import load
from sciml.sampling.fields import RandomFourierSeries
from sciml.training.objective import Objective


@pytest.mark.parametrize(
    ("kind", "coefficients", "expected"),
    [  # as counted in compiled programs
        ("heat", (0.1,), (4, 6)),  # u, u_t; u, u_x, u_x, u_xx
        ("burgers", (0.1,), (4, 8)),  # u, u_x of u * u more, whose factors are alike
        ("allen_cahn", (0.1,), (4, 9)),
    ],
)
def test_derivatives_are_added_once_and_slopes_per_evaluation(kind, coefficients, expected):
    box = Box((0.0,), (1.0,), (True,))
    start = RandomFourierSeries(modes=2).draw(jax.random.key(0), box)
    problem = make_problem(load("equation", kind)(*coefficients), box, initial={"u": start}, horizon=1.0)
    model = PINNConfig(width=8).build(problem, {"u": (0.0, 1.0)}, {}, seed=0)
    residual = PointResidual(problem, 16, {"u": 1.0})
    assert evaluated(residual, model, {POINTS: np.zeros((16, 2))}) == [Evaluated(16, *expected)]


def test_layers_that_are_whole_send_nothing():
    known = plan_cases.case("pinn")
    assert tensor_traffic(known.model, known.objective, known.batch, Plan(data=2)) == {}


def test_an_objective_without_formulas_is_refused():
    class Other(Objective):
        def residuals(self, model, batch):
            return {}

    with pytest.raises(TypeError, match="no formulas for Other"):
        evaluated(Other(), plan_cases.case("pinn").model, {})
