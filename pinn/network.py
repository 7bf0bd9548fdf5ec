"""The network of a PINN: fields as smooth functions of space and time that keep given conditions exactly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import jax
import jax.numpy as jnp
from flax import nnx

from sciml.domain import Box
from sciml.functions import evaluate
from sciml.problem import Problem
from sciml.types import Array, Float

InitialCondition = Literal["exact", "free"]


class Constant(nnx.Variable):
    """A number of the problem inside a model: stored with it, not trained."""


class Embedding:
    """Inputs of order one: cos and sin of periodic coordinates (exact periodicity), [-1, 1] for the others."""

    def __init__(self, box: Box, horizon: float | None, harmonics: int) -> None:
        self.box, self.horizon, self.harmonics = box, horizon, harmonics

    @property
    def size(self) -> int:
        """Number of features."""
        return sum(2 * self.harmonics if p else 1 for p in self.box.periodic) + (self.horizon is not None)

    def __call__(self, z: Float[Array, " n"]) -> Float[Array, " size"]:
        """Features of one point z = (x_1, ..., x_dim[, t])."""
        features = []
        for axis, periodic in enumerate(self.box.periodic):
            s = (z[axis] - self.box.lower[axis]) / self.box.lengths[axis]
            if periodic:
                phases = 2 * jnp.pi * s * jnp.arange(1, self.harmonics + 1)
                features += [jnp.cos(phases), jnp.sin(phases)]
            else:
                features.append((2 * s - 1)[None])
        if self.horizon is not None:
            features.append((2 * z[self.box.dim] / self.horizon - 1)[None])
        return jnp.concatenate(features)


class FieldNetwork(nnx.Module):
    """u(z) = base(z) + ramp(t) distance(x) (mean + scale * network(z)), one tanh network for all fields.

    With an exact initial condition, base is the initial field and ramp = t/horizon. Where every bounded face has a
    homogeneous Dirichlet condition, distance vanishes there (and is 1 inside otherwise), so it holds exactly.
    Other face conditions are left to the loss (`BoundaryResidual`).
    """

    def __init__(
        self,
        problem: Problem,
        scales: Mapping[str, tuple[float, float]],
        *,
        width: int,
        layers: int,
        harmonics: int,
        initial: InitialCondition,
        rngs: nnx.Rngs,
    ) -> None:
        self.box = problem.domain
        self.field_names = problem.field_names
        self.horizon = float(problem.horizon) if problem.is_evolution else None
        self.keeps_initial = problem.is_evolution and initial == "exact"
        self.keeps_boundary = has_zero_dirichlet_faces(problem)
        self.harmonics = harmonics
        leaves, self.initial_structure = jax.tree.flatten(problem.initial if self.keeps_initial else {})
        self.initial_leaves = nnx.List([Constant(jnp.asarray(leaf)) for leaf in leaves])
        shifts_by_base = self.keeps_initial or self.keeps_boundary
        self.mean = Constant(jnp.asarray([0.0 if shifts_by_base else scales[n][0] for n in self.field_names]))
        self.scale = Constant(jnp.asarray([scales[n][1] for n in self.field_names]))
        sizes = [self._embedding.size, *[width] * layers, len(self.field_names)]
        pairs = zip(sizes[:-1], sizes[1:], strict=True)
        make = nnx.initializers.glorot_normal()
        self.layers = nnx.List(
            [nnx.Linear(a, b, kernel_init=make, param_dtype=jnp.float64, rngs=rngs) for a, b in pairs]
        )

    @property
    def _embedding(self) -> Embedding:
        return Embedding(self.box, self.horizon, self.harmonics)

    def __call__(self, z: Float[Array, " n"]) -> Float[Array, " fields"]:
        """The fields at one point z = (x_1, ..., x_dim[, t]), in physical units."""
        hidden = self._embedding(z)
        for layer in self.layers[:-1]:
            hidden = jnp.tanh(layer(hidden))
        value = self.mean[...] + self.scale[...] * self.layers[-1](hidden)
        if self.keeps_boundary:
            value = value * self._distance(z[: self.box.dim])
        if self.keeps_initial:
            value = self._initial(z[: self.box.dim]) + (z[self.box.dim] / self.horizon) * value
        return value

    def _initial(self, x: Array) -> Array:
        leaves = [leaf[...] for leaf in self.initial_leaves]
        functions = jax.tree.unflatten(self.initial_structure, leaves)
        return jnp.stack([evaluate(functions[name], x, 0.0) for name in self.field_names])

    def _distance(self, x: Array) -> Array:
        s = (x - jnp.asarray(self.box.lower)) / jnp.asarray(self.box.lengths)
        bounded = jnp.asarray([not p for p in self.box.periodic])
        return jnp.prod(jnp.where(bounded, 4 * s * (1 - s), 1.0))


def has_zero_dirichlet_faces(problem: Problem) -> bool:
    """Whether there are bounded faces and all of them demand u = 0."""
    conditions = problem.boundary.values()
    return bool(conditions) and all(_is_zero_dirichlet(c) for c in conditions)


def _is_zero_dirichlet(condition: Any) -> bool:
    return condition.beta == 0.0 and not callable(condition.value) and float(condition.value) == 0.0
