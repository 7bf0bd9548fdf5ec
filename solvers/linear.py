"""The stiff linear part L of a discretized evolution: its functions, its shifted inverse, and how they act."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np

from sciml.types import Array

TAYLOR = np.asarray([1 / math.factorial(k + 3) for k in reversed(range(18))])
"""Of phi_3, highest power first: what is left out is below rounding for |z| < 1."""


def times(factor: Array, y: Array) -> Array:
    """The product; that of a real factor and a complex state costs two multiplications, where XLA would take four."""
    if jnp.iscomplexobj(y) and not jnp.iscomplexobj(factor):
        return jax.lax.complex(factor * y.real, factor * y.imag)
    return factor * y


@jax.tree_util.register_dataclass
@final
@dataclass(frozen=True)
class Diagonal:
    """L acts as a factor per field and mode; `symbol` is real or complex, broadcastable to the state."""

    symbol: Array

    def act(self, function: Array, y: Array) -> Array:
        """A function of L applied to a state."""
        return times(function, y)

    def apply(self, y: Array) -> Array:
        """L y."""
        return times(self.symbol, y)

    def phi(self, step: Any) -> tuple[Array, ...]:
        """phi_0 ... phi_3 of z = step L, with phi_0 = e^z and phi_{k+1} = (phi_k - 1/k!)/z.

        Where |z| < 1, by the Taylor series of phi_3 and the recurrence upside down, which loses nothing; elsewhere by
        the recurrence, which loses a digit at most. Complex wherever L is: keeping the real part only, of a mean over
        a circle as by Kassam and Trefethen (2005), makes the method first order for dispersive equations.
        """
        z = jnp.asarray(step * self.symbol)
        small = jnp.abs(z) < 1
        inside, outside = jnp.where(small, z, 0.0), jnp.where(small, 1.0, z)
        exponential = jnp.exp(z)
        first = (jnp.where(small, 0.0, exponential) - 1) / outside
        second = (first - 1) / outside
        third = jnp.where(small, jnp.polyval(TAYLOR, inside), (second - 0.5) / outside)
        second = jnp.where(small, 0.5 + inside * third, second)
        return exponential, jnp.where(small, 1 + inside * second, first), second, third

    def exponential(self, step: Any) -> Array:
        """e^{step L}."""
        return jnp.exp(step * self.symbol)

    def shifted_inverse(self, shift: Any) -> Array:
        """(1 - shift L)^{-1}."""
        return 1.0 / (1.0 - shift * self.symbol)


@jax.tree_util.register_dataclass
@final
@dataclass(frozen=True)
class Dense:
    """L as one matrix per field, shape (fields, n, n), for operators that no basis at hand diagonalizes.

    Where it couples the fields it is one matrix of all unknowns, shape (1, fields n, fields n).
    """

    matrix: Array

    def act(self, function: Array, y: Array) -> Array:
        """A function of L applied to a state."""
        return jnp.einsum("fij,fj->fi", function, y.reshape(function.shape[0], -1)).reshape(y.shape)

    def apply(self, y: Array) -> Array:
        """L y."""
        return self.act(self.matrix, y)

    def phi(self, step: Any) -> tuple[Array, ...]:
        """phi_0 ... phi_3 of step L: the first row of the exponential of an augmented matrix.

        A. H. Al-Mohy, N. J. Higham, SIAM J. Sci. Comput. 33 (2011) 488, theorem 2.1.
        """
        n = self.matrix.shape[-1]

        def of_field(matrix: Array) -> Array:
            chain = jnp.zeros((4 * n, 4 * n)).at[:n, :n].set(step * matrix)
            for block in range(3):
                rows, columns = slice(block * n, (block + 1) * n), slice((block + 1) * n, (block + 2) * n)
                chain = chain.at[rows, columns].set(jnp.eye(n))
            return jax.scipy.linalg.expm(chain, max_squarings=48)[:n]

        row = jax.vmap(of_field)(self.matrix)
        return tuple(row[:, :, k * n : (k + 1) * n] for k in range(4))

    def exponential(self, step: Any) -> Array:
        """e^{step L}."""
        return jax.vmap(jax.scipy.linalg.expm)(step * self.matrix)

    def shifted_inverse(self, shift: Any) -> Array:
        """(1 - shift L)^{-1}."""
        return jnp.linalg.inv(jnp.eye(self.matrix.shape[-1]) - shift * self.matrix)
