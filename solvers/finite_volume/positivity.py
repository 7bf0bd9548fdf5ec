"""Keeping density, pressure or depth positive without giving up conservation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax.numpy as jnp

from sciml.types import Array

Quantities = Callable[[Array], Sequence[Array]]
"""State (fields, *shape) -> what must not be negative, shapes (*shape,); concave where those before are positive."""
LEAST_IN_CELL = 0.1  # of the average: what the ends of a cell are kept above
LEAST_LEFT = 1e-3  # of what the first-order flux leaves


def toward(quantities: Quantities, safe: Array, state: Array, least: float) -> Array:
    """The largest part theta in [0, 1] for which safe + theta (state - safe) keeps `least` of the safe quantities.

    Shape (*shape,); 1 wherever nothing is in danger. X. Zhang, C.-W. Shu, J. Comput. Phys. 229 (2010) 8918, sec. 2.2,
    with a line through the two values in place of a root: by concavity it errs on the safe side.
    """
    theta = jnp.ones(state.shape[1:])
    for number, kept in enumerate(quantities(safe)):
        found = quantities(safe + theta * (state - safe))[number]
        floor = least * jnp.maximum(kept, 0.0)
        low = found < floor
        part = jnp.where(low, (kept - floor) / jnp.where(low, kept - found, 1.0), 1.0)
        theta = theta * jnp.clip(part, 0.0, 1.0)
    return theta


def pulled(quantities: Quantities, safe: Array, state: Array, least: float = LEAST_IN_CELL) -> Array:
    """The state, pulled toward the safe one as far as needed."""
    return safe + toward(quantities, safe, state, least) * (state - safe)


def blended(quantities: Quantities, cells: tuple[Array, Array], fluxes: tuple[Array, Array], factor: Array) -> Array:
    """The flux through a face: the accurate one, mixed with the first-order one where a cell would lose too much.

    `cells`: averages below and above; `fluxes`: (first order, accurate). An average is the mean of parts, one per
    face, each changed by `factor` (time step / length of the cell / weight of the part) times one flux, so that
    positive parts make a positive average. X. Y. Hu, N. A. Adams, C.-W. Shu, J. Comput. Phys. 242 (2013) 169, sec. 3.
    """
    first, accurate = fluxes
    sides = jnp.stack([-factor * jnp.ones(first.shape[1:]), factor * jnp.ones(first.shape[1:])])
    both = jnp.stack(cells, axis=1)
    safe, state = both + sides * first[:, None], both + sides * accurate[:, None]
    theta = jnp.min(toward(quantities, safe, state, LEAST_LEFT), axis=0)
    return first + theta * (accurate - first)
