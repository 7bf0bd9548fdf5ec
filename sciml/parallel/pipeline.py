"""Equal stages on devices in a row: portions of a batch pass through them one after the other.

A stage is the layers that one device has. With S stages and M portions (microbatches) a device is idle, or works
on nothing, for S - 1 of M + S - 1 steps of the forward pass. Sources: GPipe, arXiv:1811.06965; 1F1B,
arXiv:1806.03377.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import jax
import jax.numpy as jnp

from sciml import axes
from sciml.axes import LAYERS
from sciml.errors import ConfigError
from sciml.training.objective import Batch, Objective, Residuals
from sciml.training.optimizer import Parts
from sciml.types import Array, PyTree

Stage = Callable[[PyTree], PyTree]


@final
@dataclass(frozen=True)
class Known:
    """Stands for a model in an objective where the outputs for the rows at hand are known already."""

    outputs: Batch

    def predict_batch(self, inputs: Batch) -> Batch:
        """The outputs, whatever the inputs."""
        del inputs
        return self.outputs


class Stages(NamedTuple):
    """A model and its objective in the three parts that a schedule needs, as functions of the parameters.

    before: (params, rows) -> what enters the first stage. stage: (params, states) -> states, by the layers that
    this device has. residuals: (params, states after the last stage, rows) -> residuals.
    """

    before: Callable[[PyTree, Batch], PyTree]
    stage: Callable[[PyTree, PyTree], PyTree]
    residuals: Callable[[PyTree, PyTree, Batch], Residuals]

    @classmethod
    def of(cls, assemble: Callable[[PyTree], Any], objective: Objective) -> Stages:
        """Of a model with the methods `before`, `stage` and `after`; `assemble` makes it from parameters."""

        def residuals(params: PyTree, states: PyTree, rows: Batch) -> Residuals:
            model: Any = Known(assemble(params).after(states))
            return objective.residuals(model, rows)

        return cls(
            lambda params, rows: assemble(params).before(rows),
            lambda params, states: assemble(params).stage(states),
            residuals,
        )


def gpipe(stage: Stage, states: PyTree, microbatches: int) -> PyTree:
    """All rows of `states` through all stages, known to every device in the end. Differentiable.

    The backward pass runs the portions back in the opposite order, when all are through: what a stage keeps
    for it grows with their number.
    """
    count, here = axes.parts(LAYERS), axes.index(LAYERS)
    portions = portioned(states, microbatches)
    portions = jax.tree.map(lambda a: axes.vary(a, [axes.mesh_axis(LAYERS)]), portions)  # one sum of their gradients

    def tick(arriving: PyTree, time: Array) -> tuple[PyTree, PyTree]:
        fresh = _at(portions, jnp.minimum(time, microbatches - 1))
        leaving = stage(_where(here == 0, fresh, arriving))
        return _passed_on(leaving), leaving

    nothing = jax.tree.map(lambda a: jnp.zeros_like(a[0]), portions)
    nothing = axes.settled(lambda arriving: tick(arriving, jnp.asarray(0))[0], nothing)
    _, left = jax.lax.scan(tick, nothing, jnp.arange(microbatches + count - 1))
    done = jax.tree.map(lambda a: a[count - 1 :].reshape(-1, *a.shape[2:]), left)
    return jax.tree.map(lambda a: axes.total(jnp.where(here == count - 1, a, 0), LAYERS), done)


def one_f_one_b(
    before: Callable[[PyTree, Batch], PyTree],
    stage: Callable[[PyTree, PyTree], PyTree],
    loss_after: Callable[[PyTree, PyTree, Batch], Parts],
    params: PyTree,
    batch: Batch,
    microbatches: int,
) -> tuple[Parts, PyTree]:
    """Sums over all portions of the loss parts, and the gradient of their total.

    before: (params, rows) -> what enters the first stage; stage: (params, states) -> states; loss_after:
    (params, states, rows) -> parts of the loss. `params` are this device's: leaves that differ along the mesh
    axis of the stages are the layers of its own stage, the gradients of all others are added over the stages.

    In each tick a stage takes one portion forward and another one backward, of which it kept the input only:
    what is kept does not grow with the number of portions, for M + 2S - 2 ticks with one forward pass more.
    """
    count, here, axis = axes.parts(LAYERS), axes.index(LAYERS), axes.mesh_axis(LAYERS)
    first, last, slots = here == 0, here == count - 1, 2 * count - 1
    shared = jax.tree.map(lambda leaf: axis not in axes.varying(leaf), params)
    params = jax.tree.map(lambda leaf: axes.vary(leaf, [axis]), params)
    portions = portioned(batch, microbatches)

    def whole(params: PyTree, arriving: PyTree, rows: Batch) -> tuple[PyTree, Parts]:
        leaving = stage(params, _where(first, before(params, rows), arriving))
        return leaving, loss_after(params, leaving, rows)

    def tick(carry: tuple[Any, ...], time: Array) -> tuple[tuple[Any, ...], None]:
        arriving, slope, kept, parts, gradient = carry
        forth, back = time - here, time - (2 * count - 2 - here)
        kept = jax.tree.map(lambda a, x: jax.lax.dynamic_update_index_in_dim(a, x, forth % slots, 0), kept, arriving)
        leaving = _passed_on(stage(params, _where(first, before(params, _at(portions, forth)), arriving)))
        rows, valid = _at(portions, back), (back >= 0) & (back < microbatches)
        primal, pull = jax.vjp(lambda p, a: whole(p, a, rows), params, _after(_at(kept, back % slots), leaving))
        wanted = _after(jax.tree.map(lambda s: jnp.where(valid & ~last, s, 0), slope), primal)
        counted = jax.tree.map(lambda x: jnp.where(valid & last, jnp.ones_like(x), 0), primal[1])
        by_params, by_arriving = pull(jax.tree.map(axes.varying_like, (wanted, counted), primal))
        parts = jax.tree.map(lambda total, x: total + jnp.where(valid & last, x, 0), parts, primal[1])
        gradient = jax.tree.map(jnp.add, gradient, by_params)
        return (leaving, _passed_on(by_arriving, -1), kept, parts, gradient), None

    rows = _at(portions, 0)
    state = jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), jax.eval_shape(before, params, rows))
    parts = jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), jax.eval_shape(loss_after, params, state, rows))
    kept = jax.tree.map(lambda a: jnp.zeros((slots, *a.shape), a.dtype), state)
    start = (state, state, kept, parts, jax.tree.map(jnp.zeros_like, params))
    start = axes.settled(lambda carry: tick(carry, jnp.asarray(0))[0], start)
    (_, _, _, parts, gradient), _ = jax.lax.scan(tick, start, jnp.arange(microbatches + 2 * count - 2))
    gradient = jax.tree.map(lambda g, alike: jax.lax.psum(g, axis) if alike else g, gradient, shared)
    return jax.tree.map(lambda x: jax.lax.psum(x, axis), parts), gradient


def portioned(rows: PyTree, microbatches: int) -> PyTree:
    """Rows `(n, ...)` as `(microbatches, n / microbatches, ...)`. ConfigError where that does not divide."""
    bad = sorted({a.shape[0] for a in jax.tree.leaves(rows) if a.shape[0] % microbatches})
    if bad:
        raise ConfigError(
            "the rows on each device do not divide into microbatches",
            expected=f"a multiple of {microbatches} rows per device",
            got=", ".join(map(str, bad)),
            fix="a batch or a number of microbatches that fit: rows = data x fsdp x expert x microbatches x n",
        )
    return jax.tree.map(lambda a: a.reshape(microbatches, -1, *a.shape[1:]), rows)


def _passed_on(tree: PyTree, by: int = 1) -> PyTree:
    """From each stage to the next one, or with -1 to the one before; the stage at the start gets zeros."""
    axis, count = axes.mesh_axis(LAYERS), axes.parts(LAYERS)
    pairs = [(i, i + by) for i in range(count) if 0 <= i + by < count]
    names = {name for leaf in jax.tree.leaves(tree) for name in axes.varying(leaf)}
    tree = _together(jax.tree.map(lambda a: axes.vary(a, [n for n in names if n not in axes.varying(a)]), tree))
    return _together(jax.tree.map(lambda a: jax.lax.ppermute(a, axis, pairs), tree))


@jax.custom_vjp
def _together(tree: PyTree) -> PyTree:
    """The same arrays, of which none is there before all are, neither here nor on the way back."""
    return _after(tree, tree)


_together.defvjp(lambda tree: (_after(tree, tree), None), lambda _, slope: (_after(slope, slope),))


def _after(later: PyTree, earlier: PyTree) -> PyTree:
    """`later`, computed after all of `earlier`; NaN where one of those begins with NaN.

    XLA on CPUs starts what does not depend on a loop while the loop still runs. Collectives inside the loop then meet
    others in an order that differs from device to device: they stand still, or add up the wrong arrays. Such a
    dependency is what keeps their order; a barrier is gone before the program is scheduled.
    """
    marks = [leaf.reshape(-1)[0].astype(jnp.float32) for leaf in jax.tree.leaves(earlier)]

    def delayed(array: Array) -> Array:
        known = sum(mark for mark in marks if set(axes.varying(mark)) <= set(axes.varying(array)))
        return jnp.where(jnp.isnan(known), jnp.nan, array)

    return jax.tree.map(delayed, later)


def _at(tree: PyTree, index: Array | int) -> PyTree:
    """One portion; indices outside give the first or the last."""
    return jax.tree.map(lambda a: jax.lax.dynamic_index_in_dim(a, index, keepdims=False), tree)


def _where(condition: Array | bool, yes: PyTree, no: PyTree) -> PyTree:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)
