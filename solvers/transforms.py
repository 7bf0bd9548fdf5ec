"""Sine, cosine and Hartley transforms, which diagonalize the second difference of order 2, by fast Fourier ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from sciml.domain import Grid
from sciml.types import Array

WORTHWHILE = (
    400  # unknowns per axis from which it is faster than the matrix of modes: 1.2 at 511, 1.6 at 1023 (one core)
)
QUARTER_WORTHWHILE = 1500  # of transforms that are four times as long as their axis


@dataclass(frozen=True, eq=False)
class Transform:
    """Values along one axis to coefficients of the eigenvectors (columns of `vectors`, shape (m, m)) and back.

    G. Strang, SIAM Rev. 41 (1999) 135: the type depends on the conditions at the two ends.
    """

    vectors: np.ndarray
    eigenvalues: np.ndarray
    to_modes: Callable[[Any], Array]
    to_values: Callable[[Any], Array]
    worthwhile: int = WORTHWHILE

    def forward(self, values: Any, place: int) -> Array:
        """Coefficients along the axis `place` < 0."""
        return jnp.moveaxis(self.to_modes(jnp.moveaxis(jnp.asarray(values), place, -1)), -1, place)

    def backward(self, coefficients: Any, place: int) -> Array:
        """Values along the axis `place` < 0."""
        return jnp.moveaxis(self.to_values(jnp.moveaxis(jnp.asarray(coefficients), place, -1)), -1, place)


def transform_for(
    line: Grid, conditions: tuple[tuple[str, float, float], ...], natural: frozenset[str]
) -> Transform | None:
    """The transform of one axis x in order 2, or None: each end is periodic, Dirichlet, or a natural Neumann face."""
    (n,), (h,), (periodic,) = line.shape, line.spacing, line.box.periodic
    if periodic:
        return _hartley(n, h)
    kinds = {face: _kind(alpha, beta, face in natural) for face, alpha, beta in conditions}
    make = _BY_KINDS.get((kinds["x-"], kinds["x+"]))
    return None if make is None else make(n, h)


def _kind(alpha: float, beta: float, natural: bool) -> str:
    if beta == 0:
        return "dirichlet"
    return "neumann" if natural and alpha == 0 else "other"


def _eigenvalues(angles: np.ndarray, h: float) -> np.ndarray:
    return -4.0 / h**2 * np.sin(angles / 2) ** 2


def _sine(n: int, h: float) -> Transform:
    """DST-I of the n - 2 points between two Dirichlet ends."""
    intervals = n - 1

    def sines(v: Any) -> Array:
        zero = jnp.zeros_like(v[..., :1])
        odd = jnp.concatenate([zero, v, zero, -v[..., ::-1]], axis=-1)
        return -0.5 * jnp.fft.rfft(odd).imag[..., 1:intervals]

    angles = np.pi * np.arange(1, intervals) / intervals
    vectors = np.sin(np.outer(np.arange(1, intervals), angles))
    return Transform(vectors, _eigenvalues(angles, h), lambda v: sines(v) * (2.0 / intervals), sines)


def _cosine(n: int, h: float) -> Transform:
    """DCT-I of the n points between and on two Neumann ends."""
    intervals = n - 1
    ends = np.ones(n)
    ends[[0, -1]] = 0.5

    def cosines(v: Any) -> Array:
        even = jnp.concatenate([v, v[..., -2:0:-1]], axis=-1)
        return 0.5 * jnp.fft.rfft(even).real

    angles = np.pi * np.arange(n) / intervals
    return Transform(
        np.cos(np.outer(np.arange(n), angles)),
        _eigenvalues(angles, h),
        lambda v: cosines(v) * (2.0 / intervals) * ends,
        lambda c: cosines(c / ends),
    )


def _quarter(n: int, h: float) -> Transform:
    """DCT-III of the n - 1 points from a Neumann end to before a Dirichlet one."""
    m = n - 1

    def to_modes(v: Any) -> Array:
        """sum_j first_j v_j cos((k + 1/2) pi j / m) 2 / m, from the odd entries of a transform of length 4 m."""
        zero = jnp.zeros_like(v[..., :1])
        wave = jnp.concatenate([v, zero, -v[..., :0:-1], -v, zero, v[..., :0:-1]], axis=-1)
        return jnp.fft.rfft(wave).real[..., 1 : 2 * m : 2] / (2.0 * m)

    def to_values(c: Any) -> Array:
        """sum_k c_k cos((k + 1/2) pi j / m)."""
        spread = jnp.stack([jnp.zeros_like(c), c], axis=-1).reshape(*c.shape[:-1], 2 * m)
        return jnp.fft.rfft(spread, n=4 * m).real[..., :m]

    angles = (np.arange(m) + 0.5) * np.pi / m
    return Transform(
        np.cos(np.outer(np.arange(m), angles)), _eigenvalues(angles, h), to_modes, to_values, QUARTER_WORTHWHILE
    )


def _flipped_quarter(n: int, h: float) -> Transform:
    """The same with the Dirichlet end first."""
    plain = _quarter(n, h)
    return Transform(
        plain.vectors[::-1].copy(),
        plain.eigenvalues,
        lambda v: plain.to_modes(v[..., ::-1]),
        lambda c: plain.to_values(c)[..., ::-1],
        QUARTER_WORTHWHILE,
    )


def _hartley(n: int, h: float) -> Transform:
    """Real transform of a periodic axis: cos + sin of every wave number."""

    def hartley(v: Any) -> Array:
        coefficients = jnp.fft.fft(v)
        return coefficients.real - coefficients.imag

    angles = 2 * np.pi * np.arange(n) / n
    phases = np.outer(np.arange(n), angles)
    return Transform(np.cos(phases) + np.sin(phases), _eigenvalues(angles, h), lambda v: hartley(v) / n, hartley)


_BY_KINDS: dict[tuple[str, str], Callable[[int, float], Transform]] = {
    ("dirichlet", "dirichlet"): _sine,
    ("neumann", "neumann"): _cosine,
    ("neumann", "dirichlet"): _quarter,
    ("dirichlet", "neumann"): _flipped_quarter,
}
