"""Finite differences on a slab, with the rows of the neighbors that its derivatives reach."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from sciml.boundary import Boundary, Condition
from sciml.calculus import FiniteDifference
from sciml.calculus.finite_difference import unknown_points
from sciml.domain import Box
from sciml.solvers.decomposed.part import Part, inner
from sciml.solvers.spaces import Text
from sciml.types import Array

FIRST_AXIS = "x"


@final
class HaloSpace:
    """States are the values at all points of a slab, shape (fields, rows, ...), zero where conditions fix them.

    A text is read on the slab and `width` rows of each neighbor; what is not a face of the box ends there in rows whose
    values are given, and all that is spoiled by this is cut off again.
    """

    def __init__(self, part: Part, names: tuple[str, ...], boundary: Boundary, order: int, width: int) -> None:
        self.grid, self.names, self.boundary, self.order, self.width = part, names, boundary, order, width
        self.framed = Part(part.whole, part.over, part.first - width, part.shape[0] + 2 * width)
        self._is_ring = part.whole.box.periodic[0]
        self._unknown = self._fixed_is_zero()

    @property
    def is_modal(self) -> bool:
        """Never."""
        return False

    def encode(self, values: Any) -> Array:
        """Zero where conditions fix the values."""
        return values * self._unknown

    def decode(self, y: Array, t: Any) -> Array:
        """The values everywhere, those on the faces included."""
        return self._cut(self._on_slab(y, t, lambda d, fields: [fields[name].at_nodes() for name in self.names]))

    def read(self, text: Text, y: Array, t: Any) -> Array:
        """Evaluate on the slab and its halo."""

        def terms(d: FiniteDifference, fields: dict[str, Any]) -> list[Any]:
            found = text(fields, d)
            return [jnp.broadcast_to(d.values(found.get(name, 0.0)), d.grid.shape) for name in self.names]

        return self.encode(self._cut(self._on_slab(y, t, terms)))

    def settled(self, y: Array) -> Array:
        """The state itself."""
        return y

    def total(self, value: Array) -> Array:
        """The sum over the ranks."""
        return self.grid.over.total(value)

    def _fixed_is_zero(self) -> Array:
        """One at the unknowns of this slab, zero at the points that conditions fix."""
        ones = []
        whole = self.grid.whole
        for inside, n in zip(unknown_points(whole, self.boundary, self.order), whole.shape, strict=True):
            axis = np.zeros(n)
            axis[inside] = 1.0
            ones.append(axis)
        ones[0] = jnp.take(jnp.asarray(ones[0]), self.grid.rows)
        shaped = (a.reshape([-1 if i == place else 1 for i in range(whole.dim)]) for place, a in enumerate(ones))
        product: Any = 1.0
        for axis in shaped:
            product = product * axis
        return product

    def _cut(self, values: Array) -> Array:
        return lax.slice_in_dim(values, self.width, self.width + self.grid.shape[0], axis=1)

    def _on_slab(self, y: Array, t: Any, made: Callable[..., list[Any]]) -> Array:
        """What `made` makes of calculus and fields, with `width` rows more on each side, of which those are right that
        are not less than `width` from an end."""
        before, after = self.grid.over.shift(y[:, : self.width], y[:, y.shape[1] - self.width :])
        rows = jnp.concatenate([before, y, after], axis=1)
        size, rank = self.grid.over.size, self.grid.over.rank
        if self._is_ring:
            return self._evaluated(False, False, rows, t, made)
        if size == 1:
            return self._evaluated(True, True, rows, t, made)
        cases = [
            lambda rows, first=first, last=last: self._evaluated(first, last, rows, t, made)
            for first, last in ((True, False), (False, False), (False, True))
        ]
        if isinstance(rank, jax.Array):
            return lax.switch(jnp.where(rank == 0, 0, jnp.where(rank == size - 1, 2, 1)), cases, rows)
        return cases[0 if rank == 0 else 2 if rank == size - 1 else 1](rows)

    def _evaluated(self, first: bool, last: bool, rows: Array, t: Any, made: Callable[..., list[Any]]) -> Array:
        """With the lower face of the box if `first`, the upper one if `last`; rows beyond are not looked at."""
        low, high = 0 if not first else self.width, rows.shape[1] - (self.width if last else 0)
        inside = lax.slice_in_dim(rows, low, high, axis=1)
        part: Any = inner(self.framed, low, high, _with_faces(self.grid.box))
        d = FiniteDifference(part, self._conditions(inside, first, last), self.order, time=t)
        values = jnp.stack(made(d, {name: d.state(inside[i], name) for i, name in enumerate(self.names)}))
        return jnp.pad(values, [(0, 0), (low, rows.shape[1] - high)] + [(0, 0)] * (values.ndim - 2))

    def _conditions(self, values: Array, first: bool, last: bool) -> dict[str, Any]:
        """The conditions of the box on its faces, and on the others the values that are there."""
        conditions = {face: c for face, c in self.boundary.items() if face[0] != FIRST_AXIS}
        for side, is_real, edge in (("-", first, 0), ("+", last, -1)):
            face = FIRST_AXIS + side
            given = {name: Condition(values[i, edge]) for i, name in enumerate(self.names)}
            conditions[face] = self.boundary[face] if is_real else given
        return conditions


def _with_faces(box: Box) -> Box:
    return dataclasses.replace(box, periodic=(False, *box.periodic[1:]))
