"""Darcy flow through a porous medium."""

from __future__ import annotations

from typing import Any, ClassVar

from sciml.calculus.base import Calculus
from sciml.equations.base import Field, Steady, equation, parameter
from sciml.functions import Coefficient
from sciml.registry import register


@register("equation", "darcy")
@equation
class Darcy(Steady):
    """Steady Darcy flow, -div(a grad u) = f.

    Symbols: u [Pa] pressure, a [m^2/(Pa s)] permeability over viscosity, f [1/s] injection rate per volume.
    What you should see: pressure builds up where a is small; the flux -a grad u is continuous.
    Good values: a between 0.1 and 10, f = 1 on the unit box; media of two materials, 12 and 3, or 0.1 and 1.
    Limits: a constant is the Poisson equation with f/a. Where a jumps, differences of order 2 are right (harmonic
    means between the grid points; place jumps midway between them), those of order 4 are not.
    Source: J. Bear, Dynamics of Fluids in Porous Media (1972), eq. (5.2.4) with H. Darcy's law.
    """

    fields: ClassVar[tuple[Field, ...]] = (Field("u", unit="Pa"),)
    permeability: Coefficient = parameter(1.0, unit="m^2/(Pa s)", above=0.0, doc="permeability over viscosity, a")
    forcing: Coefficient = parameter(1.0, unit="1/s", doc="injection rate f")

    def residual(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """-div(a grad u) - f."""
        a = d.sample(self.permeability)
        return {"u": -d.divergence(tuple(a * slope for slope in d.gradient(u.u))) - d.sample(self.forcing)}
