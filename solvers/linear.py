"""The stiff linear part L of a discretized evolution: its functions, its shifted inverse, and how they act."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np

from sciml.types import Array

CONTOUR_POINTS = 32  # a circle of radius 1: the trapezoidal rule is exact to rounding


@jax.tree_util.register_dataclass
@final
@dataclass(frozen=True)
class Diagonal:
    """L acts as a factor per field and mode; `symbol` is real or complex, broadcastable to the state."""

    symbol: Array

    def act(self, function: Array, y: Array) -> Array:
        """A function of L applied to a state."""
        return function * y

    def apply(self, y: Array) -> Array:
        """L y."""
        return self.symbol * y

    def phi(self, step: Any) -> tuple[Array, ...]:
        """phi_0 ... phi_3 of z = step L, with phi_0 = e^z and phi_{k+1} = (phi_k - 1/k!)/z.

        Mean over a circle around each z: Kassam and Trefethen (2005) sec. 2. The complex part is dropped only
        where L itself is real: dropping it always makes the method first order for dispersive equations.
        """
        z = step * self.symbol
        circle = np.exp(2j * np.pi * (np.arange(CONTOUR_POINTS) + 0.5) / CONTOUR_POINTS)
        w = z[..., None] + circle
        first = (jnp.exp(w) - 1) / w
        second = (first - 1) / w
        third = (second - 0.5) / w
        means = (jnp.mean(f, axis=-1) for f in (first, second, third))
        if not jnp.iscomplexobj(self.symbol):
            means = (f.real for f in means)
        return (jnp.exp(z), *means)

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
