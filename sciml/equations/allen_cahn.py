"""The Allen-Cahn equation."""

from __future__ import annotations

from typing import Any, ClassVar

from sciml.calculus.base import Calculus, total
from sciml.equations.base import Evolution, Field, equation, parameter
from sciml.registry import register


@register("equation", "allen_cahn")
@equation
class AllenCahn(Evolution):
    """Allen-Cahn equation, u_t = D lap u + r (u - u^3).

    Symbols: u [1] order parameter, D [m^2/s] diffusivity, r [1/s] reaction rate.
    What you should see: u separates into regions of +1 and -1 with fronts tanh(x sqrt(r/(2 D))), which then coarsen.
    Good values: D = 1e-4, r = 5 on [-1, 1] (the PINN benchmark); the front width is sqrt(2 D/r).
    Limits: r = 0 is the heat equation.
    Source: S. M. Allen, J. W. Cahn, Acta Metall. 27 (1979) 1085, eq. (11).
    """

    fields: ClassVar[tuple[Field, ...]] = (Field("u"),)
    diffusivity: float = parameter(1e-3, unit="m^2/s", minimum=0.0, doc="interface diffusivity")
    rate: float = parameter(5.0, unit="1/s", minimum=0.0, doc="reaction rate")

    def stiff(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """D lap u + r u."""
        return {"u": self.diffusivity * d.laplacian(u.u) + self.rate * u.u}

    def nonstiff(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """-r u^3."""
        del d
        return {"u": -self.rate * (u.u * u.u * u.u)}

    def decreasing(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """The free energy D |grad u|^2/2 + r (1 - u^2)^2/4, which the equation descends."""
        well = 1.0 - u.u * u.u
        steepness = total([slope * slope for slope in (d.partial(u.u, axis) for axis in range(d.dim))])
        return {"free energy": 0.5 * self.diffusivity * steepness + 0.25 * self.rate * (well * well)}
