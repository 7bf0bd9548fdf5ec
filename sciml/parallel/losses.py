"""The loss of one batch, seen from one device: local sums over its rows, then sums over devices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sciml.errors import ConfigError
from sciml.parallel.layout import Layout
from sciml.parallel.names import DATA
from sciml.parallel.pipeline import Stages, one_f_one_b
from sciml.parallel.rows import ResidualFunction, gram, row_jacobians, stacked
from sciml.training.objective import Batch, Residuals
from sciml.training.optimizer import LossFunctions, NormalEquations, Parts
from sciml.types import Array, PyTree, Scalar


@final
@dataclass(frozen=True)
class _Share:
    """One device's share of the work; used inside `shard_map` only."""

    residuals: ResidualFunction
    batch: Batch
    layout: Layout

    def size(self, values: Array, portions: int = 1) -> int:
        """Number of residuals of a term over all devices and portions, from those of one portion (or a part of it)."""
        return values.size * portions * self.layout.parts * self.layout.plan.accumulate

    def parts(self, params: PyTree, portion: Batch) -> Parts:
        """This portion's share of each term."""
        return self.terms(self.residuals(params, portion))

    def terms(self, rows: Residuals, portions: int = 1) -> Parts:
        """Share of each term that residuals have."""
        return {name: jnp.sum(_square(values)) / self.size(values, portions) for name, values in rows.items()}

    def gradient(self, params: PyTree, portion: Batch) -> tuple[PyTree, Parts]:
        """Gradient of this portion's share, and the share."""

        def loss(leaves: PyTree) -> tuple[Scalar, Parts]:
            parts = self.parts(leaves, portion)
            return _sum(parts), parts

        return jax.grad(loss, has_aux=True)(params)

    def gradient_in_stages(self, stages: Stages, params: PyTree, portion: Batch) -> tuple[PyTree, Parts]:
        """The same, with rows on their way forward and back through a pipeline at once."""
        count = self.layout.plan.microbatches

        def loss_after(leaves: PyTree, states: PyTree, rows: Batch) -> Parts:
            return self.terms(stages.residuals(leaves, states, rows), count)

        parts, gradient = one_f_one_b(stages.before, stages.stage, loss_after, params, portion, count)
        return gradient, parts

    def portions(self, function: Callable[[Batch], Any]) -> Any:
        """Sum of `function` over this device's portions."""
        count = self.layout.plan.accumulate
        if count == 1:
            return function(self.batch)
        portions = jax.tree.map(lambda a: a.reshape(count, a.shape[0] // count, *a.shape[1:]), self.batch)
        first = function(jax.tree.map(lambda a: a[0], portions))

        def add(total: Any, portion: Batch) -> tuple[Any, None]:
            return jax.tree.map(jnp.add, total, function(portion)), None

        total, _ = jax.lax.scan(add, first, jax.tree.map(lambda a: a[1:], portions))
        return total

    def total(self, function: Callable[[Batch], Any]) -> Any:
        """Sum of `function` over all portions and devices, with a single communication at the end."""
        return self.over_devices(self.portions(function))

    def over_devices(self, tree: Any) -> Any:
        """Sum over the devices that have different parts of the loss."""
        return jax.lax.psum(tree, self.layout.sums) if self.layout.sums else tree


def loss_functions(
    residuals: ResidualFunction,
    batch: Batch,
    layout: Layout,
    whole: Callable[[PyTree], PyTree] = lambda params: params,
    stages: Stages | None = None,
) -> LossFunctions:
    """Loss, gradient and normal equations over all devices, for use inside `shard_map`.

    `whole` makes the parameters of the model from what the optimizer holds: shards, from ZeRO stage 1 on. With
    `stages` the gradient is taken by the schedule 1F1B.
    """
    share = _Share(residuals, batch, layout)

    def local(params: PyTree) -> PyTree:
        return layout.vary(whole(params))

    def value(params: PyTree) -> tuple[Scalar, Parts]:
        mine = local(params)
        parts = share.total(lambda portion: share.parts(mine, portion))
        return _sum(parts), parts

    def value_and_grad(params: PyTree, apart: tuple[str, ...] = ()) -> tuple[tuple[Scalar, Parts], PyTree]:
        mine = local(params)
        gradient = share.gradient if stages is None else partial(share.gradient_in_stages, stages)
        ascent, parts = share.portions(lambda portion: gradient(mine, portion))
        ascent, parts = layout.reduce(ascent, parts, apart)
        return (_sum(parts), parts), jax.tree.map(jnp.conj, ascent)

    def normal_equations(params: PyTree) -> NormalEquations:
        _refuse_complex(params)
        mine = local(params)

        def products(portion: Batch) -> tuple[Array, Array, Parts]:
            rows = row_jacobians(residuals, mine, portion)
            sizes = {name: share.size(values) for name, (values, _) in rows.items()}
            r, jacobian = stacked(rows, sizes)
            parts = {name: jnp.sum(values**2) / sizes[name] for name, (values, _) in rows.items()}
            return gram(jacobian), jacobian @ r, parts

        matrix, gradient, parts = share.total(products)
        return NormalEquations(matrix, gradient, _sum(parts), parts)

    def curvature(params: PyTree, direction: PyTree) -> Array:
        mine, along = local(params), layout.vary(direction)

        def product(portion: Batch) -> Array:
            def scaled(leaves: PyTree) -> dict[str, Array]:
                return {n: v / share.size(v) ** 0.5 for n, v in residuals(leaves, portion).items()}

            second = _second_derivative(scaled, mine, along)
            _, pull = jax.vjp(scaled, mine)
            return ravel_pytree(pull(second)[0])[0]

        return share.total(product)

    apart = layout.plan.used(DATA)
    return LossFunctions(
        value,
        value_and_grad,
        normal_equations,
        curvature,
        lambda params: value_and_grad(params, apart),
        layout.norm,
    )


def _second_derivative(function: Callable[[PyTree], PyTree], at: PyTree, along: PyTree) -> PyTree:
    def first(leaves: PyTree) -> PyTree:
        return jax.jvp(function, (leaves,), (along,))[1]

    return jax.jvp(first, (at,), (along,))[1]


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
