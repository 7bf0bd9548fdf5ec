"""Plain surrogate: named numbers to named numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import jax.numpy as jnp
from flax import nnx

from sciml.errors import ConfigError
from sciml.operators.dense import Dense, Perceptron
from sciml.operators.predictor import ScalarPredictor
from sciml.registry import option, register
from sciml.spec import Spec, Statistics
from sciml.types import Array, Float


@register("model", "mlp")
@dataclass(frozen=True)
class MLP:
    """Plain surrogate: parameters to quantities of interest, by a multilayer perceptron and a linear map.

    Positive inputs and outputs with a wide range are treated by their logarithms, so that the error is
    relative to each value and not to the largest one.
    """

    width: int = option(64, minimum=1, doc="units per layer")
    layers: int = option(3, minimum=1, doc="hidden layers")
    activation: Literal["gelu", "tanh", "silu", "sine"] = option("gelu", doc="nonlinearity")
    dtype: Literal["float32", "float64"] = option("float32", doc="of parameters and computation")

    def build(self, spec: Spec, statistics: Mapping[str, Statistics], *, seed: int) -> ScalarPredictor:
        """The model for `spec`, with random parameters. Raises ConfigError when a variable is a field."""
        fields = [v.describe() for v in (*spec.inputs, *spec.outputs) if v.spatial]
        if fields:
            raise ConfigError(
                "model 'mlp' maps numbers to numbers",
                expected="inputs and outputs without space axes",
                got=fields,
                fix="kind: fno   # or deeponet, for fields",
            )
        network = LinearPlusPerceptron(
            sum(v.size for v in spec.inputs),
            (self.width,) * self.layers,
            sum(v.size for v in spec.outputs),
            self.activation,
            dtype=jnp.dtype(self.dtype),
            rngs=nnx.Rngs(seed),
        )
        return ScalarPredictor(network, spec, statistics)


class LinearPlusPerceptron(nnx.Module):
    """`(size_in,) -> (size_out,)`: a linear map plus a multilayer perceptron that starts at zero."""

    def __init__(
        self,
        size_in: int,
        hidden: tuple[int, ...],
        size_out: int,
        activation: Literal["gelu", "tanh", "silu", "sine"],
        *,
        dtype: jnp.dtype,
        rngs: nnx.Rngs,
    ) -> None:
        self.dtype = dtype
        self.linear = Dense(size_in, size_out, dtype=dtype, rngs=rngs)
        self.nonlinear = Perceptron(
            (size_in, *hidden, size_out), activation, last_gain=0.0, dtype=dtype, rngs=rngs
        )

    def __call__(self, x: Float[Array, "*rows size_in"]) -> Float[Array, "*rows size_out"]:
        return self.linear(x) + self.nonlinear(x)
