"""Linear advection."""

from __future__ import annotations

from typing import Any, ClassVar

from sciml.calculus.base import Calculus
from sciml.equations.base import Field, equation, parameter
from sciml.equations.conservation import ConservationLaw
from sciml.registry import register


@register("equation", "advection")
@equation
class Advection(ConservationLaw):
    """Linear advection, u_t + c sum_i u_(x_i) = 0, the same speed along every axis.

    Symbols: u [1] concentration, c [m/s] speed.
    What you should see: the initial field moves unchanged; on a periodic box of length L it returns after L/c.
    Good values: c from 0.1 to 10 on the unit box.
    Limits: c = 0 leaves the initial field unchanged.
    Source: R. J. LeVeque, Finite Volume Methods for Hyperbolic Problems (2002), eq. (2.4).
    """

    fields: ClassVar[tuple[Field, ...]] = (Field("u"),)
    speed: float = parameter(1.0, unit="m/s", doc="speed along each axis")

    def stiff(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """-c sum_i u_(x_i)."""
        return {"u": -self.speed * d.divergence((u.u,) * d.dim)}

    def max_speed(self, u: Any, axis: int, d: Calculus[Any]) -> Any:
        """|c|."""
        del u, axis, d
        return abs(self.speed)

    def invariants(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """The amount u, and u^2."""
        del d
        return {"mass": u.u, "square": u.u * u.u}
