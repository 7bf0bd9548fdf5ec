"""From the arguments of a call to a checked batch of arrays, or an error that says which value is wrong."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from sciml.errors import DataError
from sciml.registry import suggestion
from sciml.spec import Variable

OnRange: TypeAlias = Literal["warn", "raise", "ignore"]
SLACK = 1e-6  # of the range: single precision inputs at the very end of it are not outside


class RangeWarning(UserWarning):
    """An input lies outside of what the model saw in training; its answer is an extrapolation."""


def named(variables: Sequence[Variable], positional: tuple[Any, ...], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by name, in the order of the spec. Raises DataError for too many, unknown, double, missing ones."""
    names = [v.name for v in variables]
    call = f"surrogate({', '.join(f'{n}={n}' for n in names)})"
    if len(positional) > len(names):
        raise DataError("too many inputs", expected=f"{len(names)}: {names}", got=len(positional), fix=call)
    for name in keywords:
        if name not in names:
            raise DataError(f"unknown input {name!r}{suggestion(name, names)}", expected=names, got=name, fix=call)
    given = dict(zip(names, positional, strict=False))
    double = sorted(set(given) & set(keywords))
    if double:
        raise DataError(f"input {double[0]!r} is given twice", got="by position and by name", fix=call)
    given.update(keywords)
    missing = [n for n in names if n not in given]
    if missing:
        raise DataError(f"missing inputs {missing}", expected=names, got=sorted(given) or "nothing", fix=call)
    return {name: given[name] for name in names}


def batched(
    variables: Sequence[Variable], given: Mapping[str, Any], on_range: OnRange, positive: Collection[str] = ()
) -> tuple[dict[str, np.ndarray], bool]:
    """Float64 arrays `(B, *shape)`, and whether the caller gave a batch.

    An input without batch axis is repeated when another has one. `positive` are the inputs whose logarithm is
    taken. Raises DataError for a wrong type or shape, unequal batch sizes, or a value that is not finite, or not
    positive where it must be (with its index).
    """
    arrays = {v.name: _array(v, given[v.name]) for v in variables}
    for v in variables:
        _refuse_nonfinite(v, arrays[v.name])
        if v.name in positive:
            _refuse_nonpositive(v, arrays[v.name])
        _check_range(v, arrays[v.name], on_range)
    sizes = {v.name: arrays[v.name].shape[0] for v in variables if arrays[v.name].ndim > len(v.shape)}
    if len(set(sizes.values())) > 1:
        raise DataError("inputs have different batch sizes", expected="one size", got=sizes)
    size = next(iter(sizes.values()), 1)
    if size == 0:
        raise DataError("the batch is empty", expected="at least one sample", got=sizes)
    full = {v.name: np.broadcast_to(arrays[v.name], (size, *v.shape)).astype(np.float64) for v in variables}
    return full, bool(sizes)


def _array(variable: Variable, value: Any) -> np.ndarray:
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        raise DataError(
            f"input {variable.name!r} is not made of real numbers",
            expected=variable.describe(),
            got=f"{array.dtype}, {type(value).__name__}",
        )
    rank = len(variable.shape)
    if array.ndim not in (rank, rank + 1) or array.shape[array.ndim - rank :] != variable.shape:
        batch = ", ".join(("batch", *variable.axes))
        raise DataError(
            f"input {variable.name!r} has the wrong shape",
            expected=f"{variable.shape} for axes ({', '.join(variable.axes)}), or ({batch}) for many samples",
            got=array.shape,
            reason="another grid than in training, or axes in another order",
        )
    return array


def _refuse_nonfinite(variable: Variable, array: np.ndarray) -> None:
    finite = np.isfinite(array)
    if not finite.all():
        index = tuple(int(i) for i in np.argwhere(~finite)[0])
        raise DataError(
            f"input {variable.name!r} is not finite",
            expected="finite numbers",
            got=f"{array[index]} at index {index}, {int((~finite).sum())} such values",
            reason="the simulation that made it has diverged, or a value was never set",
        )


def _refuse_nonpositive(variable: Variable, array: np.ndarray) -> None:
    bad = array <= 0
    if bad.any():
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        raise DataError(
            f"input {variable.name!r} is not positive",
            expected="numbers above 0",
            got=f"{array[index]} at index {index}, {int(bad.sum())} such values",
            reason="the model takes the logarithm of this input, whose values spread widely in training",
        )


def _check_range(variable: Variable, array: np.ndarray, on_range: OnRange) -> None:
    if variable.low is None or variable.high is None or array.size == 0:
        return
    slack = SLACK * max(variable.high - variable.low, abs(variable.low), abs(variable.high))
    worst = max((array.min(), array.max()), key=lambda v: max(variable.low - v, v - variable.high))
    if variable.low - slack <= worst <= variable.high + slack:
        return
    _ON_RANGE[on_range](variable, float(worst))


def _warn(variable: Variable, worst: float) -> None:
    text = (
        f"input {variable.name!r} = {worst:.6g} {variable.unit} is outside of the training range "
        f"[{variable.low:.6g}, {variable.high:.6g}]; the answer is an extrapolation"
    )
    warnings.warn(RangeWarning(text), stacklevel=5)


def _raise(variable: Variable, worst: float) -> None:
    raise DataError(
        f"input {variable.name!r} is outside of the training range",
        expected=f"{variable.low:.6g} to {variable.high:.6g} {variable.unit}",
        got=worst,
        fix='train on a wider range, or load(path, on_range="warn") to extrapolate',
    )


def _ignore(variable: Variable, worst: float) -> None:
    del variable, worst  # the caller asked for silence


_ON_RANGE: dict[str, Callable[[Variable, float], None]] = {"warn": _warn, "raise": _raise, "ignore": _ignore}
ON_RANGE_CHOICES = tuple(_ON_RANGE)
