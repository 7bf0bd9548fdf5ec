"""The heat equation."""

from __future__ import annotations

from typing import Any, ClassVar

from sciml.calculus.base import Calculus
from sciml.equations.base import Evolution, Field, equation, parameter
from sciml.registry import register


@register("equation", "heat")
@equation
class Heat(Evolution):
    """Heat equation, u_t = D lap u.

    Symbols: u [K] temperature, D [m^2/s] diffusivity.
    What you should see: every Fourier mode k decays as exp(-D |k|^2 t); the mean is conserved on a periodic box.
    Good values: D from 0.001 to 0.1 on the unit box with a horizon of 1 s.
    Limits: D = 0 leaves the initial field unchanged.
    Source: J. Fourier, Theorie analytique de la chaleur (1822); L. C. Evans, Partial Differential Equations, sec. 2.3.
    """

    fields: ClassVar[tuple[Field, ...]] = (Field("u", unit="K"),)
    diffusivity: float = parameter(0.01, unit="m^2/s", minimum=0.0, doc="thermal diffusivity")

    def stiff(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """D lap u."""
        return {"u": self.diffusivity * d.laplacian(u.u)}

    def invariants(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """The heat, u itself."""
        del d
        return {"heat": u.u}

    def decreasing(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """u^2."""
        del d
        return {"square": u.u * u.u}
