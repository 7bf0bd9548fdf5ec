"""How well noisy readings can determine coefficients at all, whatever method reads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
import numpy as np

from sciml.errors import ConfigError
from sciml.types import Array


def smallest_errors(
    readings: Callable[[dict[str, Array]], Array], coefficients: Mapping[str, float], noise: float
) -> dict[str, float]:
    """Smallest relative standard error with which any unbiased method can recover the coefficients.

    `readings` maps coefficients to the noiseless readings (any shape, one unit), differentiably; `noise` is their
    standard deviation in that unit. With s the sensitivities of the readings to the logarithms of the coefficients,
    the errors are noise * sqrt(diag(inv(sᵀs))), the Cramer-Rao bound for Gaussian noise.
    Raises `ConfigError` where the readings do not determine the coefficients.
    Source: S. M. Kay, Fundamentals of Statistical Signal Processing I (1993), section 3.8.
    """
    names = tuple(coefficients)
    values = jnp.asarray([float(coefficients[name]) for name in names])

    def of_logarithms(logarithms: Array) -> Array:
        return readings(dict(zip(names, values * jnp.exp(logarithms), strict=True))).ravel()

    sensitivity = np.asarray(jax.jacfwd(of_logarithms)(jnp.zeros(len(names))))
    information = sensitivity.T @ sensitivity
    if np.linalg.matrix_rank(information) < len(names):
        raise ConfigError(
            "the readings do not determine the coefficients",
            expected="readings that change with every coefficient, each in its own way",
            got=f"{sensitivity.shape[0]} readings for {', '.join(names)}",
            fix="more sensors or times, or fewer unknowns",
        )
    return dict(zip(names, (noise * np.sqrt(np.diag(np.linalg.inv(information)))).tolist(), strict=True))
