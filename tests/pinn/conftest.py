"""A heat problem with its exact solution, and a small PINN for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciml.domain import Box
from sciml.equations.heat import Heat
from sciml.pinn.model import PINN, PINNConfig
from sciml.pinn.objectives import PointResidual
from sciml.problem import Problem, make_problem
from sciml.sampling.fields import RandomFourierSeries
from sciml.training.objective import Data, Objective, Weighted

DIFFUSIVITY, NOISE = 0.04, 1e-4


@dataclass(frozen=True)
class HeatCase:
    """Two decaying waves on the unit circle, read by 6 sensors at 8 times with a noise of 1e-4."""

    problem: Problem

    def exact(self, z: Any) -> Any:
        """The solution at z = (x, t), for any diffusivity of the problem."""
        initial = self.problem.initial["u"]
        rates = jnp.sum(jnp.asarray(initial.wavenumbers) ** 2, axis=1)
        return initial.damped(jnp.exp(-self.problem.equation.diffusivity * rates * z[1]))(z[:1])

    def readings(self) -> dict[str, np.ndarray]:
        """Noisy values, one row each."""
        x, t = (v.ravel() for v in np.meshgrid(np.arange(6) / 6, np.linspace(0.125, 1.0, 8)))
        u = np.asarray(jax.vmap(self.exact)(jnp.stack([x, t], axis=1)))
        return {"x": x, "t": t, "u": u + NOISE * np.random.default_rng(0).standard_normal(len(u))}

    def network(self, **options: Any) -> PINN:
        """An untrained PINN; `guess` is the first value of the diffusivity where it is unknown."""
        guess = options.pop("guess", 0.03)
        config = PINNConfig(**{"width": 10, "layers": 2, "harmonics": 2, "unknown": ("diffusivity",)} | options)
        return config.build(self.problem, {"u": (0.0, 0.7)}, {"diffusivity": guess}, seed=0)

    def objective(self, points: int = 400) -> Objective:
        """Readings and residual, each row of order one."""
        data = Data(("u",), relative=False, inputs=("x", "t"), scales=(0.7,))
        residual = PointResidual(self.problem, points, {"u": 0.7}, early=20.0)
        return Weighted({"data": (data, 1.0), "residual": (residual, 10.0)})


@pytest.fixture(scope="session")
def heat() -> HeatCase:
    """See `HeatCase`."""
    box = Box((0.0,), (1.0,), (True,))
    initial = RandomFourierSeries(modes=2, decay=1.0).draw(jax.random.key(3), box)
    return HeatCase(make_problem(Heat(DIFFUSIVITY), box, initial={"u": initial}, horizon=1.0))
