"""The inviscid Burgers equation."""

from __future__ import annotations

from typing import Any, ClassVar

import jax.numpy as jnp

from sciml.calculus.base import Calculus
from sciml.equations.base import Field, equation, parameter
from sciml.equations.conservation import ConservationLaw
from sciml.registry import register


@register("equation", "inviscid_burgers")
@equation
class InviscidBurgers(ConservationLaw):
    """Inviscid Burgers equation, u_t + a sum_i (u^2/2)_(x_i) = 0.

    Symbols: u [m/s] velocity, a [1] steepening.
    What you should see: falling slopes become shocks after 1/(a max(-u_x)); a shock between l and r moves at
    a (l + r)/2; the mean stays, the integral of u^2 falls at shocks.
    Good values: a = 1, |u| about 1 on the unit box, 100 cells or more, method finite_volume.
    Limits: the viscous Burgers equation tends to it as nu goes to 0; a = 0 leaves the initial field unchanged.
    Source: R. J. LeVeque, Finite Volume Methods for Hyperbolic Problems (2002), sec. 11.3-11.4.
    """

    fields: ClassVar[tuple[Field, ...]] = (Field("u", unit="m/s"),)
    steepening: float = parameter(1.0, unit="1", doc="factor of the flux u^2/2")

    def flux(self, u: Any, d: Calculus[Any]) -> dict[str, tuple[Any, ...]]:
        """a u^2/2 along every axis."""
        return {"u": (0.5 * self.steepening * (u.u * u.u),) * d.dim}

    def max_speed(self, u: Any, axis: int, d: Calculus[Any]) -> Any:
        """|a u|."""
        del axis
        return d.map(jnp.abs, self.steepening * u.u)

    def invariants(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """The mean."""
        del d
        return {"momentum": u.u}
