"""Jacobians row by row: reverse mode for each row alone costs one pass over the batch, not one per row.

They are kept transposed, parameters first: products of long contiguous lines are what a CPU is fast at.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sciml.errors import ConfigError
from sciml.training.objective import Batch, Residuals
from sciml.types import Array, PyTree

ResidualFunction = Callable[[PyTree, Batch], Residuals]

BLOCK = 256
"""Lines per block of the Gram matrix: large for fast products, small against the matrix to gain from symmetry."""


def row_jacobians(residuals: ResidualFunction, params: PyTree, batch: Batch) -> dict[str, tuple[Array, Array]]:
    """For each term its residuals (n,) and their transposed Jacobian (parameters, n), flattened alike.

    Arrays of the batch are grouped by their number of rows; the terms with that number are differentiated
    with one row of these arrays at a time. Raises ConfigError for a term whose rows belong to no array.
    """
    flat, unravel = ravel_pytree(params)
    shapes = jax.eval_shape(residuals, params, batch)
    counts = {values.shape[0] for values in shapes.values()}
    _refuse_foreign_rows(shapes, batch)
    result = {}
    for count in sorted(counts):
        terms = [name for name, values in shapes.items() if values.shape[0] == count]
        rows = {name: values for name, values in batch.items() if values.shape[0] == count}
        others = {name: values[:1] for name, values in batch.items() if values.shape[0] != count}
        result |= _jacobians_of(terms, residuals, unravel, flat, rows, others)
    return {name: result[name] for name in shapes}


def _jacobians_of(
    terms: list[str],
    residuals: ResidualFunction,
    unravel: Callable[[Array], PyTree],
    flat: Array,
    rows: Batch,
    others: Batch,
) -> dict[str, tuple[Array, Array]]:
    def one_row(row: Batch) -> tuple[Residuals, Residuals]:
        single = {name: value[None] for name, value in row.items()}

        def values(vector: Array) -> tuple[Residuals, Residuals]:
            rows_of_terms = residuals(unravel(vector), single | others)
            chosen = {name: rows_of_terms[name].reshape(-1) for name in terms}
            return chosen, chosen

        jacobian, value = jax.jacrev(values, has_aux=True)(flat)
        return value, jacobian

    values, jacobians = jax.vmap(one_row, out_axes=-1)(rows)
    return {n: (values[n].reshape(-1), jnp.moveaxis(jacobians[n], 1, 0).reshape(flat.size, -1)) for n in terms}


def _refuse_foreign_rows(shapes: dict[str, jax.ShapeDtypeStruct], batch: Batch) -> None:
    known = {name: values.shape[0] for name, values in batch.items()}
    foreign = {name: values.shape[0] for name, values in shapes.items() if values.shape[0] not in known.values()}
    if foreign:
        raise ConfigError(
            "least squares needs residuals whose rows belong to rows of the batch",
            expected=f"as many rows as one of {known}",
            got=foreign,
            reason="the objective reduces or joins rows",
            fix="give this objective a first-order optimizer, such as adam",
        )


def stacked(rows: dict[str, tuple[Array, Array]], sizes: dict[str, int]) -> tuple[Array, Array]:
    """All residuals (n,) and Jacobians (parameters, n), each term divided by the square root of its size."""
    values = jnp.concatenate([r / sizes[name] ** 0.5 for name, (r, _) in rows.items()])
    return values, jnp.concatenate([j / sizes[name] ** 0.5 for name, (_, j) in rows.items()], axis=1)


def gram(lines: Array) -> Array:
    """lines @ linesᵀ, shape (m, m) for lines of shape (m, n), at little more than half of the work."""
    count = lines.shape[0]
    strips = [lines[i : i + BLOCK] @ lines[: i + BLOCK].T for i in range(0, count, BLOCK)]
    lower = jnp.concatenate([jnp.pad(s, ((0, 0), (0, count - s.shape[1]))) for s in strips])
    return jnp.tril(lower) + jnp.tril(lower, -1).T
