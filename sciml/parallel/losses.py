"""The loss of one batch, seen from one device: local sums over its rows, then sums over devices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sciml.errors import ConfigError
from sciml.parallel.plan import DATA, Plan
from sciml.parallel.rows import ResidualFunction, gram, row_jacobians, stacked
from sciml.training.objective import Batch
from sciml.training.optimizer import LossFunctions, NormalEquations, Parts
from sciml.types import Array, PyTree, Scalar


@dataclass(frozen=True)
class _Shard:
    """One device's portion of the work; used inside `shard_map` over the axis `data` only."""

    residuals: ResidualFunction
    batch: Batch
    plan: Plan

    def sizes(self, params: PyTree) -> dict[str, int]:
        """Number of residuals of each term over all devices."""
        shapes = jax.eval_shape(self.residuals, params, self.batch)
        return {name: values.size * self.plan.shards for name, values in shapes.items()}

    def parts(self, params: PyTree, portion: Batch, sizes: dict[str, int]) -> Parts:
        """This portion's share of each term."""
        rows = self.residuals(params, portion)
        return {name: jnp.sum(_square(values)) / sizes[name] for name, values in rows.items()}

    def total(self, function: Callable[[Batch], Any]) -> Any:
        """Sum of `function` over all portions and devices, with a single communication at the end."""
        count = self.plan.accumulate
        if count == 1:
            return jax.lax.psum(function(self.batch), DATA)
        portions = jax.tree.map(lambda a: a.reshape(count, a.shape[0] // count, *a.shape[1:]), self.batch)
        first = function(jax.tree.map(lambda a: a[0], portions))

        def add(total: Any, portion: Batch) -> tuple[Any, None]:
            return jax.tree.map(jnp.add, total, function(portion)), None

        total, _ = jax.lax.scan(add, first, jax.tree.map(lambda a: a[1:], portions))
        return jax.lax.psum(total, DATA)


def loss_functions(residuals: ResidualFunction, batch: Batch, plan: Plan) -> LossFunctions:
    """Loss, gradient and normal equations over all devices, for use inside `shard_map`."""
    shard = _Shard(residuals, batch, plan)

    def value(params: PyTree) -> tuple[Scalar, Parts]:
        local, sizes = _per_device(params), shard.sizes(params)
        parts = shard.total(lambda portion: shard.parts(local, portion, sizes))
        return _sum(parts), parts

    def value_and_grad(params: PyTree) -> tuple[tuple[Scalar, Parts], PyTree]:
        local, sizes = _per_device(params), shard.sizes(params)

        def loss(leaves: PyTree, portion: Batch) -> tuple[Scalar, Parts]:
            parts = shard.parts(leaves, portion, sizes)
            return _sum(parts), parts

        def gradient(portion: Batch) -> tuple[PyTree, Parts]:
            return jax.grad(loss, has_aux=True)(local, portion)

        ascent, parts = shard.total(gradient)
        return (_sum(parts), parts), jax.tree.map(jnp.conj, ascent)

    def normal_equations(params: PyTree) -> NormalEquations:
        _refuse_complex(params)
        local, sizes = _per_device(params), shard.sizes(params)

        def products(portion: Batch) -> tuple[Array, Array, Parts]:
            rows = row_jacobians(residuals, local, portion)
            r, jacobian = stacked(rows, sizes)
            parts = {name: jnp.sum(values**2) / sizes[name] for name, (values, _) in rows.items()}
            return gram(jacobian), jacobian @ r, parts

        matrix, gradient, parts = shard.total(products)
        return NormalEquations(matrix, gradient, _sum(parts), parts)

    def curvature(params: PyTree, direction: PyTree) -> Array:
        local, along, sizes = _per_device(params), _per_device(direction), shard.sizes(params)

        def product(portion: Batch) -> Array:
            def scaled(leaves: PyTree) -> dict[str, Array]:
                return {n: v / sizes[n] ** 0.5 for n, v in residuals(leaves, portion).items()}

            second = _second_derivative(scaled, local, along)
            _, pull = jax.vjp(scaled, local)
            return ravel_pytree(pull(second)[0])[0]

        return shard.total(product)

    return LossFunctions(value, value_and_grad, normal_equations, curvature)


def _second_derivative(function: Callable[[PyTree], PyTree], at: PyTree, along: PyTree) -> PyTree:
    def first(leaves: PyTree) -> PyTree:
        return jax.jvp(function, (leaves,), (along,))[1]

    return jax.jvp(first, (at,), (along,))[1]


def _per_device(params: PyTree) -> PyTree:
    """Copies that may differ between devices, so that differentiation does not communicate by itself."""
    return jax.tree.map(lambda leaf: jax.lax.pcast(leaf, DATA, to="varying"), params)


def _square(values: Array) -> Array:
    return jnp.real(values * jnp.conj(values)) if jnp.iscomplexobj(values) else values * values


def _sum(parts: Parts) -> Scalar:
    return jnp.sum(jnp.stack(list(parts.values())))


def _refuse_complex(params: PyTree) -> None:
    bad = [jax.tree_util.keystr(path) for path, leaf in jax.tree.leaves_with_path(params) if jnp.iscomplexobj(leaf)]
    if bad:
        raise ConfigError(
            "least-squares optimizers need real parameters",
            got=f"complex leaves {bad}",
            fix="optimizer: adam, or store real and imaginary parts separately",
        )
