"""Small networks and objectives that tests of training share. One sample in, one sample out, float64."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from sciml.training.objective import Batch, Objective, Residuals


class Statistic(nnx.Variable):
    """Not trained."""


class TinyMLP(nnx.Module):
    """Scalars a, b -> scalar y."""

    def __init__(self, rngs: nnx.Rngs, width: int = 8):
        self.first = nnx.Linear(2, width, rngs=rngs, param_dtype=jnp.float64)
        self.second = nnx.Linear(width, 1, rngs=rngs, param_dtype=jnp.float64)
        self.scale = Statistic(jnp.asarray(2.0))

    def __call__(self, sample: Batch) -> Batch:
        x = jnp.stack([sample["a"], sample["b"]])
        return {"y": self.scale[...] * self.second(jnp.tanh(self.first(x)))[0]}


class TinyFourier(nnx.Module):
    """Field u0 (n,) -> field u (n,): spectral weights (complex) and a convolution."""

    def __init__(self, rngs: nnx.Rngs, width: int = 4, modes: int = 5):
        k1, k2 = rngs.params(), rngs.params()
        shape = (modes, width, width)
        weights = jax.random.normal(k1, shape) + 1j * jax.random.normal(k2, shape)
        self.lift = nnx.Linear(1, width, rngs=rngs, param_dtype=jnp.float64)
        self.spectral = nnx.Param(weights.astype(jnp.complex128) / width)
        self.conv = nnx.Conv(width, width, (3,), padding="CIRCULAR", rngs=rngs, param_dtype=jnp.float64)
        self.project = nnx.Linear(width, 1, rngs=rngs, param_dtype=jnp.float64)
        self.modes = modes

    def __call__(self, sample: Batch) -> Batch:
        h = self.lift(sample["u0"][:, None])
        spectrum = jnp.fft.rfft(h, axis=0)[: self.modes]
        mixed = jnp.einsum("kc,kcd->kd", spectrum, self.spectral[...])
        h = jax.nn.gelu(jnp.fft.irfft(mixed, n=len(h), axis=0) + self.conv(h))
        return {"u": self.project(h)[:, 0]}


def scalar_batch(rows: int = 16, seed: int = 0) -> Batch:
    """Inputs a, b and output y = sin(a) b."""
    a, b = np.random.default_rng(seed).normal(size=(2, rows))
    return {"a": a, "b": b, "y": np.sin(a) * b}


def field_batch(rows: int = 16, n: int = 32, seed: int = 0) -> Batch:
    """A random field and its smoothed self."""
    u0 = np.random.default_rng(seed).normal(size=(rows, n))
    return {"u0": u0, "u": (np.roll(u0, 1, 1) + u0 + np.roll(u0, -1, 1)) / 3}


@dataclass(frozen=True)
class Curve(Objective):
    """y(a, b) fitted at random points, drawn anew in each step, and pinned at a few fixed ones."""

    points: int = 16

    def prepare(self, batch: Batch, key: jax.Array) -> Batch:
        """Points a, b beside the given pins."""
        draw = jax.random.normal(key, (2, self.points))
        return {**batch, "a": draw[0], "b": draw[1]}

    def residuals(self, model: nnx.Module, batch: Batch) -> Residuals:
        """Different numbers of rows: points and pins."""
        y = jax.vmap(lambda a, b: model({"a": a, "b": b})["y"])
        inside = y(batch["a"], batch["b"]) - jnp.sin(batch["a"]) * batch["b"]
        pins = y(batch["pin"], jnp.zeros_like(batch["pin"]))
        return {"inside": inside, "pins": 3.0 * pins}


def pins(rows: int = 8) -> Batch:
    """The fixed points of `Curve`."""
    return {"pin": np.linspace(-1.0, 1.0, rows)}


class Counted:
    """Batches of `make(seed=index)`, whose position is the index."""

    def __init__(self, make, **options):
        self.make, self.options, self.index = make, options, 0

    def __next__(self) -> Batch:
        batch = self.make(seed=self.index, **self.options)
        self.index += 1
        return batch

    def get_state(self) -> dict:
        """The index."""
        return {"index": self.index}

    def set_state(self, state: dict) -> None:
        """Continue from the index."""
        self.index = state["index"]
