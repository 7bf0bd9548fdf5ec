"""Conservation laws: what a method for shocks has to know besides the flux."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from sciml.calculus.base import Calculus
from sciml.equations.base import Evolution


class Contact(NamedTuple):
    """How a fluid moves along one axis, from which a Riemann solver finds the contact between two states.

    `inertia`: mass per cell (density, depth), `velocity` along the axis, `pressure`: the force per area, and `push`:
    velocity -> what a unit of pressure adds to the flux of each field; fields left out get nothing. The flux of a
    field is velocity * field + pressure * push(velocity)[field].
    """

    inertia: Any
    velocity: Any
    pressure: Any
    push: Callable[[Any], Mapping[str, Any]]


class ConservationLaw(Evolution):
    """An evolution whose transport is read at the faces of cells, so that shocks move at the right speed.

    The text is that of an `Evolution`; transport stands in `flux`, or, if it is linear, as a divergence in `stiff`.
    Finite volumes also need `max_speed`. The other parts may be left out.
    """

    @abc.abstractmethod
    def max_speed(self, u: Any, axis: int, d: Calculus[Any]) -> Any:
        """The largest modulus of the speeds at which a small disturbance of the state travels along an axis."""

    def positive(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """Quantities by name that must not be negative, such as density and pressure; each one concave in the fields
        where those before it are positive."""
        del u, d
        return {}

    def contact(self, u: Any, axis: int, d: Calculus[Any]) -> Contact | None:
        """What moves with the fluid along an axis, None for a law without contacts."""
        del u, axis, d
        return None

    def reflect(self, axis: int) -> tuple[str, ...]:
        """The fields that change sign in a mirror at right angles to an axis, such as the momentum along it."""
        del axis
        return ()
