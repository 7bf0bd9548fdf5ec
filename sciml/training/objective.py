"""What a model is trained for: named rows of residuals, whose mean squares are added up.

Residuals rather than a scalar loss, because the least-squares optimizers (Gauss-Newton, Levenberg-Marquardt)
need them, and because a sharded program can sum their squares in any order.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import jax
import jax.numpy as jnp
from flax import nnx

from sciml import axes
from sciml.errors import ConfigError
from sciml.types import Array, Key

Batch: TypeAlias = dict[str, Any]
"""Name to array (JAX or NumPy), rows along the first axis."""
Residuals: TypeAlias = dict[str, Array]
PENALTY = "penalty/"
"""Start of the names of residuals that come from the model itself."""


class Objective(abc.ABC):
    """A least-squares goal: loss = sum over the named terms of the mean of their squared residuals."""

    @property
    def splits_space(self) -> bool:
        """Whether its residuals can be taken on a part of the grid (a split axis `space`)."""
        return False

    def prepare(self, batch: Batch, key: Key) -> Batch:
        """Complete a batch before it is spread over devices, for instance by drawing collocation points.

        Every array of the result has rows (samples or points) along its first axis; different arrays may
        have different numbers of rows. `key` is the key of this training step.
        """
        del key
        return batch

    @abc.abstractmethod
    def residuals(self, model: nnx.Module, batch: Batch) -> Residuals:
        """Named residuals, rows along the first axis, already multiplied by the square root of their weight.

        Row i of a term may depend only on row i of those arrays of the batch that have as many rows as the
        term: this lets rows be spread over devices and Jacobians be taken row by row. Nothing random here.
        """


@final
@dataclass(frozen=True)
class Data(Objective):
    """Misfit between a model's outputs and given values.

    With `relative`, a row is (prediction - truth) / ||truth|| * sqrt(size), so that the mean square is the
    mean squared relative L2 error of a sample; where the truth is zero it is a plain difference. Otherwise rows
    are plain differences, each output divided by its entry of `scales` if there are any. `inputs` are the entries
    of the batch that the model takes (None: all but the outputs). Raises ConfigError where an entry is missing or
    its shape does not fit.
    """

    outputs: tuple[str, ...]
    relative: bool = True
    inputs: tuple[str, ...] | None = None
    scales: tuple[float, ...] | None = None

    @property
    def splits_space(self) -> bool:
        """Every point on its own; norms are summed over the parts."""
        return True

    def residuals(self, model: nnx.Module, batch: Batch) -> Residuals:
        """One term per output, shape (rows, *shape of the output), and the model's own penalties."""
        predictions = predict_batch(model, _inputs(self, batch))
        scales = self.scales or (1.0,) * len(self.outputs)
        rows = {name: values for name, values in predictions.items() if name.startswith(PENALTY)}
        for name, scale in zip(self.outputs, scales, strict=True):
            prediction, truth = predictions[name], batch[name]
            _refuse_shape(name, prediction, truth)
            difference = prediction - truth.astype(prediction.dtype)
            rows[name] = _relative(difference, truth) if self.relative else difference / scale
        return rows


@final
@dataclass(frozen=True)
class Weighted(Objective):
    """Weighted sum of objectives, `{"data": (Data(("u",)), 1.0), "residual": (..., 0.1)}`.

    Terms are named `<name>` where the inner objective has a single term, `<name>/<term>` otherwise.
    Raises ConfigError for an empty sum or a weight that is not positive.
    """

    terms: Mapping[str, tuple[Objective, float]]

    def __post_init__(self) -> None:
        bad = {name: weight for name, (_, weight) in self.terms.items() if not weight > 0.0}
        if bad or not self.terms:
            raise ConfigError(
                "an objective needs terms with positive weights",
                expected="at least one term, every weight > 0",
                got=bad or "no terms",
                fix="leave out the terms that should not count",
            )

    @property
    def splits_space(self) -> bool:
        """If all of them do."""
        return all(objective.splits_space for objective, _ in self.terms.values())

    def prepare(self, batch: Batch, key: Key) -> Batch:
        """Every inner objective completes the batch in turn, each with its own key."""
        for number, (objective, _) in enumerate(self.terms.values()):
            batch = objective.prepare(batch, jax.random.fold_in(key, number))
        return batch

    def residuals(self, model: nnx.Module, batch: Batch) -> Residuals:
        """All inner residuals, scaled by the square root of their weight."""
        rows = {}
        for name, (objective, weight) in self.terms.items():
            inner = objective.residuals(model, batch)
            for term, values in inner.items():
                rows[name if len(inner) == 1 else f"{name}/{term}"] = weight**0.5 * values
        return rows


def _inputs(data: Data, batch: Batch) -> Batch:
    names = data.inputs if data.inputs is not None else [n for n in batch if n not in data.outputs]
    missing = [n for n in (*names, *data.outputs) if n not in batch]
    if missing:
        raise ConfigError("a batch lacks entries that the data objective needs", expected=missing, got=sorted(batch))
    return {name: batch[name] for name in names}


def predict_batch(model: Callable[[Batch], Batch], inputs: Batch) -> Batch:
    """Outputs of a model for rows of inputs: `vmap` over its one sample, unless it has its own `predict_batch`.

    Such a model may work on several rows in turn (a pipeline), and may add entries named `penalty/...`:
    further residuals that it asks to be trained with, rows along the first axis.
    """
    own = getattr(model, "predict_batch", None)
    return own(inputs) if own else jax.vmap(lambda sample: model(sample))(inputs)


def _refuse_shape(name: str, prediction: Array, truth: Array) -> None:
    if prediction.shape != truth.shape:
        raise ConfigError(
            f"the model's {name!r} does not have the shape of the data",
            expected=f"{truth.shape} (first axis: rows of the batch)",
            got=prediction.shape,
            reason="the model was built for another grid, other saved times or another channel order",
        )


def _relative(difference: Array, truth: Array) -> Array:
    inner = tuple(range(1, truth.ndim))
    size = truth.size // truth.shape[0] * axes.parts(axes.SPACE)
    squares = jnp.sum(truth.astype(difference.dtype) ** 2, axis=inner, keepdims=True)
    norm = jnp.sqrt(axes.total(squares, axes.SPACE))
    return difference * (size**0.5 / jnp.where(norm > 0, norm, size**0.5))
