"""Sparse linear systems under jit: the same interface for a direct solver, conjugate gradients and PETSc."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciml.errors import ConfigError
from sciml.types import Array

FACTORS_KEPT = 4
# measured: half the entries in the factors and of the time that the default ordering (by columns) needs in the plane
ORDERING = {"permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": 0.1, "options": {"SymmetricMode": True}}
SMALLEST_PIVOT = 1e-13  # relative to the largest one; below, the matrix counts as singular


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Pattern:
    """Where a sparse matrix has entries, column by column.

    `rows` and `columns`: shape (nnz,); `starts`: of the columns, shape (n + 1,); `size`: n.
    """

    rows: Any
    columns: Any
    starts: Any
    size: int = field(metadata={"static": True})

    def multiply(self, data: Array, x: Array) -> Array:
        """The product with a vector, shape (n,)."""
        return jnp.zeros(self.size).at[self.rows].add(data * x[self.columns])

    def multiply_transposed(self, data: Array, x: Array) -> Array:
        """The product of the transposed matrix with a vector, shape (n,)."""
        return jnp.zeros(self.size).at[self.columns].add(data * x[self.rows])

    def diagonal(self, data: Array) -> Array:
        """The diagonal, shape (n,)."""
        return jnp.zeros(self.size).at[self.rows].add(jnp.where(self.rows == self.columns, data, 0.0))


LinearSolver = Callable[[Pattern, Array, Array, bool], Array]
"""(pattern, entries, right-hand side, whether to transpose) -> solution; NaN where the matrix is singular."""

LINEAR_SOLVERS: dict[str, LinearSolver] = {}


def linear_solver(name: str) -> Callable[[LinearSolver], LinearSolver]:
    """Function decorator: make a linear solver known by a name."""

    def decorate(function: LinearSolver) -> LinearSolver:
        LINEAR_SOLVERS[name] = function
        return function

    return decorate


def solve_linear(name: str, pattern: Pattern, data: Array, b: Array) -> Array:
    """x with A x = b, differentiable in the entries of A and in b; raises `ConfigError` for an unknown solver."""
    if name not in LINEAR_SOLVERS:
        raise ConfigError("no such linear solver", expected=" | ".join(sorted(LINEAR_SOLVERS)), got=name)
    solver = LINEAR_SOLVERS[name]
    return jax.lax.custom_linear_solve(
        lambda x: pattern.multiply(data, x),
        b,
        solve=lambda _, rhs: solver(pattern, data, rhs, False),
        transpose_solve=lambda _, rhs: solver(pattern, data, rhs, True),
    )


@linear_solver("direct")
def direct(pattern: Pattern, data: Array, b: Array, transposed: bool) -> Array:
    """SuperLU (scipy) on the host. The latest factors are kept, so that a matrix that stays is factored once."""
    return _on_host(_solve_by_factors, pattern, data, b, transposed)


@linear_solver("conjugate_gradients")
def conjugate_gradients(pattern: Pattern, data: Array, b: Array, transposed: bool) -> Array:
    """Conjugate gradients with the diagonal as preconditioner, for symmetric positive definite matrices."""
    del transposed
    diagonal = pattern.diagonal(data)
    safe = jnp.where(diagonal > 0, diagonal, 1.0)
    x, _ = jax.scipy.sparse.linalg.cg(
        lambda v: pattern.multiply(data, v), b, tol=1e-12, maxiter=20 * pattern.size, M=lambda v: v / safe
    )
    return jnp.where(jnp.all(diagonal > 0), x, jnp.nan)


@linear_solver("petsc")
def petsc(pattern: Pattern, data: Array, b: Array, transposed: bool) -> Array:
    """PETSc's LU factors (option `-ksp_type`, `-pc_type` choose others); needs petsc4py."""
    need_petsc()
    return _on_host(_solve_by_petsc, pattern, data, b, transposed)


def need_petsc() -> Any:
    """The module petsc4py.PETSc; raises `ConfigError` where it cannot be imported."""
    try:
        from petsc4py import PETSc  # pyright: ignore[reportMissingImports] (optional, not among the extras)
    except ImportError as error:
        raise ConfigError(
            "the linear solver petsc needs petsc4py", got=f"{error}", fix="pip install petsc petsc4py, or direct"
        ) from error
    return PETSc


def _on_host(function: Callable[..., Any], pattern: Pattern, data: Array, b: Array, transposed: bool) -> Array:
    def call(*arrays: Any) -> np.ndarray:
        return function(*(np.asarray(a) for a in arrays), transposed)

    shape = jax.ShapeDtypeStruct((pattern.size,), jnp.float64)
    return jax.pure_callback(call, shape, pattern.rows, pattern.starts, data, b, vmap_method="sequential")


_factors: OrderedDict[bytes, Any] = OrderedDict()


def _solve_by_factors(
    rows: np.ndarray, starts: np.ndarray, data: np.ndarray, b: np.ndarray, transposed: bool
) -> np.ndarray:
    from scipy.sparse import csc_matrix
    from scipy.sparse.linalg import splu

    if not np.all(np.isfinite(data)):
        return np.full(b.shape, np.nan)
    key = hashlib.blake2b(data.tobytes() + rows.tobytes()).digest()
    if key not in _factors:
        try:
            found = splu(csc_matrix((data, rows, starts), shape=(len(b), len(b))), **ORDERING)
            pivots = np.abs(found.U.diagonal())
            found = found if pivots.min() > SMALLEST_PIVOT * pivots.max() else None
        except RuntimeError:  # an exactly singular matrix
            found = None
        _factors[key] = found
        while len(_factors) > FACTORS_KEPT:
            _factors.popitem(last=False)
    _factors.move_to_end(key)
    factors = _factors[key]
    return np.full(b.shape, np.nan) if factors is None else factors.solve(b, "T" if transposed else "N")


def _solve_by_petsc(
    rows: np.ndarray, starts: np.ndarray, data: np.ndarray, b: np.ndarray, transposed: bool
) -> np.ndarray:
    api = need_petsc()
    # the columns of A are the rows of its transpose, which is what PETSc is given
    matrix = api.Mat().createAIJ(len(b), csr=(starts.astype(np.int32), rows.astype(np.int32), data))
    context = api.KSP().create()
    context.setOperators(matrix)
    context.setType("preonly")
    context.getPC().setType("lu")
    context.setFromOptions()
    right, x = api.Vec().createWithArray(b.copy()), api.Vec().createSeq(len(b))
    (context.solve if transposed else context.solveTranspose)(right, x)
    return x.getArray().copy() if context.getConvergedReason() > 0 else np.full(b.shape, np.nan)
