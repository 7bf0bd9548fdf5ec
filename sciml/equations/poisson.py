"""The Poisson equation."""

from __future__ import annotations

from typing import Any, ClassVar

from sciml.calculus.base import Calculus
from sciml.equations.base import Field, Steady, equation, parameter
from sciml.functions import Coefficient
from sciml.registry import register


@register("equation", "poisson")
@equation
class Poisson(Steady):
    """Poisson equation, -lap u = f.

    Symbols: u [V] potential, f [V/m^2] source density.
    What you should see: u is smoother than f; with f > 0 and u = 0 on the faces, u > 0 inside (maximum principle).
    Good values: f of order 1 on the unit box gives u of order 0.1.
    Limits: f = 0 gives a harmonic u; with periodic or all-Neumann faces f needs mean zero and u is fixed by its mean.
    Source: L. C. Evans, Partial Differential Equations, sec. 2.2, eq. (1).
    """

    fields: ClassVar[tuple[Field, ...]] = (Field("u", unit="V"),)
    forcing: Coefficient = parameter(1.0, unit="V/m^2", doc="source density f")

    def residual(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """-lap u - f."""
        return {"u": -d.laplacian(u.u) - d.sample(self.forcing)}
