"""The two sides of an update: the functions that a sharded step offers, and the optimizer that calls them."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias

import jax.numpy as jnp
import optax

from sciml.types import Array, PyTree, Scalar

Parts: TypeAlias = dict[str, Scalar]
Info: TypeAlias = dict[str, Scalar]


class NormalEquations(NamedTuple):
    """Least squares linearized at some parameters, in the order of `jax.flatten_util.ravel_pytree`.

    `matrix` is JᵀJ, `gradient` is Jᵀr, with rows scaled so that rᵀr is the loss; hence the gradient of the
    loss is 2 Jᵀr.
    """

    matrix: Array
    gradient: Array
    loss: Scalar
    parts: Parts


class LossFunctions(NamedTuple):
    """The loss of one batch as functions of the parameters; all sums over devices happen inside.

    value: params -> (loss, parts); differentiable.
    value_and_grad: params -> ((loss, parts), gradient). A complex leaf's gradient is the direction of
      steepest ascent (the conjugate of what `jax.grad` gives).
    normal_equations: params -> NormalEquations; needs real parameters.
    curvature: (params, direction) -> Jᵀ r'', with r'' the second derivative of the residuals along
      `direction` (a tree like params); flat, shape (parameters,).
    value_and_grad_apart: the same as value_and_grad, but every part of the mesh axis `data` keeps its own gradient
      (their sum is the gradient): for optimizers that communicate by themselves.
    norm: gradient -> its Euclidean norm, over all devices where each has a part.
    """

    value: Callable[[PyTree], tuple[Scalar, Parts]]
    value_and_grad: Callable[[PyTree], tuple[tuple[Scalar, Parts], PyTree]]
    normal_equations: Callable[[PyTree], NormalEquations]
    curvature: Callable[[PyTree, PyTree], Array]
    value_and_grad_apart: Callable[[PyTree], tuple[tuple[Scalar, Parts], PyTree]]
    norm: Callable[[PyTree], Scalar]


class Update(NamedTuple):
    """What one update gives: `info` is logged, with at least loss and grad_norm; `parts` are the terms."""

    params: PyTree
    state: PyTree
    info: Info
    parts: Parts


class Optimizer(abc.ABC):
    """A rule that improves parameters. Its state is a PyTree of arrays, made by `init`."""

    @property
    def is_elementwise(self) -> bool:
        """Whether it can be applied to parts of the parameters, each on its own device (ZeRO, split layers)."""
        return False

    @property
    def title(self) -> str:
        """What messages call it."""
        return type(self).__name__

    @abc.abstractmethod
    def init(self, params: PyTree) -> PyTree:
        """State before the first update."""

    @abc.abstractmethod
    def update(self, functions: LossFunctions, params: PyTree, state: PyTree) -> Update:
        """One update; pure, traced once, dtype of every leaf kept."""


class OptimizerConfig(Protocol):
    """What a registered optimizer is: options of a recipe, and `build` for the length of the training."""

    def build(self, steps: int) -> Optimizer:
        """The optimizer for a training of `steps` steps (schedules end there)."""
        ...


def global_norm(tree: PyTree) -> Scalar:
    """Euclidean norm over all leaves."""
    return jnp.asarray(optax.tree.norm(tree))
