"""Dense layers shared by the operator networks: GELU, pointwise maps and small multilayer perceptrons."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import jax
import jax.numpy as jnp
from flax import nnx

from sciml import axes
from sciml.types import Array, Float

Activation: TypeAlias = Literal["gelu", "tanh", "silu", "sine"]
AxisNames: TypeAlias = tuple[str | None, str | None]
WIDENS: AxisNames = (None, axes.HIDDEN)
NARROWS: AxisNames = (axes.HIDDEN, None)


@jax.custom_jvp
def erf(x: Array) -> Array:
    """The error function, with a derivative that can be taken inside `shard_map`: that of jax 0.12 cannot."""
    return jax.lax.erf(x)


@erf.defjvp
def _erf_derivative(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    """erf'(x) = 2 / sqrt(pi) exp(-x^2)."""
    (x,), (direction,) = primals, tangents
    return erf(x), 2 / math.pi**0.5 * jnp.exp(-x * x) * direction


def gelu(x: Array) -> Array:
    """0.5 x (1 + erf(x / sqrt 2)); through erf, which is twice as fast on CPU as the erfc of `jax.nn.gelu`."""
    return 0.5 * x * (1 + erf(x * 0.5**0.5))


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "gelu": gelu,
    "tanh": jnp.tanh,
    "silu": jax.nn.silu,
    "sine": jnp.sin,
}


class Dense(nnx.Module):
    """Affine map of the last axis, `(..., in) -> (..., out)`; `gain` scales the initial weights.

    `names` are the logical axes of the weight: WIDENS and NARROWS make a pair whose middle may be split.
    """

    def __init__(
        self,
        size_in: int,
        size_out: int,
        *,
        gain: float = 1.0,
        names: AxisNames = (None, None),
        dtype: jnp.dtype | type,
        rngs: nnx.Rngs,
    ) -> None:
        scale = gain * (1.0 / max(size_in, 1)) ** 0.5
        self.names = names
        self.weight = nnx.Param(scale * jax.random.normal(rngs.params(), (size_in, size_out), dtype), axes=names)
        self.bias = nnx.Param(jnp.zeros((size_out,), dtype), axes=names[1:])

    def __call__(self, x: Float[Array, "*rows size_in"]) -> Float[Array, "*rows size_out"]:
        weight = self.weight[...]
        return axes.total(x.astype(weight.dtype) @ weight, self.names[0]) + self.bias[...]


class Perceptron(nnx.Module):
    """Dense layers of the given sizes with an activation between them, none after the last."""

    def __init__(
        self,
        sizes: Sequence[int],
        activation: Activation = "gelu",
        *,
        last_gain: float = 1.0,
        dtype: jnp.dtype | type,
        rngs: nnx.Rngs,
    ) -> None:
        self.activation = activation
        gains = [2.0**0.5] * (len(sizes) - 2) + [last_gain]
        pairs = [(None, None)] * (len(gains) % 2) + [WIDENS, NARROWS] * (len(gains) // 2)
        self.layers = nnx.List(
            Dense(a, b, gain=gain, names=names, dtype=dtype, rngs=rngs)
            for a, b, gain, names in zip(sizes[:-1], sizes[1:], gains, pairs, strict=True)
        )

    def __call__(self, x: Float[Array, "*rows size_in"]) -> Float[Array, "*rows size_out"]:
        act = ACTIVATIONS[self.activation]
        for layer in self.layers[:-1]:
            x = act(layer(x))
        return self.layers[-1](x)


class LinearPlusPerceptron(nnx.Module):
    """`(size_in,) -> (size_out,)`: a linear map plus a multilayer perceptron that starts at zero."""

    def __init__(
        self,
        size_in: int,
        hidden: tuple[int, ...],
        size_out: int,
        activation: Activation,
        *,
        dtype: jnp.dtype | type,
        rngs: nnx.Rngs,
    ) -> None:
        self.dtype = dtype
        self.linear = Dense(size_in, size_out, dtype=dtype, rngs=rngs)
        self.nonlinear = Perceptron((size_in, *hidden, size_out), activation, last_gain=0.0, dtype=dtype, rngs=rngs)

    def __call__(self, x: Float[Array, "*rows size_in"]) -> Float[Array, "*rows size_out"]:
        return self.linear(x) + self.nonlinear(x)
