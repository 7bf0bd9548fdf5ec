"""A PINN of an equation with a nonlocal term: the potential is one more output, tied by its own residual."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from comparison import assert_close

from sciml.boundary import dirichlet
from sciml.calculus.pointwise import Pointwise
from sciml.domain import Box
from sciml.equations import NavierStokesVorticity
from sciml.errors import ConfigError
from sciml.pinn.model import PINNConfig
from sciml.pinn.objectives import PointResidual
from sciml.pinn.scales import residual_sizes
from sciml.problem import make_problem

BOX = Box((0.0, 0.0), (2 * jnp.pi, 2 * jnp.pi), (True, True))
VORTICES = make_problem(
    NavierStokesVorticity(0.05, 0.0),
    BOX,
    initial={"omega": lambda x: 2 * jnp.cos(x[0]) * jnp.cos(x[1])},
    horizon=1.0,
)
CONFIG = PINNConfig(width=6, layers=1, harmonics=1)


def test_the_exact_flow_leaves_nothing_and_a_wrong_potential_does():
    d, points = Pointwise(2, has_time=True), jax.random.uniform(jax.random.key(0), (20, 3))

    def residuals(factor):
        omega = d.field(lambda z: 2 * jnp.cos(z[0]) * jnp.cos(z[1]) * jnp.exp(-0.1 * z[2]))
        terms = VORTICES.residual({"omega": omega, "psi": factor * omega}, d)
        return {name: jax.vmap(d.values(term))(points) for name, term in terms.items()}

    right, wrong = residuals(0.5), residuals(0.7)
    assert set(right) == {"omega", "psi"}
    assert all(jnp.abs(rows).max() < 1e-12 for rows in right.values())
    assert jnp.abs(wrong["psi"]).max() > 0.1


def test_the_potential_is_an_output_with_a_residual_of_order_one():
    model = CONFIG.build(VORTICES, {"omega": (0.0, 1.0)}, {}, seed=0)
    start = model({"x": jnp.asarray(0.3), "y": jnp.asarray(0.4), "t": jnp.asarray(0.0)})
    assert set(start) == {"omega"} and model.network.unknown_names == ("omega", "psi")
    assert_close(start["omega"], 2 * jnp.cos(0.3) * jnp.cos(0.4), rtol=1e-12)
    sizes = residual_sizes(VORTICES, {"omega": 1.0})
    assert_close(sizes["psi"], 1.0, rtol=1e-12)  # the root mean square of 2 cos x cos y
    objective = PointResidual(VORTICES, 10, sizes)
    rows = objective.residuals(model, objective.prepare({}, jax.random.key(1)))
    assert set(rows) == {"omega", "psi"} and all(bool(jnp.all(jnp.isfinite(r))) for r in rows.values())


def test_walls_are_refused_with_a_reason():
    box = Box((0.0, 0.0), (1.0, 1.0), (True, False))
    walls = dict.fromkeys(box.faces, dirichlet())
    problem = make_problem(VORTICES.equation, box, initial={"omega": lambda x: x[0]}, boundary=walls, horizon=1.0)
    with pytest.raises(ConfigError, match="every axis to be periodic"):
        CONFIG.build(problem, {"omega": (0.0, 1.0)}, {}, seed=0)
