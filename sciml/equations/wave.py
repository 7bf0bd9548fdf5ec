"""The wave equation."""

from __future__ import annotations

from typing import Any, ClassVar

from sciml.calculus.base import Calculus, total
from sciml.equations.base import Evolution, Field, equation, parameter
from sciml.registry import register


@register("equation", "wave")
@equation
class Wave(Evolution):
    """Wave equation u_tt = c^2 lap u as a system of first order, u_t = v, v_t = c^2 lap u.

    Symbols: u [m] displacement, v [m/s] its velocity, c [m/s] speed of sound.
    What you should see: a bump at rest splits into two halves that run apart unchanged (1D), rings with a sharp
        front and a long tail (2D), shells (3D); energy is conserved.
    Good values: c = 1 on the unit box; on periodic boxes the solution is exact whatever the step.
    Limits: c = 0 leaves v unchanged and u grows as u_0 + v_0 t.
    Source: J. d'Alembert, Hist. Acad. Berlin 3 (1747) 214; L. C. Evans, Partial Differential Equations, sec. 2.4.
    """

    fields: ClassVar[tuple[Field, ...]] = (Field("u", unit="m"), Field("v", unit="m/s"))
    speed: float = parameter(1.0, unit="m/s", minimum=0.0, doc="speed of sound")

    def stiff(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """v, and c^2 lap u."""
        return {"u": u.v, "v": self.speed * self.speed * d.laplacian(u.u)}

    def invariants(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """Momentum v and energy (v^2 + c^2 |grad u|^2)/2."""
        slopes = [d.partial(u.u, axis) for axis in range(d.dim)]
        strain = total([slope * slope for slope in slopes])
        return {"momentum": u.v, "energy": 0.5 * (u.v * u.v) + 0.5 * self.speed * self.speed * strain}
