"""Geometric multigrid for symmetric elliptic problems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import jax
import jax.numpy as jnp
import numpy as np

from sciml.errors import ConfigError
from sciml.registry import option, register
from sciml.solvers.krylov import LinearSolver, conjugate_gradients, transposable
from sciml.solvers.method import EllipticSolver, Matvec
from sciml.solvers.multigrid_levels import (
    Level,
    Transfer,
    coarsened,
    coarsest_shape,
    read_stencil,
    transfer_of,
)
from sciml.solvers.stability import norm
from sciml.solvers.structure import is_uncoupled
from sciml.solvers.system import LinearSystem
from sciml.types import Array

MOST_COARSE_POINTS = 700


@register("method", "multigrid")
@final
@dataclass(frozen=True)
class Multigrid(EllipticSolver):
    """Conjugate gradients preconditioned by V-cycles, or V-cycles alone; differences of order 2 on every box.

    Each cycle reduces the residual by a factor below 0.2 on any grid with about equal spacings; jumping coefficients
    cost a few iterations more. Bounded axes need m 2^k + 1 points, periodic ones m 2^k, with a small m.
    """

    references: ClassVar[tuple[str, ...]] = (
        "A. Brandt, Math. Comp. 31 (1977) 333",
        "J. E. Dendy, Black box multigrid, J. Comput. Phys. 48 (1982) 366",
        "M. Adams, M. Brezina, J. Hu, R. Tuminaro, J. Comput. Phys. 188 (2003) 593 (polynomial smoothing)",
    )
    needs_symmetry: ClassVar[bool] = True
    uses_differences: ClassVar[bool] = True

    difference_order: int = option(2, minimum=2, maximum=2, doc="order of the differences, 2")
    tolerance: float = option(1e-10, above=0.0, doc="relative residual at which to stop, and the largest accepted")
    max_iterations: int = option(100, minimum=1, doc="cycles per linear system after which the solve has failed")
    smoothing: int = option(2, minimum=1, doc="products with the operator per smoothing, twice per cycle and grid")
    accelerate: bool = option(True, doc="conjugate gradients around the cycles; false: cycles alone")

    def linear_solver(self, system: LinearSystem) -> LinearSolver:
        """Cycles on the hierarchy of grids."""
        _check(system, self.difference_order)

        def solve(matvec: Matvec, b: Array) -> tuple[Array, Array]:
            precondition = cycle_of(system, matvec, self.smoothing)
            if self.accelerate:
                return conjugate_gradients(matvec, precondition, b, self.tolerance, self.max_iterations, system.inner)
            return _cycles(matvec, precondition, b, self.tolerance, self.max_iterations)

        return transposable(solve, system.weights)


def cycle_of(system: LinearSystem, matvec: Matvec, smoothing: int) -> Matvec:
    """One V-cycle as an approximate inverse of `matvec`, both on states of shape (fields, *interior)."""
    space = system.space
    index, periodic = (slice(None), *space.interior), space.grid.box.periodic
    ends = [part.indices(n)[:2] for part, n in zip(space.interior, space.grid.shape, strict=True)]
    widths = [(0, 0), *((first, n - last) for (first, last), n in zip(ends, space.grid.shape, strict=True))]
    active = jnp.pad(jnp.ones(space.shape[1:], bool), widths[1:])

    def balanced(u: Array) -> Array:
        """The operator times the sizes of the cells, symmetric, on all points of the grid."""
        inside = u[index]
        image = system.weights * (matvec(inside) - system.pin * system.mean(inside))
        return jnp.pad(image, widths)

    finest = read_stencil(balanced, len(space.names), active, periodic)
    levels, transfers = _hierarchy(finest)
    coarsest = _inverse(levels[-1], system.pin)
    smoothers = [_Smoother.of(level, smoothing) for level in levels[:-1]]

    def cycle(b: Array, depth: int = 0) -> Array:
        if depth == len(transfers):
            return (coarsest @ b.reshape(b.shape[0], -1, 1)).reshape(b.shape)
        level, transfer, smoother = levels[depth], transfers[depth], smoothers[depth]
        x = smoother.improved(jnp.zeros_like(b), b)
        x = x + transfer.interpolate(cycle(transfer.restrict(b - level.apply(x)), depth + 1))
        return smoother.improved(x, b)

    def precondition(r: Array) -> Array:
        mean = jnp.where(system.pin > 0, system.mean(r), 0.0)
        x = cycle(jnp.pad(system.weights * (r - mean), widths))[index]
        level = jnp.where(system.pin > 0, system.mean(x), 0.0)
        return x - level + mean / jnp.where(system.pin > 0, system.pin, 1.0)

    return precondition


@dataclass(frozen=True, eq=False)
class _Smoother:
    """Chebyshev polynomial of D^-1 A, small on the upper part of the spectrum, which the coarse grid does not see."""

    level: Level
    highest: Array
    degree: int

    @classmethod
    def of(cls, level: Level, degree: int) -> _Smoother:
        """With the bound of Gershgorin for the largest eigenvalue."""
        return cls(level, jnp.max(jnp.sum(jnp.abs(level.stencil), axis=0) / jnp.abs(level.diagonal)), degree)

    def improved(self, x: Array, b: Array) -> Array:
        """On [highest/(2 dim), highest]: Y. Saad, Iterative Methods (2003), algorithm 12.1."""
        low = 1 / (2 * len(self.level.shape))
        center, radius = (1 + low) / 2, (1 - low) / 2
        ratio = center / radius
        rows, rho = [(0.0, 1 / center)], 1 / ratio
        for _ in range(self.degree - 1):
            new = 1 / (2 * ratio - rho)
            rows.append((new * rho, 2 * new / radius))
            rho = new
        factors = jnp.asarray(rows)
        scale = 1.0 / (self.highest * self.level.diagonal)

        def one(i: Any, state: tuple[Array, Array]) -> tuple[Array, Array]:
            step = factors[i, 0] * state[1] + factors[i, 1] * scale * (b - self.level.apply(state[0]))
            return state[0] + step, step

        return jax.lax.fori_loop(0, self.degree, one, (x, jnp.zeros_like(x)))[0]


def _hierarchy(finest: Level) -> tuple[list[Level], list[Transfer]]:
    levels, transfers = [finest], []
    while levels[-1].shape != coarsest_shape(finest.shape, finest.periodic):
        transfers.append(transfer_of(levels[-1]))
        levels.append(coarsened(levels[-1], transfers[-1]))
    return levels, transfers


def _inverse(level: Level, pin: Array | float) -> Array:
    """The inverse matrix of each field on the coarsest grid, shape (fields, n, n); constants are lifted out of zero."""
    n = int(np.prod(level.shape))
    identity = jnp.eye(n).reshape(n, 1, *level.shape)
    columns = jax.vmap(lambda e: level.apply(jnp.broadcast_to(e, level.diagonal.shape)))(identity)
    matrix = jnp.moveaxis(columns.reshape(n, -1, n), 0, 2)
    lift = jnp.where(pin > 0, jnp.max(jnp.abs(level.diagonal)) / n, 0.0)
    return jnp.linalg.inv(matrix + lift)


def _cycles(matvec: Matvec, precondition: Matvec, b: Array, tolerance: float, most: int) -> tuple[Array, Array]:
    """x <- x + cycle(b - A x) until the residual is small."""
    goal = tolerance * norm(b)

    def go_on(state: tuple[Array, Array, Array]) -> Array:
        return (norm(state[1]) > goal) & (state[2] < most)

    def improve(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        x = state[0] + precondition(state[1])
        return x, b - matvec(x), state[2] + 1

    x, _, count = jax.lax.while_loop(go_on, improve, (jnp.zeros_like(b), b, jnp.asarray(0, jnp.int32)))
    return x, count.astype(float)


def _check(system: LinearSystem, order: int) -> None:
    grid, periodic = system.space.grid, system.space.grid.box.periodic
    if order != 2 or not is_uncoupled(system.structure):
        raise ConfigError(
            "multigrid coarsens operators that couple nearest neighbors of one field",
            expected="differences of order 2, and an equation without coupling between fields",
            got=f"order {order}, fields {', '.join(system.space.names)}",
            fix="method: {kind: bicgstab}",
        )
    last = coarsest_shape(grid.shape, periodic)
    if int(np.prod(last)) > MOST_COARSE_POINTS:
        wanted = tuple(_nearest(n, wraps) for n, wraps in zip(grid.shape, periodic, strict=True))
        raise ConfigError(
            "this grid cannot be halved often enough for multigrid",
            expected="m 2^k + 1 points on bounded axes, m 2^k on periodic ones, with a small m",
            got=f"shape {grid.shape}, which ends at {last}",
            reason=f"the coarsest grid is solved by one dense matrix of at most {MOST_COARSE_POINTS} points",
            fix=f"points: {list(wanted)}, or method: {{kind: conjugate_gradient}}",
        )


def _nearest(n: int, wraps: bool) -> int:
    """The number of points nearest to n that can be halved down to between 5 and 8 intervals."""
    extra = 0 if wraps else 1
    sizes = [m * 2**k + extra for m in range(5, 9) for k in range(16)]
    return min(sizes, key=lambda size: abs(size - n))
