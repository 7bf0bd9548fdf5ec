"""Fourier neural operator: fields on a grid to fields on the same grid, at any resolution."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, final

import jax.numpy as jnp
import numpy as np
from flax import nnx

from sciml import axes
from sciml.errors import ConfigError
from sciml.operators.dense import ACTIVATIONS, NARROWS, WIDENS, Dense, Perceptron
from sciml.operators.predictor import FieldPredictor, field_layout
from sciml.operators.spectral import SpectralConv, axis_series
from sciml.operators.transforms import AxisSeries
from sciml.registry import option, register
from sciml.spec import Spec, Statistics
from sciml.types import Array, Float


@final
@register("model", "fno")
@dataclass(frozen=True)
class FNO:
    """Fourier neural operator: global convolutions on low frequencies and pointwise networks in turn.

    Each layer is `x <- x + spectral(x)`, `x <- x + mlp(x)`, with the last matrix of every MLP starting at
    zero: the network begins as a linear operator and learns what is nonlinear. On linear and weakly
    nonlinear problems this reaches a tenth of the error of `act(spectral(x) + W x)` (Li et al.,
    arXiv:2010.08895) in the same time. Scalars (coefficients) enter as constant channels and as gains per
    frequency and channel. Periodic axes carry Fourier series; bounded axes cosine or sine series, or Fourier
    series on an extended box.
    """

    task: ClassVar[str] = "operator"

    width: int = option(32, minimum=1, doc="channels inside")
    modes: tuple[int, ...] = option((12,), minimum=1, doc="highest wave number kept, per axis or one for all")
    layers: int = option(4, minimum=1, doc="number of spectral layers")
    hidden: int | None = option(None, minimum=1, doc="width inside the pointwise networks; default: width")
    projection: int = option(64, minimum=1, doc="width of the last pointwise network")
    activation: Literal["gelu", "tanh", "silu", "sine"] = option("gelu", doc="pointwise nonlinearity")
    conditioning: Literal["both", "gain", "channels"] = option("both", doc="how scalars enter")
    bounded: Literal["cosine", "sine", "pad"] = option("cosine", doc="series on axes that are not periodic")
    padding: float = option(0.25, minimum=0.0, doc="extension of a padded axis, as a fraction of its length")
    mode: Literal["dft", "fft"] = option("dft", doc="matrix products (exportable, fast) or FFT")
    dtype: Literal["float32", "float64"] = option("float32", doc="of parameters and computation")

    def build(self, spec: Spec, statistics: Mapping[str, Statistics], *, seed: int) -> FieldPredictor:
        """The model for `spec`, with random parameters. Raises ConfigError when the spec does not fit."""
        space, channels_in, scalars, channels_out = field_layout(spec, "fno")
        if len(self.modes) not in (1, len(space)):
            raise ConfigError(
                "modes do not fit the space axes",
                expected=f"1 or {len(space)} numbers for axes {space}",
                got=self.modes,
                fix=f"modes: {list(self.modes[:1]) * len(space)}",
            )
        periodic = tuple(axis in spec.periodic for axis in space)
        network = FNONetwork(self, periodic, channels_in, scalars, channels_out, rngs=nnx.Rngs(seed))
        return FieldPredictor(network, spec, statistics)


class FNONetwork(nnx.Module):
    """(fields `(*space, C)`, scalars `(P,)`) -> `(*space, C_out)`, all of order one."""

    splits_space = "all"

    def __init__(
        self,
        config: FNO,
        periodic: tuple[bool, ...],
        channels_in: int,
        scalars: int,
        channels_out: int,
        *,
        rngs: nnx.Rngs,
    ) -> None:
        self.config, self.periodic, self.dtype = config, periodic, jnp.dtype(config.dtype)
        bounded = "fourier" if config.bounded == "pad" else config.bounded
        modes = config.modes * (len(periodic) if len(config.modes) == 1 else 1)
        series = axis_series(["fourier" if p else bounded for p in periodic], modes)
        conditioned = scalars if config.conditioning != "gain" else 0
        lifted = channels_in + conditioned + periodic.count(False)
        self.lift = Dense(lifted, config.width, dtype=self.dtype, rngs=rngs)
        gained = scalars if config.conditioning != "channels" else 0
        self.blocks = nnx.List(FNOBlock(config, series, gained, rngs=rngs) for _ in range(config.layers))
        sizes = (config.width, config.projection, channels_out)
        self.linear = Dense(config.width, channels_out, dtype=self.dtype, rngs=rngs)
        self.project = Perceptron(sizes, config.activation, last_gain=0.0, dtype=self.dtype, rngs=rngs)

    def __call__(
        self, fields: Float[Array, "*space channels"], scalars: Float[Array, " P"]
    ) -> Float[Array, "*space channels_out"]:
        shape = fields.shape[:-1]
        coordinates = bounded_coordinates(self.periodic, axes.whole_shape(shape))
        extra = [axes.portion(jnp.asarray(c, self.dtype), axes.SPACE, 0) for c in coordinates]
        if self.config.conditioning != "gain":
            extra.append(jnp.broadcast_to(scalars, (*shape, scalars.shape[0])))
        x = self.lift(jnp.concatenate([fields, *extra], axis=-1))
        x = self._extend(x)
        for block in self.blocks:
            x = axes.recomputed(block.__call__)(x, scalars)
        x = x[tuple(slice(n) for n in shape)]
        return self.linear(x) + self.project(x)

    def _extend(self, x: Array) -> Array:
        """Append zeros along bounded axes when these carry Fourier series."""
        if self.config.bounded != "pad":
            return x
        if axes.parts(axes.SPACE) > 1 and not self.periodic[0]:
            raise ConfigError(
                "an axis that is padded cannot be split over devices",
                expected="a periodic first space axis, or bounded: cosine or sine",
                got="bounded: pad with a split first space axis",
                fix="plan: {domain: 1}, or bounded: cosine",
            )
        sizes = [
            0 if wraps else math.ceil(self.config.padding * n)
            for wraps, n in zip(self.periodic, x.shape[:-1], strict=True)
        ]
        return jnp.pad(x, [*((0, size) for size in sizes), (0, 0)])


class FNOBlock(nnx.Module):
    """Spectral convolution, then a pointwise network, each added to its input."""

    def __init__(self, config: FNO, series: tuple[AxisSeries, ...], scalars: int, *, rngs: nnx.Rngs) -> None:
        width, hidden = config.width, config.hidden or config.width
        dtype = jnp.dtype(config.dtype)
        self.activation = config.activation
        self.conv = SpectralConv(width, width, series, mode=config.mode, gain=0.3, dtype=dtype, rngs=rngs)
        self.inner = Dense(width, hidden, gain=2.0**0.5, names=WIDENS, dtype=dtype, rngs=rngs)
        self.outer = Dense(hidden, width, gain=0.0, names=NARROWS, dtype=dtype, rngs=rngs)
        self.gain_shape = (*(s.size for s in series), width)
        sizes = (scalars, 64, math.prod(self.gain_shape))
        self.gain = Perceptron(sizes, "gelu", last_gain=0.1, dtype=dtype, rngs=rngs) if scalars else None

    def __call__(self, x: Float[Array, "*space width"], scalars: Float[Array, " P"]) -> Array:
        gain = None if self.gain is None else 1 + self.gain(scalars).reshape(self.gain_shape)
        x = x + self.conv(x, gain=gain)
        return x + self.outer(ACTIVATIONS[self.activation](self.inner(x)))


def bounded_coordinates(periodic: tuple[bool, ...], shape: tuple[int, ...]) -> list[np.ndarray]:
    """One channel `(*space, 1)` in [-1, 1] per bounded axis; periodic axes get none (no place is special)."""
    axes = [np.linspace(-1.0, 1.0, n) for n in shape]
    mesh = np.meshgrid(*axes, indexing="ij")
    return [m[..., None] for m, wraps in zip(mesh, periodic, strict=True) if not wraps]
