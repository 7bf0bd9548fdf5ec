"""From a dict of physical values to a network of order-one numbers and back.

Normalization is part of the model: its constants are plain float64 numbers of the model's structure, never trained
and never rounded to the precision of the parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from flax import nnx

from sciml.errors import ConfigError
from sciml.spec import Numbers, Spec, Statistics, Variable
from sciml.types import Array

WIDE_RANGE = 3.0  # a positive variable whose high/low exceeds this is treated by its logarithm


class Normalizer(nnx.Module):
    """`(value - shift) / scale`, or the same of the logarithm for positive values with a wide range.

    `shift` and `scale` are numbers, or one per index of the value's first axis. Physical values are float64 until
    the shift is taken off: single precision knows 300 K +- 0.01 K to one part in a thousand of the deviation.
    """

    def __init__(self, shift: Numbers, scale: Numbers, *, logarithm: bool, dtype: jnp.dtype) -> None:
        self.logarithm, self.dtype = logarithm, dtype
        self.shift, self.scale = shift, scale

    def encode(self, value: Array) -> Array:
        """Physical value to order one, in the model's dtype."""
        value = jnp.asarray(value, jnp.float64)
        value = jnp.log(value) if self.logarithm else value
        return ((value - _leading(self.shift, value)) / _leading(self.scale, value)).astype(self.dtype)

    def decode(self, value: Array) -> Array:
        """Inverse of `encode`, in the dtype of its argument."""
        value = value * _leading(self.scale, value) + _leading(self.shift, value)
        return jnp.exp(value) if self.logarithm else value


def _leading(numbers: Numbers, value: Array) -> np.ndarray:
    """Constants per index of the first axis, in the value's dtype, made to broadcast against the rest."""
    constant = np.asarray(numbers, value.dtype)
    return constant.reshape(constant.shape + (1,) * (value.ndim - constant.ndim)) if constant.ndim else constant


def standardizer(statistics: Statistics, dtype: jnp.dtype) -> Normalizer:
    """Mean 0 and standard deviation 1; a constant variable is only shifted."""
    mean, std = np.asarray(statistics.mean), np.asarray(statistics.std)
    safe = np.where(std > 1e-12 * np.maximum(np.abs(mean), 1e-300), std, 1.0)
    scale = tuple(map(float, safe)) if safe.ndim else float(safe)
    return Normalizer(statistics.mean, scale, logarithm=False, dtype=dtype)


def input_normalizer(statistics: Statistics, dtype: jnp.dtype) -> Normalizer:
    """Positive with a wide range: logarithm mapped to [-1, 1] over the range seen; otherwise standardized."""
    low, high = np.min(statistics.low), np.max(statistics.high)
    if not (low > 0 and high > WIDE_RANGE * low):
        return standardizer(statistics, dtype)
    shift, scale = 0.5 * np.log(low * high), 0.5 * np.log(high / low)
    return Normalizer(float(shift), float(scale), logarithm=True, dtype=dtype)


def positive_inputs(model: nnx.Module) -> tuple[str, ...]:
    """Names of the inputs that enter `model` by their logarithm; none for a model without encoders."""
    return tuple(name for name, encoder in getattr(model, "encoders", {}).items() if encoder.logarithm)


class FieldPredictor(nnx.Module):
    """A network `(fields (*space, C), scalars (P,)) -> (*space, C_out)` as a map of dicts in physical units.

    C counts the input fields with their time and channel axes; C_out the output fields with theirs. One
    sample at a time; `jax.vmap` makes a batch. Runs on grids other than the training grid if the network does.
    """

    def __init__(self, network: Any, spec: Spec, statistics: Mapping[str, Statistics]) -> None:
        self.network, self.spec, self.dtype = network, spec, network.dtype
        self.statistics = needed_statistics(spec, statistics)
        self.encoders = nnx.Dict(
            {v.name: input_normalizer(_statistics(statistics, v), self.dtype) for v in spec.inputs}
        )
        self.decoders = nnx.Dict({v.name: standardizer(_statistics(statistics, v), self.dtype) for v in spec.outputs})

    def __call__(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        return self.decode(self.network(*self.encode(inputs)))

    def encode(self, inputs: Mapping[str, Array]) -> tuple[Array, Array]:
        """Physical values to what the network takes: fields `(*space, C)` and scalars `(P,)`."""
        fields, scalars = split_inputs(self.spec)
        channels = [self._channels(v, inputs[v.name]) for v in fields]
        numbers = [self.encoders[v.name].encode(inputs[v.name]).reshape(-1) for v in scalars]
        packed = jnp.concatenate(numbers) if numbers else jnp.zeros((0,), self.dtype)
        return jnp.concatenate(channels, axis=-1), packed

    def decode(self, result: Array) -> dict[str, Array]:
        """What the network gives, `(*space, C_out)`, to physical values."""
        return self._unpack(jnp.moveaxis(result.astype(self.dtype), -1, 0))

    @property
    def space_axes(self) -> dict[str, int] | None:
        """Position of the first space axis of each variable that may be split there; None if the network allows none.

        A network says by `splits_space` whether it works on a slab of the grid ("all"), or reads whole inputs and
        gives a slab of the output ("outputs").
        """
        allowed = getattr(self.network, "splits_space", None)
        if allowed is None:
            return None
        inputs = split_inputs(self.spec)[0] if allowed == "all" else ()
        return {v.name: len(leading_shape(v)) for v in (*inputs, *self.spec.outputs)}

    def _channels(self, variable: Variable, value: Array) -> Array:
        """`(time or channel..., *space)` to `(*space, C)`."""
        encoded = self.encoders[variable.name].encode(value)
        space = encoded.shape[encoded.ndim - len(variable.spatial) :]
        return jnp.moveaxis(encoded.reshape(-1, *space), 0, -1)

    def _unpack(self, result: Array) -> dict[str, Array]:
        outputs, first = {}, 0
        for variable in self.spec.outputs:
            lead = leading_shape(variable)
            count = int(np.prod(lead))
            block = result[first : first + count].reshape(*lead, *result.shape[1:])
            outputs[variable.name] = self.decoders[variable.name].decode(block)
            first += count
        return outputs


class ScalarPredictor(nnx.Module):
    """A network `(P,) -> (Q,)` as a map of named numbers in physical units."""

    def __init__(self, network: Any, spec: Spec, statistics: Mapping[str, Statistics]) -> None:
        self.network, self.spec, self.dtype = network, spec, network.dtype
        self.statistics = needed_statistics(spec, statistics)
        self.encoders = nnx.Dict(
            {v.name: input_normalizer(_statistics(statistics, v), self.dtype) for v in spec.inputs}
        )
        self.decoders = nnx.Dict({v.name: standardizer(_statistics(statistics, v), self.dtype) for v in spec.outputs})

    def __call__(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        encoded = [self.encoders[v.name].encode(inputs[v.name]).reshape(-1) for v in self.spec.inputs]
        result = self.network(jnp.concatenate(encoded)).astype(self.dtype)
        outputs, first = {}, 0
        for v in self.spec.outputs:
            block = result[first : first + v.size].reshape(v.shape)
            outputs[v.name] = self.decoders[v.name].decode(block)
            first += v.size
        return outputs


def split_inputs(spec: Spec) -> tuple[tuple[Variable, ...], tuple[Variable, ...]]:
    """Inputs with space axes, and the others."""
    fields = tuple(v for v in spec.inputs if v.spatial)
    return fields, tuple(v for v in spec.inputs if not v.spatial)


def leading_shape(variable: Variable) -> tuple[int, ...]:
    """Sizes of the time and channel axes, which come before the space axes."""
    return variable.shape[: len(variable.shape) - len(variable.spatial)]


def field_layout(spec: Spec, model: str) -> tuple[tuple[str, ...], int, int, int]:
    """(space axes, input channels, scalars, output channels) of an operator on one grid.

    Raises ConfigError when the spec is not that of an operator: an output without space axes, no input field,
    or fields on different grids.
    """
    fields, scalars = split_inputs(spec)
    flat = [v.describe() for v in spec.outputs if not v.spatial]
    if flat or not fields:
        raise ConfigError(
            f"model {model!r} maps fields to fields",
            expected="at least one input field, and only fields as outputs",
            got=f"input fields {[v.name for v in fields]}, scalar outputs {flat}",
            fix="kind: mlp   # for scalars to scalars",
        )
    grids = {(v.spatial, v.shape[len(leading_shape(v)) :]) for v in (*fields, *spec.outputs)}
    if len(grids) > 1:
        raise ConfigError(
            f"model {model!r} needs all fields on one grid",
            expected="equal space axes and sizes, after time and channel",
            got=[v.describe() for v in (*fields, *spec.outputs)],
        )
    channels_in = sum(int(np.prod(leading_shape(v))) for v in fields)
    channels_out = sum(int(np.prod(leading_shape(v))) for v in spec.outputs)
    return spec.outputs[0].spatial, channels_in, sum(v.size for v in scalars), channels_out


def needed_statistics(spec: Spec, statistics: Mapping[str, Statistics]) -> tuple[tuple[str, Statistics], ...]:
    """Those of the spec's variables, as (name, statistics) pairs: kept by a model so that it can be rebuilt."""
    return tuple((v.name, _statistics(statistics, v)) for v in (*spec.inputs, *spec.outputs))


def _statistics(statistics: Mapping[str, Statistics], variable: Variable) -> Statistics:
    if variable.name not in statistics:
        raise ConfigError(
            f"no statistics for {variable.name!r}",
            expected="Statistics for every input and output of the spec",
            got=sorted(statistics),
            fix="statistics(dataset, [v.name for v in (*spec.inputs, *spec.outputs)])",
        )
    return statistics[variable.name]
