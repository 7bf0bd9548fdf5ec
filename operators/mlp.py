"""Plain surrogate: named numbers to named numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, final

import jax.numpy as jnp
from flax import nnx

from sciml.errors import ConfigError
from sciml.operators.dense import ACTIVATIONS, NARROWS, WIDENS, Dense
from sciml.operators.predictor import ScalarPredictor
from sciml.registry import option, register
from sciml.spec import Spec, Statistics
from sciml.types import Array, Float


@final
@register("model", "mlp")
@dataclass(frozen=True)
class MLP:
    """Plain surrogate: parameters to quantities of interest, by a gated perceptron with residual layers.

    The gate "product" makes the network a polynomial of degree 2^layers in its standardized inputs: with
    about 1000 samples it predicts energies and other polynomial-like quantities with a hundredth of the
    error of an ordinary perceptron, but it should not be asked outside of its training range. The other
    gates are the safer choice for quotients, times and thresholds. Positive inputs with a wide range
    (diffusivities) enter by their logarithms; outputs are standardized.
    """

    task: ClassVar[str] = "quantities"

    width: int = option(32, minimum=1, doc="units per layer")
    layers: int = option(3, minimum=1, doc="number of gated layers")
    gate: Literal["product", "gelu", "tanh", "silu", "sine"] = option("product", doc="function of the gate")
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
        size_in, size_out = (sum(v.size for v in group) for group in (spec.inputs, spec.outputs))
        network = GatedResidual(size_in, size_out, self, rngs=nnx.Rngs(seed))
        return ScalarPredictor(network, spec, statistics)


class GatedResidual(nnx.Module):
    """`(P,) -> (Q,)`: x <- x + C (gate(A x) * (B x)), between two linear maps; C starts at zero."""

    def __init__(self, size_in: int, size_out: int, config: MLP, *, rngs: nnx.Rngs) -> None:
        self.gate, self.dtype = config.gate, jnp.dtype(config.dtype)
        width, layers = config.width, range(config.layers)
        self.lift = Dense(size_in, width, dtype=self.dtype, rngs=rngs)
        self.gates = nnx.List(Dense(width, width, names=WIDENS, dtype=self.dtype, rngs=rngs) for _ in layers)
        self.values = nnx.List(Dense(width, width, names=WIDENS, dtype=self.dtype, rngs=rngs) for _ in layers)
        self.mixes = nnx.List(Dense(width, width, gain=0.0, names=NARROWS, dtype=self.dtype, rngs=rngs) for _ in layers)
        self.project = Dense(width, size_out, dtype=self.dtype, rngs=rngs)

    def __call__(self, x: Float[Array, " P"]) -> Float[Array, " Q"]:
        x = self.lift(x)
        for gate, value, mix in zip(self.gates, self.values, self.mixes, strict=True):
            x = x + mix(GATES[self.gate](gate(x)) * value(x))
        return self.project(x)


GATES = {**ACTIVATIONS, "product": lambda x: x}
