"""The one way tests compare values: structure, then dtype and shape, then numbers.

Import it as `from comparison import assert_close` (the tests folder is on pytest's path).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import jax
import numpy as np


def assert_close(actual: Any, expected: Any, *, rtol: float, atol: float = 0.0, dtype: bool = True) -> None:
    """Two PyTrees of arrays or numbers agree to `rtol * |expected| + atol`; NaN is never equal to anything.

    With `dtype=False` only numbers, not their types, are compared. Say where a tolerance is set which error
    dominates.
    """
    for where, a, e in _pairs(actual, expected, dtype=dtype):
        np.testing.assert_allclose(a, e, rtol=rtol, atol=atol, equal_nan=False, err_msg=where)


def assert_identical(actual: Any, expected: Any) -> None:
    """Two PyTrees, random keys included, agree in every bit, NaN included."""
    for where, a, e in _pairs(actual, expected, dtype=True):
        assert a.tobytes() == e.tobytes(), f"{where} differs by up to {np.max(np.abs(a - e))}"


def assert_none(found: Iterable[str]) -> None:
    """Nothing was found; otherwise the message shows all of it, one a line."""
    offenders = sorted(found)
    assert not offenders, "\n".join(["", *offenders])


def observed_order(spacings: Any, errors: Any) -> float:
    """Slope of log(error) over log(spacing), by least squares over at least four levels."""
    assert len(spacings) == len(errors) >= 4, "an order needs four levels or more"
    return float(np.polyfit(np.log(np.asarray(spacings)), np.log(np.asarray(errors)), 1)[0])


def _pairs(actual: Any, expected: Any, *, dtype: bool) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Leaves of two trees side by side, once their structure, shapes and (if asked) types agree."""
    actual_leaves, actual_structure = jax.tree_util.tree_flatten_with_path(actual)
    expected_leaves, expected_structure = jax.tree_util.tree_flatten_with_path(expected)
    assert actual_structure == expected_structure, f"{actual_structure} is not {expected_structure}"
    for (path, left), (_, right) in zip(actual_leaves, expected_leaves, strict=True):
        where = jax.tree_util.keystr(path) or "value"
        a, e = _array(left), _array(right)
        assert not dtype or a.dtype == e.dtype, f"{where}: dtype {a.dtype} is not {e.dtype}"
        assert a.shape == e.shape, f"{where}: shape {a.shape} is not {e.shape}"
        yield where, a, e


def _array(leaf: Any) -> np.ndarray:
    is_key = isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(leaf) if is_key else leaf)
