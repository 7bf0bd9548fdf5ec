"""A mixture of experts: every token is worked on by one or two of many networks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import jax
import jax.numpy as jnp
from flax import nnx

from sciml import axes
from sciml.axes import EXPERTS, HIDDEN, SPACE
from sciml.errors import ConfigError
from sciml.operators.attention import precise
from sciml.operators.dense import ACTIVATIONS, Activation, Dense
from sciml.types import Array, Float, Int


class GatedPerceptron(nnx.Module):
    """`(..., width) -> (..., width)`: C (act(A x) * (B x)); C starts at `gain` times its usual size."""

    def __init__(
        self,
        width: int,
        hidden: int,
        activation: Activation,
        *,
        gain: float = 0.0,
        dtype: jnp.dtype | type,
        rngs: nnx.Rngs,
    ) -> None:
        self.activation: Activation = activation
        first, last = (1.0 / width) ** 0.5, gain * (1.0 / hidden) ** 0.5
        inner = first * jax.random.normal(rngs.params(), (width, 2, hidden), dtype)
        outer = last * jax.random.normal(rngs.params(), (hidden, width), dtype)
        self.inner = nnx.Param(inner, axes=(None, None, HIDDEN), matrix=((-3,), (-1,)))
        self.outer = nnx.Param(outer, axes=(HIDDEN, None), matrix=((-2,), (-1,)))

    def __call__(self, x: Float[Array, "*rows width"]) -> Float[Array, "*rows width"]:
        inner = jnp.einsum("...d,dnh->n...h", axes.spread(x, HIDDEN), self.inner[...])
        return axes.total(ACTIVATIONS[self.activation](inner[0]) * inner[1] @ self.outer[...], HIDDEN)


class Experts(nnx.Module):
    """`(tokens, width) -> (tokens, width)` by the best one or two of `count` gated perceptrons.

    A linear router gives every token a probability per expert; the token goes to the best `chosen` ones and
    their results are added, weighted by these probabilities (normalized where two are chosen). Each expert
    takes at most `capacity * chosen * tokens / count` tokens of a group, a fixed part of one sample's tokens, in
    their order and all first choices before any second one; what is left over gets nothing here and passes by
    the residual connection. What is dropped therefore does not depend on the number of devices. Sources: W.
    Fedus et al., arXiv:2101.03961; D. Lepikhin et al., arXiv:2006.16668.
    """

    def __init__(
        self,
        width: int,
        hidden: int,
        count: int,
        *,
        chosen: int,
        groups: int,
        capacity: float,
        activation: Activation,
        gain: float = 0.0,
        dtype: jnp.dtype | type,
        rngs: nnx.Rngs,
    ) -> None:
        if chosen > count:
            raise ConfigError("a token cannot choose more experts than there are", expected=f"<= {count}", got=chosen)
        self.count, self.chosen, self.groups, self.capacity = count, chosen, groups, capacity
        self.activation: Activation = activation
        first, last = (1.0 / width) ** 0.5, gain * (1.0 / hidden) ** 0.5
        inner = jax.random.normal(rngs.params(), (count, width, 2, hidden), dtype)
        outer = jax.random.normal(rngs.params(), (count, hidden, width), dtype)
        self.router = Dense(width, count, dtype=dtype, rngs=rngs)
        self.inner = nnx.Param(first * inner, axes=(EXPERTS, None, None, HIDDEN), matrix=((-3,), (-1,)))
        self.outer = nnx.Param(last * outer, axes=(EXPERTS, HIDDEN, None), matrix=((-2,), (-1,)))

    def __call__(self, x: Float[Array, "tokens width"]) -> tuple[Float[Array, "tokens width"], Float[Array, " groups"]]:
        """The result, and for each group the squared coefficient of variation of the experts' shares.

        A share is the mean probability of an expert over the tokens of the group; 0 means perfect balance.
        Unlike the product of shares and counts in the first of the sources it is a square, and so fits least squares.
        """
        groups = self._groups(x.shape[0])
        tokens = x.reshape(groups, -1, x.shape[-1])
        room = room_of(tokens.shape[1], self.count, self.chosen, self.capacity)
        chances = jax.nn.softmax(precise(self.router(tokens)), -1)
        routes = jax.vmap(lambda p: route(p, self.chosen, room))(chances)
        filled = jax.vmap(lambda r, t: r.fill(t, self.count * room))(routes, tokens)
        sent = axes.swap(filled.reshape(groups, self.count, room, -1), EXPERTS, split=1, join=2)
        answers = axes.swap(self._work(sent), EXPERTS, split=2, join=1).reshape(groups, self.count * room, -1)
        result = jax.vmap(lambda r, a: r.collect(a))(routes, answers)
        shares = jnp.mean(chances, 1) * self.count
        return result.reshape(x.shape).astype(x.dtype), jnp.mean((shares - 1) ** 2, -1)

    def _work(self, tokens: Array) -> Array:
        """Each expert on its tokens, `(groups, experts, tokens, width)`."""
        inner = jnp.einsum("getd,ednh->ngeth", axes.spread(tokens, HIDDEN), self.inner[...])
        hidden = ACTIVATIONS[self.activation](inner[0]) * inner[1]
        return axes.total(jnp.einsum("geth,ehd->getd", hidden, self.outer[...]), HIDDEN)

    def _groups(self, tokens: int) -> int:
        """Number of groups on this device."""
        parts = axes.parts(SPACE)
        if self.groups % parts or tokens * parts % self.groups:
            whole = tokens * parts
            fits = [n for n in range(parts, whole + 1, parts) if whole % n == 0]
            raise ConfigError(
                "groups of tokens do not divide",
                expected=f"groups: one of {fits}" if fits else f"a number of tokens that {parts} divides",
                got=f"groups {self.groups}, {whole} tokens, space in {parts} parts",
                reason="each group takes as many tokens of one sample, and lies on one device",
            )
        return self.groups // parts


def room_of(tokens: int, experts: int, chosen: int, capacity: float) -> int:
    """Tokens that one expert takes from a group of `tokens`."""
    return min(tokens, math.ceil(capacity * chosen * tokens / experts))


@final
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Route:
    """Of each token in a group and each of its choices: the place in the experts' buffers, and the weight."""

    places: Int[Array, "tokens chosen"]
    weights: Float[Array, "tokens chosen"]

    def fill(self, tokens: Array, size: int) -> Array:
        """The buffers of all experts, one after the other; places without a token hold zeros."""
        chosen = self.places.shape[1]
        buffer = axes.varying_like(jnp.zeros((size, tokens.shape[1]), tokens.dtype), tokens, self.places)
        return buffer.at[self.places.reshape(-1)].add(jnp.repeat(tokens, chosen, axis=0), mode="drop")

    def collect(self, buffer: Array) -> Array:
        """Weighted sum of each token's results; nothing for a token that was dropped."""
        found = buffer.at[self.places].get(mode="fill", fill_value=0)
        return jnp.sum(self.weights[..., None] * found, 1)


def route(chances: Float[Array, "tokens experts"], chosen: int, room: int) -> Route:
    """Where each token goes, given its probabilities; places beyond all buffers mean dropped."""
    tokens, count = chances.shape
    weights, experts = jax.lax.top_k(chances, chosen)
    if chosen > 1:
        weights = weights / jnp.sum(weights, -1, keepdims=True)
    choices = jax.nn.one_hot(experts.T.reshape(-1), count, dtype=jnp.int32)  # first choices of all, then second ones
    before = jnp.sum((jnp.cumsum(choices, 0) - choices) * choices, -1).reshape(chosen, tokens).T
    fits = before < room
    return Route(jnp.where(fits, experts * room + before, count * room), jnp.where(fits, weights, 0))
