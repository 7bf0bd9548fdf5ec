"""The state of a training: everything that a checkpoint must hold to continue bit for bit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from sciml.training.optimizer import Optimizer
from sciml.types import Array, Key, PyTree

Precision: TypeAlias = Literal["bfloat16", "float32", "float64"]
BYTES: Mapping[Precision, int] = {"float64": 8, "float32": 4, "bfloat16": 2}
"""Per number."""
"""Of arithmetic; with bfloat16, parameters, optimizer state, batches and losses are float32."""
T = TypeVar("T")


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class TrainState:
    """Number of steps done (int32), trained parameters, optimizer state, and the key of the run.

    The key of a step is `jax.random.fold_in(key, step)`, so it needs no state of its own.
    """

    step: Array
    params: PyTree
    opt_state: PyTree
    key: Key

    @classmethod
    def start(cls, model: nnx.Module, optimizer: Optimizer, key: Key, precision: Precision = "float64") -> TrainState:
        """State before the first step; copies the model's parameters, which stay untouched."""
        params = jax.tree.map(_own, cast(parameters(model), precision))
        opt_state = jax.tree.map(_own, optimizer.init(params))
        return cls(jnp.zeros((), jnp.int32), params, opt_state, jnp.copy(key))


def parameters(model: nnx.Module) -> nnx.State:
    """What is trained: the `nnx.Param` leaves."""
    return nnx.state(model, nnx.Param)


def with_parameters(model: nnx.Module, params: PyTree) -> nnx.Module:
    """A copy of `model` that holds `params`; its other variables (statistics) are shared."""
    graphdef, _, constants = nnx.split(model, nnx.Param, ...)
    return nnx.merge(graphdef, params, constants)


def parameter_count(model: nnx.Module) -> int:
    """Number of trained real numbers (a complex one counts twice)."""
    leaves = jax.tree.leaves(parameters(model))
    return sum(leaf.size * (2 if jnp.iscomplexobj(leaf) else 1) for leaf in leaves)


def cast(tree: T, precision: Precision) -> T:
    """The tree with its floating and complex arrays in the precision of storage; integers and keys are left alone."""
    kept = "float32" if precision == "bfloat16" else precision
    kinds = {"f": np.dtype(kept), "c": np.result_type(kept, np.complex64)}

    def convert(leaf: Array) -> Array:
        kind = kinds.get(getattr(getattr(leaf, "dtype", None), "kind", ""))
        return leaf if kind is None or leaf.dtype == kind else leaf.astype(kind)

    return jax.tree.map(convert, tree)


def _own(leaf: Array) -> Array:
    """A copy with a definite dtype: steps consume their state, and a weak dtype would compile them twice."""
    return jnp.array(leaf, dtype=leaf.dtype)
