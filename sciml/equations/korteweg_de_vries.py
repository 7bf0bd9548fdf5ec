"""The Korteweg-de Vries equation."""

from __future__ import annotations

from typing import Any, ClassVar

from sciml.calculus.base import Calculus
from sciml.equations.base import Evolution, Field, equation, parameter
from sciml.registry import register


@register("equation", "korteweg_de_vries")
@equation
class KortewegDeVries(Evolution):
    """Korteweg-de Vries equation, u_t + a (u^2/2)_x + b u_xxx = 0.

    Symbols: u [m/s] elevation times the nonlinearity, a [1] steepening, b [m^3/s] dispersion.
    What you should see: a hump breaks into solitons, the tallest in front; they pass through each other and come out
        unchanged but for a shift.
    Good values: a = 6, b = 1 (the usual form) on a box of length 40 with 256 points; a soliton of speed c has the
        height c/2 and the width 2/sqrt(c).
    Limits: b = 0 is the inviscid Burgers equation (with a = 1); a = 0 is linear dispersion.
    Source: D. J. Korteweg, G. de Vries, Phil. Mag. 39 (1895) 422; C. S. Gardner, J. M. Greene, M. D. Kruskal,
        R. M. Miura, Phys. Rev. Lett. 19 (1967) 1095, eq. (1).
    """

    fields: ClassVar[tuple[Field, ...]] = (Field("u", unit="m/s"),)
    dims: ClassVar[tuple[int, ...]] = (1,)
    steepening: float = parameter(6.0, unit="1", doc="factor of the nonlinear term")
    dispersion: float = parameter(1.0, unit="m^3/s", doc="factor of the third derivative")

    def stiff(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """-b u_xxx."""
        return {"u": -self.dispersion * d.partial(u.u, 0, 3)}

    def flux(self, u: Any, d: Calculus[Any]) -> dict[str, tuple[Any, ...]]:
        """a u^2/2."""
        del d
        return {"u": (0.5 * self.steepening * (u.u * u.u),)}

    def invariants(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """Mass u, momentum u^2 and energy a u^3/6 - b u_x^2/2."""
        slope = d.partial(u.u, 0)
        cube = u.u * u.u * u.u
        return {
            "mass": u.u,
            "momentum": u.u * u.u,
            "energy": self.steepening / 6 * cube - 0.5 * self.dispersion * (slope * slope),
        }
