"""The nonlinear Schroedinger equation."""

from __future__ import annotations

from typing import Any, ClassVar

from sciml.calculus.base import Calculus, total
from sciml.equations.base import Evolution, Field, equation, parameter
from sciml.registry import register


@register("equation", "schroedinger")
@equation
class Schroedinger(Evolution):
    """Nonlinear Schroedinger equation, i p_t + D lap p + g |p|^2 p = 0.

    Symbols: p [1] wave function, as its real and imaginary parts, D [m^2/s] dispersion, g [1/s] focusing.
    What you should see: g > 0 in 1D: solitons sech(x sqrt(g/(2 D))) exp(i g t/2) that keep their form, and breathing
        bound states; g < 0: dark solitons and spreading; |p|^2 is conserved in total.
    Good values: D = 0.5, g = 1 on [-5, 5] with p_0 = 2 sech x (the PINN benchmark), 256 points, steps of 0.002.
    Limits: g = 0 is the free Schroedinger equation, each mode turning as exp(-i D |k|^2 t); g > 0 collapses in finite
        time in 2D and 3D if the total |p|^2 is large.
    Source: V. E. Zakharov, A. B. Shabat, Sov. Phys. JETP 34 (1972) 62, eq. (1).
    """

    fields: ClassVar[tuple[Field, ...]] = (Field("real"), Field("imaginary"))
    dispersion: float = parameter(0.5, unit="m^2/s", doc="factor D of the Laplacian")
    focusing: float = parameter(1.0, unit="1/s", doc="factor g of |p|^2; negative is defocusing")

    def stiff(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """i D lap p."""
        return {
            "real": -self.dispersion * d.laplacian(u.imaginary),
            "imaginary": self.dispersion * d.laplacian(u.real),
        }

    def nonstiff(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """i g |p|^2 p."""
        del d
        square = self.focusing * (u.real * u.real + u.imaginary * u.imaginary)
        return {"real": -square * u.imaginary, "imaginary": square * u.real}

    def invariants(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """Mass |p|^2, energy D |grad p|^2 - g |p|^4/2, and momentum Im(p* grad p) along each axis."""
        square = u.real * u.real + u.imaginary * u.imaginary
        slopes = [(d.partial(u.real, axis), d.partial(u.imaginary, axis)) for axis in range(d.dim)]
        steepness = total([a * a + b * b for a, b in slopes])
        momenta = {f"momentum {'xyz'[i]}": u.real * b - u.imaginary * a for i, (a, b) in enumerate(slopes)}
        energy = self.dispersion * steepness - 0.5 * self.focusing * (square * square)
        return {"mass": square, "energy": energy, **momenta}
