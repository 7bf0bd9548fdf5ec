"""The viscous Burgers equation."""

from __future__ import annotations

from typing import Any, ClassVar

import jax.numpy as jnp

from sciml.calculus.base import Calculus
from sciml.equations.base import Field, equation, parameter
from sciml.equations.conservation import ConservationLaw
from sciml.registry import register


@register("equation", "burgers")
@equation
class Burgers(ConservationLaw):
    """Viscous Burgers equation, u_t + sum_i (u^2/2)_(x_i) = nu lap u.

    Symbols: u [m/s] velocity, nu [m^2/s] viscosity.
    What you should see: falling slopes steepen into shocks of width ~ nu/|jump| and decay; the mean stays.
    Good values: nu from 0.005 to 0.1 on the unit box with |u| about 1; about 10 grid points per shock width.
    Limits: nu = 0 is inviscid and needs a shock-capturing scheme after the first shock.
    Source: J. M. Burgers, Adv. Appl. Mech. 1 (1948) 171; exact solution by E. Hopf, CPAM 3 (1950) 201, eq. (7).
    """

    fields: ClassVar[tuple[Field, ...]] = (Field("u", unit="m/s"),)
    viscosity: float = parameter(0.01, unit="m^2/s", minimum=0.0, doc="kinematic viscosity")

    def stiff(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """nu lap u."""
        return {"u": self.viscosity * d.laplacian(u.u)}

    def flux(self, u: Any, d: Calculus[Any]) -> dict[str, tuple[Any, ...]]:
        """u^2/2 along every axis."""
        return {"u": (0.5 * (u.u * u.u),) * d.dim}

    def max_speed(self, u: Any, axis: int, d: Calculus[Any]) -> Any:
        """|u|."""
        del axis
        return d.map(jnp.abs, u.u)

    def invariants(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """The mean."""
        del d
        return {"momentum": u.u}
