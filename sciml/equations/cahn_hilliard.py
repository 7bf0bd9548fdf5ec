"""The Cahn-Hilliard equation."""

from __future__ import annotations

from typing import Any, ClassVar

from sciml.calculus.base import Calculus, total
from sciml.equations.base import Evolution, Field, equation, parameter
from sciml.registry import register


@register("equation", "cahn_hilliard")
@equation
class CahnHilliard(Evolution):
    """Cahn-Hilliard equation, u_t = M lap (u^3 - u - g lap u).

    Symbols: u [1] difference of two concentrations, M [m^2/s] mobility, g [m^2] squared width of the interfaces.
    What you should see: a mixture separates within 4 g/M into a pattern of wave length 2 pi sqrt(2 g), whose regions of
        +1 and -1 then coarsen, the size growing as t^(1/3); the mean stays.
    Good values: M = 1, g = 1e-4 on the unit box with 128 points; an interface tanh(x/sqrt(2 g)) needs about 6 points.
    Limits: M = 0 leaves the initial field unchanged.
    Source: J. W. Cahn, J. E. Hilliard, J. Chem. Phys. 28 (1958) 258; J. W. Cahn, Acta Metall. 9 (1961) 795, eq. (10).
    """

    fields: ClassVar[tuple[Field, ...]] = (Field("u"),)
    mobility: float = parameter(1.0, unit="m^2/s", minimum=0.0, doc="mobility M")
    gradient_energy: float = parameter(1e-4, unit="m^2", minimum=0.0, doc="factor g of the gradient energy")

    def stiff(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """M lap (2 u - g lap u): as small deviations from -1 and +1 behave, so that any step is stable."""
        second = d.laplacian(u.u)
        return {"u": self.mobility * (2.0 * second) - self.mobility * self.gradient_energy * d.laplacian(second)}

    def flux(self, u: Any, d: Calculus[Any]) -> dict[str, tuple[Any, ...]]:
        """-M grad (u^3 - 3 u)."""
        rest = u.u * u.u * u.u - 3.0 * u.u
        return {"u": tuple(-self.mobility * slope for slope in d.gradient(rest))}

    def invariants(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """The mean."""
        del d
        return {"mass": u.u}

    def decreasing(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """The free energy (1 - u^2)^2/4 + g |grad u|^2/2."""
        well = 1.0 - u.u * u.u
        steepness = total([slope * slope for slope in (d.partial(u.u, axis) for axis in range(d.dim))])
        return {"free energy": 0.25 * (well * well) + 0.5 * self.gradient_energy * steepness}
