"""FitzHugh-Nagumo reaction and diffusion."""

from __future__ import annotations

from typing import Any, ClassVar

from sciml.calculus.base import Calculus
from sciml.equations.base import Evolution, Field, equation, parameter
from sciml.registry import register


@register("equation", "fitzhugh_nagumo")
@equation
class FitzHughNagumo(Evolution):
    """FitzHugh-Nagumo, u_t = A lap u + r (u - u^3 - k - v), v_t = B lap v + r (u - v).

    Symbols: u [1] activator, v [1] inhibitor, A and B [m^2/s] their diffusivities, k [1] stimulus, r [1/s] rate.
    What you should see: noise smooths out and patches of high and low u remain, with v a blurred copy of them.
    Good values: A = 1e-3, B = 5e-3, k = 5e-3, r = 1 on [-1, 1]^2 with insulated faces, 5 s (the PDEBench set).
    Limits: r = 0 is a heat equation for each field.
    Source: G. A. Klaasen, W. C. Troy, SIAM J. Appl. Math. 44 (1984) 96; M. Takamoto et al., PDEBench (2022), sec. D.4.
    """

    fields: ClassVar[tuple[Field, ...]] = (Field("u"), Field("v"))
    activator_diffusivity: float = parameter(1e-3, unit="m^2/s", minimum=0.0, doc="diffusivity of u")
    inhibitor_diffusivity: float = parameter(5e-3, unit="m^2/s", minimum=0.0, doc="diffusivity of v")
    stimulus: float = parameter(5e-3, unit="1", doc="constant k subtracted from the reaction of u")
    rate: float = parameter(1.0, unit="1/s", minimum=0.0, doc="rate of both reactions")

    def stiff(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """Diffusion, and the decay of v."""
        return {
            "u": self.activator_diffusivity * d.laplacian(u.u),
            "v": self.inhibitor_diffusivity * d.laplacian(u.v) - self.rate * u.v,
        }

    def nonstiff(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """The rest of the reactions."""
        del d
        return {"u": self.rate * (u.u - u.u * u.u * u.u - u.v - self.stimulus), "v": self.rate * u.u}
