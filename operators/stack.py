"""Many equal layers as one: stacked parameters, one compiled layer, and devices in a row that share the depth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from flax import nnx

from sciml import axes
from sciml.axes import LAYERS
from sciml.operators.predictor import FieldPredictor
from sciml.parallel.pipeline import gpipe
from sciml.spec import Spec, Statistics
from sciml.training.objective import PENALTY
from sciml.types import Array, PyTree

Travelling: TypeAlias = dict[str, Array]
"""What goes from layer to layer: the tokens and whatever else a layer needs or leaves for the end."""


class Stack(nnx.Module):
    """`count` blocks of equal structure, each a map of `Travelling` to itself, one sample at a time.

    Their parameters are those of one block with an axis of layers in front, so that one layer is compiled
    however deep the stack is, and the depth can be split over devices. With the plan's `remat` a layer keeps
    only its input for the backward pass, and its parameters are gathered again where they are stored in shards.
    """

    def __init__(self, make: Callable[[], nnx.Module], count: int) -> None:
        blocks = [make() for _ in range(count)]
        self.count, self.block = count, blocks[0]
        states = [nnx.state(block, nnx.Param) for block in blocks]
        stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
        variables = jax.tree.leaves(stacked, is_leaf=lambda leaf: isinstance(leaf, nnx.Variable))
        for variable in variables:
            noted, ndim = variable.get_metadata(), variable[...].ndim - 1
            variable.set_metadata(axes=(LAYERS, *(noted.get("axes") or (None,) * ndim)))
            variable.set_metadata(matrix=noted.get("matrix", ((-2,), (-1,)) if ndim == 2 else ()))
        nnx.update(self.block, stacked)

    def __call__(self, state: Travelling) -> Travelling:
        """One sample through all layers."""
        if axes.parts(LAYERS) == 1:
            return self._through(state, lambda block, now: block(now))
        return jax.tree.map(lambda a: a[0], gpipe(self.stage, jax.tree.map(lambda a: a[None], state), 1))

    def batch(self, states: Travelling) -> Travelling:
        """Rows of samples through all layers; in portions through devices in a row, where these share the depth."""
        if axes.parts(LAYERS) == 1:
            return self.stage(states)
        return gpipe(self.stage, states, axes.placement().options.get("microbatches") or 1)

    def stage(self, states: Travelling) -> Travelling:
        """Rows of samples through the layers that this device has."""
        return self._through(states, lambda block, now: jax.vmap(block)(now))

    def _through(self, state: Travelling, apply: Callable[[Any, Travelling], Travelling]) -> Travelling:
        options = axes.placement().options
        gather = options.get("gather") or (lambda layer: layer)
        graphdef, layers = nnx.split(self.block, nnx.Param)

        def step(now: Travelling, layer: PyTree) -> tuple[Travelling, None]:
            return apply(nnx.merge(graphdef, gather(layer)), now), None

        body = jax.checkpoint(step, prevent_cse=False) if options.get("remat") else step
        first = jax.tree.map(lambda leaf: leaf[0], layers)
        state = axes.settled(lambda now: step(now, first)[0], state)
        return jax.lax.scan(body, state, layers)[0]


class StackPredictor(nnx.Module):
    """A network in three parts (`embed`, `stack`, `head`) as a map of dicts in physical units.

    One sample at a time like every model; a whole batch by `predict_batch`, or by its parts `before`, `stage`
    and `after`, between which a schedule of portions over devices may do its work.
    """

    def __init__(self, network: Any, spec: Spec, statistics: Mapping[str, Statistics]) -> None:
        self.fields = FieldPredictor(network, spec, statistics)

    @property
    def network(self) -> Any:
        """The network of fields and scalars of order one."""
        return self.fields.network

    @property
    def spec(self) -> Spec:
        """Variables that come in and go out."""
        return self.fields.spec

    @property
    def encoders(self) -> nnx.Dict:
        """Normalizers of the inputs, by name."""
        return self.fields.encoders

    @property
    def space_axes(self) -> Mapping[str, int] | None:
        """Position of the first space axis of each variable, as of every predictor of fields."""
        return getattr(self.fields, "space_axes", None)

    def __call__(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        return self.fields(inputs)

    def predict_batch(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Outputs of all rows, and the penalties that the network asks for."""
        return self.after(self.network.stack.batch(self.before(inputs)))

    def before(self, inputs: Mapping[str, Array]) -> Travelling:
        """Inputs to what enters the first layer."""
        return jax.vmap(lambda sample: self.network.embed(*self.fields.encode(sample)))(inputs)

    def stage(self, states: Travelling) -> Travelling:
        """Through the layers that this device has."""
        return self.network.stack.stage(states)

    def after(self, states: Travelling) -> dict[str, Array]:
        """From what leaves the last layer to outputs and penalties."""
        outputs = jax.vmap(lambda state: self.fields.decode(self.network.head(state)))(states)
        penalties = jax.vmap(self.network.penalties)(states)
        return {**outputs, **{PENALTY + name: rows for name, rows in penalties.items()}}
