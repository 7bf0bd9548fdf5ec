"""The network of a PINN: fields as smooth functions of space and time that keep given conditions exactly."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import jax
import jax.numpy as jnp
from flax import nnx

from sciml import axes
from sciml.domain import Box
from sciml.functions import evaluate
from sciml.problem import Problem
from sciml.types import Array, Float

InitialCondition = Literal["exact", "free"]


class Constant(nnx.Variable):
    """A number of the problem inside a model: stored with it, not trained."""


class Embedding:
    """Inputs of order one: cos and sin of periodic coordinates (exact periodicity), [-1, 1] for the others.

    Time enters as t and, where `early` > 0, as log(1 + early t/horizon) too, which resolves fast decay after the start.
    """

    def __init__(self, box: Box, horizon: float | None, harmonics: int, early: float) -> None:
        self.box, self.horizon, self.harmonics, self.early = box, horizon, harmonics, early

    @property
    def waves(self) -> int:
        """Number of features that are cos or sin of a periodic coordinate."""
        return 2 * self.harmonics * sum(self.box.periodic)

    @property
    def size(self) -> int:
        """Number of features; the waves are the first of them."""
        times = 0 if self.horizon is None else 1 + (self.early > 0)
        return self.waves + sum(not p for p in self.box.periodic) + times

    def __call__(self, z: Float[Array, " n"]) -> Float[Array, " size"]:
        """Features of one point z = (x_1, ..., x_dim[, t])."""
        waves, others = [], []
        for axis, periodic in enumerate(self.box.periodic):
            s = (z[axis] - self.box.lower[axis]) / self.box.lengths[axis]
            if periodic:
                phases = 2 * jnp.pi * s * jnp.arange(1, self.harmonics + 1)
                waves += [jnp.cos(phases), jnp.sin(phases)]
            else:
                others.append((2 * s - 1)[None])
        if self.horizon is not None:
            share = z[self.box.dim] / self.horizon
            others.append((2 * share - 1)[None])
            if self.early > 0:
                others.append((2 * jnp.log1p(self.early * share) / math.log1p(self.early) - 1)[None])
        return jnp.concatenate([*waves, *others])


class FieldNetwork(nnx.Module):
    """u(z) = base(z) + ramp(t) distance(x) (mean + scale * network(z)), one tanh network for all fields.

    On periodic axes the network's outputs are the amplitudes of a short Fourier series with the same waves as its
    inputs, amplitudes that still depend on the whole of z: smooth decaying waves then need smooth amplitudes only.
    With an exact initial condition, base is the initial field and ramp = 1 - exp(-early t/horizon), or t/horizon
    where `early` is 0. Where every bounded face has a homogeneous Dirichlet condition, distance vanishes there (and
    is 1 inside otherwise), so it holds exactly. Other face conditions are left to the loss (`BoundaryResidual`).
    The auxiliary fields of the equation, such as a pressure, are outputs without conditions, after the others.
    """

    def __init__(
        self,
        problem: Problem,
        scales: Mapping[str, tuple[float, float]],
        *,
        width: int,
        layers: int,
        harmonics: int,
        early: float,
        initial: InitialCondition,
        rngs: nnx.Rngs,
    ) -> None:
        self.box = problem.domain
        self.field_names, self.unknown_names = problem.field_names, problem.unknown_names
        self.horizon = float(problem.horizon) if problem.is_evolution else None
        self.keeps_initial = problem.is_evolution and initial == "exact"
        self.keeps_boundary = has_zero_dirichlet_faces(problem)
        self.harmonics, self.early = harmonics, early
        leaves, self.initial_structure = jax.tree.flatten(problem.initial if self.keeps_initial else {})
        self.initial_leaves = nnx.List([Constant(jnp.asarray(leaf)) for leaf in leaves])
        shifts_by_base = self.keeps_initial or self.keeps_boundary
        self.mean = Constant(jnp.asarray([0.0 if shifts_by_base else scales[n][0] for n in self.unknown_names]))
        self.scale = Constant(jnp.asarray([scales[n][1] for n in self.unknown_names]))
        amplitudes = len(self.unknown_names) * (1 + self._embedding.waves)
        sizes = [self._embedding.size, *[width] * layers, amplitudes]
        names = [(None, None)] * (layers % 2 == 0) + [(None, axes.HIDDEN), (axes.HIDDEN, None)] * ((layers + 1) // 2)
        pairs = zip(sizes[:-1], sizes[1:], names, strict=True)
        self.layers = nnx.List([_linear(a, b, name, rngs) for a, b, name in pairs])

    @property
    def _embedding(self) -> Embedding:
        return Embedding(self.box, self.horizon, self.harmonics, self.early)

    def __call__(self, z: Float[Array, " n"]) -> Float[Array, " fields"]:
        """The unknowns at one point z = (x_1, ..., x_dim[, t]), in physical units."""
        features = hidden = self._embedding(z)
        for layer in self.layers[:-1]:
            hidden = jnp.tanh(_apply(layer, hidden))
        amplitudes = _apply(self.layers[-1], hidden).reshape(len(self.unknown_names), -1)
        waves = features[: amplitudes.shape[1] - 1]
        value = self.mean[...] + self.scale[...] * (amplitudes[:, 0] + amplitudes[:, 1:] @ waves)
        if self.keeps_boundary:
            value = value * self._distance(z[: self.box.dim])
        if self.keeps_initial and self.horizon is not None:
            ramp = self._ramp(z[self.box.dim] / self.horizon)
            n = len(self.field_names)
            value = jnp.concatenate([self._initial(z[: self.box.dim]) + ramp * value[:n], value[n:]])
        return value

    def _ramp(self, share: Array) -> Array:
        """Zero at the start; t/horizon would ask the network for steep values where waves decay early."""
        return -jnp.expm1(-self.early * share) if self.early > 0 else share

    def _initial(self, x: Array) -> Array:
        leaves = [leaf[...] for leaf in self.initial_leaves]
        functions = jax.tree.unflatten(self.initial_structure, leaves)
        return jnp.stack([evaluate(functions[name], x, 0.0) for name in self.field_names])

    def _distance(self, x: Array) -> Array:
        s = (x - jnp.asarray(self.box.lower)) / jnp.asarray(self.box.lengths)
        bounded = jnp.asarray([not p for p in self.box.periodic])
        return jnp.prod(jnp.where(bounded, 4 * s * (1 - s), 1.0))


def _linear(size_in: int, size_out: int, names: tuple[str | None, str | None], rngs: nnx.Rngs) -> nnx.Linear:
    """A layer whose axes have logical names: of two that follow each other the middle may be split."""
    return nnx.Linear(
        size_in,
        size_out,
        kernel_init=nnx.initializers.glorot_normal(),
        kernel_metadata={"axes": names},
        bias_metadata={"axes": names[1:]},
        param_dtype=jnp.float64,
        rngs=rngs,
    )


def _apply(layer: nnx.Linear, x: Array) -> Array:
    name = layer.kernel.get_metadata()["axes"][0]
    assert layer.bias is not None
    return axes.total(x @ layer.kernel[...], name) + layer.bias[...]


def has_zero_dirichlet_faces(problem: Problem) -> bool:
    """Whether there are bounded faces and all of them demand u = 0."""
    conditions = problem.boundary.values()
    return bool(conditions) and all(_is_zero_dirichlet(c) for c in conditions)


def _is_zero_dirichlet(condition: Any) -> bool:
    return condition.beta == 0.0 and not callable(condition.value) and float(condition.value) == 0.0
