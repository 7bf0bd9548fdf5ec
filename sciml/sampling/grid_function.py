"""Values on a grid as a function of a point."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.ndimage import map_coordinates

from sciml.domain import Grid
from sciml.errors import ConfigError
from sciml.types import Array, Float


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class GridFunction:
    """Linear interpolation along every axis between values on a grid, shape (*grid.shape); exact at its points.

    Periodic axes wrap around; beyond a bounded end the value there holds. Its first derivative jumps at the grid
    points, which limits residuals at points to first order. Raises `ConfigError` unless the shapes agree.
    """

    grid: Grid = field(metadata={"static": True})
    values: Any

    def __post_init__(self) -> None:
        shape = getattr(self.values, "shape", None)  # placeholders of jax's tree functions have none
        if shape is not None and tuple(shape[-self.grid.dim :]) != self.grid.shape:
            raise ConfigError("the values do not stand on the grid", expected=self.grid.shape, got=tuple(shape))

    def __call__(self, x: Float[Array, " dim"]) -> Any:
        """The value at one point x."""
        box, first = self.grid.box, np.asarray([axis[0] for axis in self.grid.axes])
        places = (x - first) / np.asarray(self.grid.spacing)
        wrapped = [
            jnp.mod(p, n) if periodic else jnp.clip(p, 0, n - 1)
            for p, n, periodic in zip(places, self.grid.shape, box.periodic, strict=True)
        ]
        widths = [(0, 1) if periodic else (0, 0) for periodic in box.periodic]
        return map_coordinates(jnp.pad(jnp.asarray(self.values), widths, mode="wrap"), wrapped, order=1)
