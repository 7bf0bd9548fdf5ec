"""Deep operator network: coefficients from the input times learned functions of the output's coordinates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, final

import jax.numpy as jnp
import numpy as np
from flax import nnx

from sciml import axes
from sciml.errors import ConfigError, DataError
from sciml.operators.dense import LinearPlusPerceptron
from sciml.operators.predictor import FieldPredictor, field_layout, leading_shape
from sciml.registry import option, register
from sciml.spec import Spec, Statistics
from sciml.types import Array, Float


@final
@register("model", "deeponet")
@dataclass(frozen=True)
class DeepONet:
    """Deep operator network: u(t, x) = sum over p of branch_p(input) * trunk_p(t, x) (Lu et al., 2021).

    The trunk is a product of a function of time and the scalars, and a function of space, so that basis
    functions may decay at a rate that depends on a coefficient while those of space are evaluated once for a
    whole batch. `trunk: joint` uses one network over (t, x) instead. Coordinates enter as Fourier features
    on periodic axes and as cosines and a linear ramp on bounded ones.
    """

    task: ClassVar[str] = "operator"

    basis: int = option(64, minimum=1, doc="number of basis functions per output field")
    width: int = option(128, minimum=1, doc="units per layer of branch and trunk")
    branch_layers: int = option(2, minimum=1, doc="hidden layers of the branch")
    trunk_layers: int = option(2, minimum=1, doc="hidden layers of the trunk networks")
    features: int = option(8, minimum=1, doc="waves per axis given to the trunk")
    trunk: Literal["separable", "joint"] = option("separable", doc="time times space, or one network")
    activation: Literal["gelu", "tanh", "silu", "sine"] = option("gelu", doc="nonlinearity")
    dtype: Literal["float32", "float64"] = option("float32", doc="of parameters and computation")

    def build(self, spec: Spec, statistics: Mapping[str, Statistics], *, seed: int) -> FieldPredictor:
        """The model for `spec`, with random parameters. Raises ConfigError when the spec does not fit."""
        field_layout(spec, "deeponet")
        return FieldPredictor(DeepONetNetwork(self, spec, rngs=nnx.Rngs(seed)), spec, statistics)


class DeepONetNetwork(nnx.Module):
    """(fields `(*space, C)`, scalars `(P,)`) -> `(*space, C_out)`, on the grid of its spec only.

    Every device reads the whole input; the points of the output may be split.
    """

    splits_space = "outputs"

    def __init__(self, config: DeepONet, spec: Spec, *, rngs: nnx.Rngs) -> None:
        _, channels_in, scalars, channels_out = field_layout(spec, "deeponet")
        self.config, self.dtype = config, jnp.dtype(config.dtype)
        self.shape = spec.outputs[0].shape[len(leading_shape(spec.outputs[0])) :]
        self.fields, self.steps = _fields_and_steps(spec, channels_out)
        joint = config.trunk == "joint"
        self.spec = spec
        outputs = self.fields * config.basis

        def network(size: int, layers: int) -> LinearPlusPerceptron:
            hidden = (config.width,) * layers
            return LinearPlusPerceptron(size, hidden, outputs, config.activation, dtype=self.dtype, rngs=rngs)

        time, points = time_features(spec, self.steps).shape[1], self.space_features().shape[1]
        self.branch = network(math.prod(self.shape) * channels_in + scalars, config.branch_layers)
        self.space = network(points + time * joint, config.trunk_layers)
        timed = not joint and time + scalars > 0
        self.time = network(time + scalars, config.trunk_layers) if timed else None
        self.bias = nnx.Param(jnp.zeros((channels_out,), self.dtype))

    def space_features(self) -> np.ndarray:
        """Trunk features of the grid points, `(points, F)`."""
        return space_features(self.spec.outputs[0].spatial, self.spec, self.shape, self.config.features)

    def __call__(
        self, fields: Float[Array, "*space channels"], scalars: Float[Array, " P"]
    ) -> Float[Array, "*space channels_out"]:
        if fields.shape[:-1] != self.shape:
            raise DataError(
                "a DeepONet reads its input at fixed sensors",
                expected=f"the training grid {self.shape}",
                got=fields.shape[:-1],
                fix="interpolate to the training grid, or use kind: fno, which runs on any grid",
            )
        coefficients = self.branch(jnp.concatenate([fields.reshape(-1), scalars]))
        basis = _TRUNKS[self.config.trunk](self, scalars)  # (steps, points, fields * basis)
        basis = basis.reshape(*basis.shape[:2], self.fields, self.config.basis)
        result = jnp.einsum("fp,snfp->nfs", coefficients.reshape(self.fields, -1), basis)
        return result.reshape(-1, *self.shape[1:], self.fields * self.steps) / self.config.basis**0.5 + self.bias[...]


def _separable(network: DeepONetNetwork, scalars: Array) -> Array:
    space = network.space(axes.portion(jnp.asarray(network.space_features(), network.dtype), axes.SPACE, 0))
    if network.time is None:  # steady, and no scalars
        return space[None, :, :]
    times = jnp.asarray(time_features(network.spec, network.steps), network.dtype)
    rows = jnp.concatenate([times, jnp.broadcast_to(scalars, (len(times), scalars.shape[0]))], axis=1)
    return (1 + network.time(rows))[:, None, :] * space[None, :, :]


def _joint(network: DeepONetNetwork, scalars: Array) -> Array:
    del scalars  # one trunk for the whole batch; scalars act through the branch
    times = jnp.asarray(time_features(network.spec, network.steps), network.dtype)
    points = axes.portion(jnp.asarray(network.space_features(), network.dtype), axes.SPACE, 0)
    pairs = jnp.concatenate([jnp.repeat(times, len(points), axis=0), jnp.tile(points, (len(times), 1))], axis=1)
    values = network.space(pairs)
    return values.reshape(len(times), len(points), -1)


_TRUNKS = {"separable": _separable, "joint": _joint}


def _fields_and_steps(spec: Spec, channels_out: int) -> tuple[int, int]:
    """Number of output functions of (time, space), and of their saved times (1 when steady)."""
    counts = {math.prod(n for n, a in zip(v.shape, v.axes, strict=True) if a == "time") for v in spec.outputs}
    if len(counts) > 1:
        raise ConfigError(
            "model 'deeponet' needs all outputs at the same times",
            expected="equal numbers of times",
            got=[v.describe() for v in spec.outputs],
        )
    steps = counts.pop()
    return channels_out // steps, steps


def time_features(spec: Spec, steps: int) -> np.ndarray:
    """Time features `(steps, F)`: t and its logarithm, in [-1, 1]; nothing when there is one step."""
    if steps == 1:
        return np.zeros((1, 0))
    times = np.asarray(spec.coordinates.get("time", np.arange(1, steps + 1)), float)
    elapsed = (times - times[0]) / (times[-1] - times[0])
    bent = np.log1p((steps - 1) * elapsed) / np.log(steps)
    return 2 * np.stack([elapsed, bent], axis=1) - 1


def space_features(space: tuple[str, ...], spec: Spec, shape: tuple[int, ...], waves: int) -> np.ndarray:
    """Trunk features of every grid point, `(points, F)`, float64.

    Periodic axis: cos and sin of the first `waves` waves. Bounded axis: a linear ramp and the first `waves`
    cosines of half waves.
    """
    columns = []
    mesh = np.meshgrid(*(np.arange(n) for n in shape), indexing="ij")
    for axis, size, index in zip(space, shape, mesh, strict=True):
        k = np.arange(1, waves + 1)
        if axis in spec.periodic:
            phase = 2 * np.pi * np.outer(index.ravel(), k) / size
            columns.append(np.concatenate([np.cos(phase), np.sin(phase)], axis=1))
        else:
            unit = index.ravel() / max(size - 1, 1)
            columns.append(np.concatenate([2 * unit[:, None] - 1, np.cos(np.pi * np.outer(unit, k))], axis=1))
    return np.concatenate(columns, axis=1)
