"""The complex Ginzburg-Landau equation."""

from __future__ import annotations

from typing import Any, ClassVar

from sciml.calculus.base import Calculus
from sciml.equations.base import Evolution, Field, equation, parameter
from sciml.registry import register


@register("equation", "ginzburg_landau")
@equation
class GinzburgLandau(Evolution):
    """Complex Ginzburg-Landau equation, A_t = m A + D (1 + i b) lap A - g (1 + i c) |A|^2 A.

    Symbols: A [1] amplitude, as its real and imaginary parts, m [1/s] growth rate, D [m^2/s] diffusivity,
        g [1/s] saturation, b [1] linear and c [1] nonlinear dispersion.
    What you should see: spirals and plane waves for b c > -1; for 1 + b c < 0 all plane waves are unstable and
        phase or defect turbulence sets in.
    Good values: m = D = g = 1 on a box of length 100 and more with 2 points per unit; b = 0, c = 1.5 spirals;
        b = 2, c = -1 defect turbulence.
    Limits: m = g = b = 0 is a heat equation for each part; m = 0 with large b and c tends to the Schroedinger equation.
    Source: I. S. Aranson, L. Kramer, Rev. Mod. Phys. 74 (2002) 99, eq. (1).
    """

    fields: ClassVar[tuple[Field, ...]] = (Field("real"), Field("imaginary"))
    growth: float = parameter(1.0, unit="1/s", doc="linear growth rate m")
    diffusivity: float = parameter(1.0, unit="m^2/s", minimum=0.0, doc="diffusivity D")
    saturation: float = parameter(1.0, unit="1/s", minimum=0.0, doc="saturation g")
    linear_dispersion: float = parameter(0.0, unit="1", doc="imaginary part b over the real part of the diffusion")
    nonlinear_dispersion: float = parameter(1.5, unit="1", doc="imaginary part c over the real part of the saturation")

    def stiff(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """m A + D (1 + i b) lap A."""
        real, imaginary = self.diffusivity * d.laplacian(u.real), self.diffusivity * d.laplacian(u.imaginary)
        b = self.linear_dispersion
        return {
            "real": self.growth * u.real + real - b * imaginary,
            "imaginary": self.growth * u.imaginary + imaginary + b * real,
        }

    def nonstiff(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """-g (1 + i c) |A|^2 A."""
        del d
        square = u.real * u.real + u.imaginary * u.imaginary
        real, imaginary = square * u.real, square * u.imaginary
        c = self.nonlinear_dispersion
        return {
            "real": -self.saturation * (real - c * imaginary),
            "imaginary": -self.saturation * (imaginary + c * real),
        }
