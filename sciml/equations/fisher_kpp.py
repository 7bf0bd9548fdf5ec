"""The Fisher-KPP equation."""

from __future__ import annotations

from typing import Any, ClassVar

from sciml.calculus.base import Calculus, total
from sciml.equations.base import Evolution, Field, equation, parameter
from sciml.registry import register


@register("equation", "fisher_kpp")
@equation
class FisherKpp(Evolution):
    """Fisher's equation (Kolmogorov, Petrovsky, Piskunov), u_t = D lap u + r u (1 - u).

    Symbols: u [1] density over capacity, D [m^2/s] diffusivity, r [1/s] growth rate.
    What you should see: wherever u > 0 it grows to 1; the border moves at the speed 2 sqrt(r D) in the long run.
    Good values: D = 1e-3, r = 5 on the unit box; the front is about 5 sqrt(D/r) wide and needs 10 points.
    Limits: r = 0 is the heat equation; D = 0 is logistic growth, u = 1/(1 + (1/u_0 - 1) exp(-r t)).
    Source: R. A. Fisher, Ann. Eugenics 7 (1937) 355; M. J. Ablowitz, A. Zeppetella, Bull. Math. Biol. 41 (1979) 835.
    """

    fields: ClassVar[tuple[Field, ...]] = (Field("u"),)
    diffusivity: float = parameter(1e-3, unit="m^2/s", minimum=0.0, doc="diffusivity")
    rate: float = parameter(5.0, unit="1/s", minimum=0.0, doc="growth rate")

    def stiff(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """D lap u - r u: as small deviations from 1 behave."""
        return {"u": self.diffusivity * d.laplacian(u.u) - self.rate * u.u}

    def nonstiff(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """r u (2 - u)."""
        del d
        return {"u": self.rate * (2.0 * u.u - u.u * u.u)}

    def decreasing(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """D |grad u|^2/2 - r (u^2/2 - u^3/3), which the equation descends."""
        square = u.u * u.u
        steepness = total([slope * slope for slope in (d.partial(u.u, axis) for axis in range(d.dim))])
        return {"energy": 0.5 * self.diffusivity * steepness - self.rate * (0.5 * square - square * u.u / 3.0)}
