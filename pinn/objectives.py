"""What a PINN is trained for: the residual of the equation at points, conditions on faces, sensor readings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import jax
import jax.numpy as jnp

from sciml.calculus.pointwise import Pointwise
from sciml.errors import ConfigError
from sciml.functions import evaluate
from sciml.pinn.model import PINN
from sciml.pinn.sampling import spread_points
from sciml.problem import Problem
from sciml.training.objective import Batch, Objective, Residuals
from sciml.types import Array, Key

POINTS, FACE = "collocation", "face:"


@final
@dataclass(frozen=True, eq=False)
class PointResidual(Objective):
    """The residual of the equation at `points` points, drawn in the box and over the horizon.

    Rows are residual / scale, with `scales` the size of u_t or of the equation's terms per field. The points fill
    the box evenly, the times as log(1 + early t/horizon) (see `spread_points`); they are the same in every step
    unless `resample`.
    """

    problem: Problem
    points: int
    scales: Mapping[str, float]
    early: float = 0.0
    resample: bool = False
    seed: int = 0

    def prepare(self, batch: Batch, key: Key) -> Batch:
        """Adds the collocation points, shape (points, dim[+1])."""
        key = key if self.resample else jax.random.key(self.seed)
        return {**batch, POINTS: spread_points(key, self.problem, self.points, self.early)}

    def residuals(self, model: Any, batch: Batch) -> Residuals:
        """One row per point, one term per equation."""
        terms = residual_functions(model, self.problem)
        return {name: jax.vmap(term)(batch[POINTS]) / self.scales[name] for name, term in terms.items()}


@final
@dataclass(frozen=True, eq=False)
class BoundaryResidual(Objective):
    """alpha u + beta du/dn - value on every bounded face, at `points` points each; `ConfigError` without faces."""

    problem: Problem
    points: int
    scales: Mapping[str, float]
    seed: int = 1

    def __post_init__(self) -> None:
        if not self.problem.boundary:
            raise ConfigError(
                "the boundary term of the loss has no points",
                expected="at least one bounded face",
                got="a domain whose axes are all periodic",
                fix="leave the boundary term out",
            )

    def prepare(self, batch: Batch, key: Key) -> Batch:
        """Adds the points of every face, shape (points, dim[+1])."""
        del key
        box = self.problem.domain
        faces = {}
        for number, face in enumerate(self.problem.boundary):
            axis, end = box.names.index(face[0]), (box.lower if face[1] == "-" else box.upper)
            key = jax.random.fold_in(jax.random.key(self.seed), number)
            z = spread_points(key, self.problem, self.points)
            faces[FACE + face] = z.at[:, axis].set(end[axis])
        return {**batch, **faces}

    def residuals(self, model: Any, batch: Batch) -> Residuals:
        """One row per point, one term per face, all fields side by side."""
        return {face: self._face(model, face, batch[FACE + face]) for face in self.problem.boundary}

    def _face(self, model: PINN, face: str, points: Array) -> Array:
        condition, dim = self.problem.boundary[face], self.problem.domain.dim
        axis, outward = self.problem.domain.names.index(face[0]), (-1.0 if face[1] == "-" else 1.0)
        normal = jnp.zeros(points.shape[1]).at[axis].set(outward)
        scale = jnp.asarray([self.scales[name] for name in model.network.field_names])

        def row(z: Array) -> Array:
            value, slope = jax.jvp(model.network, (z,), (normal,))
            wanted = condition.value
            if callable(wanted):
                wanted = evaluate(wanted, z[:dim], z[dim] if self.problem.is_evolution else None)
            return (condition.alpha * value + condition.beta * slope - wanted) / scale

        return jax.vmap(row)(points)


def residual_functions(model: PINN, problem: Problem) -> dict[str, Any]:
    """Per equation of the system the residual as a function of one point z, with the model's coefficients."""
    d = Pointwise(problem.domain.dim, problem.is_evolution)
    names = model.network.unknown_names
    fields = {name: d.field(lambda z, i=i: model.network(z)[i]) for i, name in enumerate(names)}
    return {name: d.values(term) for name, term in model.problem(problem).residual(fields, d).items()}
