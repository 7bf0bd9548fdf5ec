"""Fourier coefficients that are shared by ranks: the fast transform of a grid in slabs."""

from __future__ import annotations

from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from sciml.calculus.spectral import WaveNumbers, basis_of
from sciml.domain import Grid
from sciml.solvers.decomposed.part import Part
from sciml.types import Array


@final
class SlabBasis(WaveNumbers):
    """The coefficients of `rfftn` in columns: a rank has all wave numbers of the first axis, a share of the second.

    Their layout is (n_2/size, ..., n_1), the first axis last, so that its transform goes along memory. In two
    dimensions the n_2//2 + 1 waves of the second axis are filled up with zeros to a multiple of the size. One exchange
    of all data per transform, as in P. Dmitruk et al., Parallel Computing 27 (2001) 1921.
    """

    def __init__(self, part: Part) -> None:
        self.grid, self._over, self._size = part, part.over, part.over.size
        shape = part.whole.shape
        self._waves = shape[-1] // 2 + 1
        self._share = self._padded // self._size
        self._first = self._over.rank * self._share
        self._orders = self._local_orders()
        for known in (self.laplacian, self.inverse_laplacian, self.resolved):
            del known  # computed here, because a traced rank must not first be used inside of a loop

    @property
    def whole(self) -> Grid:
        """The grid of all ranks."""
        return self.grid.whole

    @property
    def orders(self) -> tuple[Any, ...]:
        """In the order of `fftfreq`, on the last axis of the grid of `rfftfreq`; zero where filled up."""
        return self._orders

    @property
    def _padded(self) -> int:
        count = self._waves if self.whole.dim == 2 else self.whole.shape[1]
        return -(-count // self._size) * self._size

    def _local_orders(self) -> tuple[Any, ...]:
        dim, shape = self.whole.dim, self.whole.shape
        orders: list[Any] = [np.fft.fftfreq(n, 1 / n) for n in shape[:-1]] + [np.arange(float(self._waves))]
        second = np.zeros(self._padded)
        second[: orders[1].size] = orders[1]
        numbers = jnp.asarray(second) if isinstance(self._first, jax.Array) else second
        orders[1] = numbers[self._first + np.arange(self._share)]
        places = [dim - 1, *range(dim - 1)]  # of the axes of the grid in the layout
        return tuple(
            k.reshape([-1 if a == place else 1 for a in range(dim)]) for k, place in zip(orders, places, strict=True)
        )

    def forward(self, values: Any) -> Array:
        """Coefficients of the rows of grid values, over the last `dim` axes."""
        dim = self.whole.dim
        rows = jnp.fft.rfftn(values, axes=tuple(range(1 - dim, 0)))
        if dim == 2:
            rows = jnp.pad(rows, [(0, 0)] * (rows.ndim - 1) + [(0, self._padded - self._waves)])
        return jnp.fft.fft(self._to_columns(rows, dim), axis=-1)

    def backward(self, coefficients: Any) -> Array:
        """The rows of grid values of coefficients, over the last `dim` axes."""
        dim, shape = self.whole.dim, self.whole.shape
        rows = self._to_rows(jnp.fft.ifft(coefficients, axis=-1), dim)
        if dim == 2:
            rows = rows[..., : self._waves]
        return jnp.fft.irfftn(rows, s=shape[1:], axes=tuple(range(1 - dim, 0)))

    def of_real(self, coefficients: Any) -> Array:
        """As `FourierBasis.of_real`: opposite waves in the plane 0 of the last axis, and in that of its Nyquist mode,
        become conjugates."""
        planes = [0, self._waves - 1] if self.whole.shape[-1] % 2 == 0 else [0]
        if self.whole.dim == 3:
            chosen = jnp.moveaxis(coefficients[..., planes, :], -2, 0)
            flipped = jnp.roll(jnp.flip(chosen, -1), 1, -1)
            rows = self._to_rows(flipped, 2)
            opposite = self._to_columns(jnp.roll(jnp.flip(rows, -1), 1, -1), 2)
            chosen = 0.5 * (chosen + jnp.conj(opposite))
            return coefficients.at[..., planes, :].set(jnp.moveaxis(chosen, 0, -2))
        for plane in planes:
            place = jnp.clip(plane - self._first, 0, self._share - 1)
            column = lax.dynamic_index_in_dim(coefficients, place, -2, keepdims=False)
            opposite = jnp.roll(jnp.flip(column, -1), 1, -1)
            here = self._first + place == plane
            column = jnp.where(here, 0.5 * (column + jnp.conj(opposite)), column)
            coefficients = lax.dynamic_update_index_in_dim(coefficients, column, place, coefficients.ndim - 2)
        return coefficients

    def total(self, value: Array) -> Array:
        """The sum over the ranks."""
        return self._over.total(value)

    def _to_columns(self, rows: Any, dim: int) -> Array:
        """Shape (..., n_1/size, a, *rest) to (..., a/size, *rest, n_1)."""
        lead, size = rows.ndim - dim, self._size
        share = rows.shape[lead + 1] // size
        blocks = rows.reshape(*rows.shape[: lead + 1], size, share, *rows.shape[lead + 2 :])
        got = self._over.exchange(jnp.moveaxis(blocks, lead + 1, 0))
        columns = jnp.moveaxis(got, (0, lead + 1), (-2, -1))
        return columns.reshape(*columns.shape[:-2], -1)

    def _to_rows(self, columns: Any, dim: int) -> Array:
        """Shape (..., a/size, *rest, n_1) to (..., n_1/size, a, *rest)."""
        lead, size = columns.ndim - dim, self._size
        parts = columns.reshape(*columns.shape[:-1], size, columns.shape[-1] // size)
        got = self._over.exchange(jnp.moveaxis(parts, (-2, -1), (0, lead + 1)))
        rows = jnp.moveaxis(got, 0, lead + 1)
        return rows.reshape(*rows.shape[: lead + 1], -1, *rows.shape[lead + 3 :])


@basis_of.register
def _(part: Part) -> SlabBasis:
    """Coefficients shared by the ranks."""
    return SlabBasis(part)
