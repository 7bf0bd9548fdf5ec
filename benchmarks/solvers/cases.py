"""The problems of the comparison, each once in sciml's terms; peers get the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciml.domain import Box, Grid
from sciml.equations import Burgers, Heat, KuramotoSivashinsky
from sciml.functions import evaluate_on
from sciml.problem import Problem, make_problem
from sciml.registry import load
from sciml.sampling import RandomFourierSeries
from sciml.solvers import Etdrk4, integrate, solve, solve_batch, stack
from sciml.solvers.batch import block_size


@dataclass(frozen=True)
class Case:
    """An equation of one field on a periodic grid, marched `steps` steps of `dt` from random fields, saved once."""

    name: str
    equation: Any
    grid: Grid
    dt: float
    steps: int
    modes: int = 4

    @property
    def method(self) -> Etdrk4:
        """ETDRK4 with the step as it stands."""
        return Etdrk4(dt=self.dt)

    @property
    def times(self) -> tuple[float, ...]:
        """The one saved time."""
        return (self.steps * self.dt,)

    @cached_property
    def field(self) -> str:
        """The name of the unknown."""
        return self.equation.fields[0].name

    def problem(self, initial: Any) -> Problem:
        """The problem that starts from values on the grid."""
        return make_problem(self.equation, self.grid.box, initial={self.field: initial}, horizon=1.0)

    def initial(self, batch: int) -> np.ndarray:
        """Random initial fields, shape (batch, *grid.shape)."""
        series, box = RandomFourierSeries(modes=self.modes), self.grid.box
        draws = (series.draw(jax.random.fold_in(jax.random.key(0), i), box) for i in range(batch))
        return np.stack([np.asarray(evaluate_on(f, self.grid.points)) for f in draws])

    def plain(self, batch: int) -> Callable[[], Any]:
        """`integrate` under jit, in blocks as `solve_batch` takes them."""
        start = jnp.asarray(self.initial(batch))

        def one(u: Any) -> Any:
            return integrate(self.problem(u), self.grid, self.method, self.times)[self.field][0]

        if batch == 1:
            return partial(jax.jit(one), start[0])
        block = block_size(self.grid, 1, batch)
        sizes = {} if block == 1 else {"batch_size": block}
        return partial(jax.jit(lambda u: jax.lax.map(one, u, **sizes)), start)

    def checked(self, batch: int) -> Callable[[], Any]:
        """`solve` or `solve_batch`, with the estimate of stability and the watch for blow-up."""
        start = self.initial(batch)
        if batch == 1:
            problem = self.problem(start[0])
            return lambda: solve(problem, self.grid, self.method, times=self.times).fields[self.field]
        problems = stack([self.problem(u) for u in start])
        settings = {"times": self.times, "chunk": batch}
        return lambda: solve_batch(problems, self.grid, self.method, **settings).fields[self.field]


def burgers() -> Case:
    """Viscous Burgers on 512 points of the 2 pi circle, nu = 0.02."""
    return Case("Burgers 512", Burgers(0.02), Grid(_circle(1, 2 * np.pi), (512,)), 1e-3, 200)


def kuramoto_sivashinsky() -> Case:
    """Kuramoto-Sivashinsky on 256 points of a circle of length 32 pi."""
    return Case("KS 256", KuramotoSivashinsky(1.0, 1.0), Grid(_circle(1, 32 * np.pi), (256,)), 0.05, 200, modes=8)


def heat() -> Case:
    """Heat on 128^2 points; 50 steps that a linear equation may jump over."""
    return Case("heat 128^2", Heat(0.05), Grid(_circle(2, 2 * np.pi), (128, 128)), 0.01, 50)


def vorticity() -> Case:
    """Two-dimensional Navier-Stokes in vorticity form on 128^2 points, nu = 1e-3."""
    equation = load("equation", "navier_stokes_vorticity")(viscosity=1e-3)
    return Case("Navier-Stokes 128^2", equation, Grid(_circle(2, 2 * np.pi), (128, 128)), 1e-3, 50)


CASES: dict[str, Callable[[], Case]] = {
    "burgers": burgers,
    "ks": kuramoto_sivashinsky,
    "heat": heat,
    "vorticity": vorticity,
}


def _circle(dim: int, length: float) -> Box:
    return Box((0.0,) * dim, (length,) * dim, (True,) * dim)
