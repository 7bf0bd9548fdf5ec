"""How far the derivatives of an equation reach on a grid: what a rank must know of its neighbors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from sciml.calculus.base import Calculus, FieldArithmetic, total
from sciml.functions import Coefficient


@dataclass(frozen=True, eq=False)
class Reach(FieldArithmetic):
    """A field of which a value depends on unknowns up to `halves`/2 grid points away, in differences of `order`.

    `face` as for a `GridField`: the axis at whose midpoints it stands, None at the points.
    """

    order: int
    halves: int = 0
    face: int | None = None

    def moved(self, halves: int, face: int | None = None) -> Reach:
        """With a stencil more."""
        return Reach(self.order, self.halves + halves, face)

    def at_nodes(self) -> Reach:
        """Interpolated to the points if need be."""
        return self if self.face is None else self.moved(self.order - 1)

    def at_faces(self, axis: int) -> Reach:
        """Interpolated to the midpoints of an axis if need be."""
        return self if self.face == axis else self.at_nodes().moved(self.order - 1, axis)

    def combine(self, function: Callable[..., Any], *others: Any) -> Reach:
        """As far as the farthest, where a `GridField` would combine them."""
        del function
        fields = [self, *(other for other in others if isinstance(other, Reach))]
        faces = {field.face for field in fields} - {None}
        axis = faces.pop() if len(faces) == 1 else None
        placed = [field.at_nodes() if axis is None else field.at_faces(axis) for field in fields]
        return max(placed, key=lambda field: field.halves)

    def linear(self, function: Callable[..., Any], other: Any) -> Reach:
        """As far as the farther."""
        return self.combine(function, other)

    def scaled(self, factor: Any) -> Reach:
        """The same."""
        del factor
        return self


@final
class ReachReading(Calculus[Reach]):
    """The reading under which fields are `Reach`es, for finite differences of order 2 or 4."""

    def __init__(self, dim: int, order: int) -> None:
        self.dim, self._order = dim, order

    def field(self, values: Any) -> Reach:
        """Data."""
        return Reach(self._order)

    def values(self, u: Any) -> Any:
        """The reach."""
        return u

    def partial(self, u: Reach, axis: int, order: int = 1) -> Reach:
        """Derivatives above the second are repeated."""
        return u.at_nodes().moved((order + 1) // 2 * self._order)

    def dt(self, u: Reach) -> Reach:
        """Nothing."""
        return u

    def gradient(self, u: Reach) -> tuple[Reach, ...]:
        """To the midpoints."""
        return tuple(u.at_nodes().moved(self._order - 1, axis) for axis in range(self.dim))

    def divergence(self, flux: Sequence[Any]) -> Reach:
        """From the midpoints, or from the points."""
        return total([self._part(component, axis) for axis, component in enumerate(flux)])

    def _part(self, component: Any, axis: int) -> Reach:
        if not isinstance(component, Reach):
            return Reach(self._order)
        return component.moved(self._order - 1) if component.face == axis else self.partial(component, axis)

    def laplacian(self, u: Reach) -> Reach:
        """A second derivative."""
        return self.partial(u, 0, 2)

    def map(self, function: Callable[..., Any], *u: Reach) -> Reach:
        """As far as the farthest."""
        return u[0].combine(function, *u[1:])

    def sample(self, coefficient: Coefficient) -> Reach:
        """Data."""
        return Reach(self._order)

    @property
    def coordinates(self) -> tuple[Reach, ...]:
        """Data."""
        return (Reach(self._order),) * self.dim

    @property
    def time(self) -> Reach:
        """Data."""
        return Reach(self._order)


def reach_of(
    text: Callable[[dict[str, Any], Any], Mapping[str, Any]], names: Sequence[str], dim: int, order: int
) -> int:
    """The farthest neighbor, in points, that the terms of a text take, one at least."""
    terms = text({name: Reach(order) for name in names}, ReachReading(dim, order))
    halves = [term.at_nodes().halves for term in terms.values() if isinstance(term, Reach)]
    return max(1, -(-max(halves, default=0) // 2))
