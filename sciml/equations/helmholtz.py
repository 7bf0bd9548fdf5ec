"""The Helmholtz equation."""

from __future__ import annotations

from typing import Any, ClassVar

from sciml.calculus.base import Calculus
from sciml.equations.base import Field, Steady, equation, parameter
from sciml.functions import Coefficient
from sciml.registry import register


@register("equation", "helmholtz")
@equation
class Helmholtz(Steady):
    """Helmholtz equation, lap u + k^2 u = -f: a sound field of one frequency.

    Symbols: u [Pa] sound pressure, k [1/m] wave number (angular frequency over speed of sound), f [Pa/m^2] source.
    What you should see: waves of length 2 pi/k; the nearer k^2 is to an eigenvalue of -lap, the larger u.
    Good values: k below 10 on the unit box with 10 points per wavelength and more, since the error grows like k^3 h^2.
    Limits: k = 0 is the Poisson equation; at a resonance there is no solution, which is refused by name.
    Source: P. M. Morse, K. U. Ingard, Theoretical Acoustics (1968), eq. (7.1.1).
    """

    fields: ClassVar[tuple[Field, ...]] = (Field("u", unit="Pa"),)
    wavenumber: Coefficient = parameter(2.0, unit="1/m", doc="wave number k, angular frequency over speed of sound")
    forcing: Coefficient = parameter(1.0, unit="Pa/m^2", doc="source f")

    def residual(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """-lap u - k^2 u - f."""
        k = d.sample(self.wavenumber)
        return {"u": -d.laplacian(u.u) - (k * k) * u.u - d.sample(self.forcing)}
