"""The one way tests compare values: structure, then dtype and shape, then numbers.

Import it as `from comparison import assert_close` (the tests folder is on pytest's path).
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np


def assert_close(actual: Any, expected: Any, *, rtol: float, atol: float = 0.0, dtype: bool = True) -> None:
    """Two PyTrees of arrays or numbers agree to `rtol * |expected| + atol`; NaN is never equal to anything.

    With `dtype=False` only numbers, not their types, are compared. Say where a tolerance is set which error dominates.
    """
    actual_leaves, actual_structure = jax.tree_util.tree_flatten_with_path(actual)
    expected_leaves, expected_structure = jax.tree_util.tree_flatten_with_path(expected)
    assert actual_structure == expected_structure, f"{actual_structure} is not {expected_structure}"
    for (path, a), (_, e) in zip(actual_leaves, expected_leaves, strict=True):
        where = jax.tree_util.keystr(path) or "value"
        a, e = np.asarray(a), np.asarray(e)
        assert not dtype or a.dtype == e.dtype, f"{where}: dtype {a.dtype} is not {e.dtype}"
        assert a.shape == e.shape, f"{where}: shape {a.shape} is not {e.shape}"
        np.testing.assert_allclose(a, e, rtol=rtol, atol=atol, equal_nan=False, err_msg=where)


def assert_identical(actual: Any, expected: Any) -> None:
    """Two PyTrees agree in every bit, NaN included."""
    actual_leaves, actual_structure = jax.tree_util.tree_flatten_with_path(actual)
    expected_leaves, expected_structure = jax.tree_util.tree_flatten_with_path(expected)
    assert actual_structure == expected_structure, f"{actual_structure} is not {expected_structure}"
    for (path, a), (_, e) in zip(actual_leaves, expected_leaves, strict=True):
        where = jax.tree_util.keystr(path) or "value"
        a, e = np.asarray(a), np.asarray(e)
        assert (a.dtype, a.shape) == (e.dtype, e.shape), f"{where}: {a.dtype}{a.shape} is not {e.dtype}{e.shape}"
        assert a.tobytes() == e.tobytes(), f"{where} differs by up to {np.max(np.abs(a - e))}"


def observed_order(spacings: Any, errors: Any) -> float:
    """Slope of log(error) over log(spacing), by least squares over at least four levels."""
    assert len(spacings) == len(errors) >= 4, "an order needs four levels or more"
    return float(np.polyfit(np.log(np.asarray(spacings)), np.log(np.asarray(errors)), 1)[0])
