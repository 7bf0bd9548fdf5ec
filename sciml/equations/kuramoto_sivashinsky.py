"""The Kuramoto-Sivashinsky equation."""

from __future__ import annotations

from typing import Any, ClassVar

from sciml.calculus.base import Calculus
from sciml.equations.base import Evolution, Field, equation, parameter
from sciml.registry import register


@register("equation", "kuramoto_sivashinsky")
@equation
class KuramotoSivashinsky(Evolution):
    """Kuramoto-Sivashinsky equation, u_t + (u^2/2)_x + a u_xx + b u_xxxx = 0.

    Symbols: u [m/s] slope of a flame front, a [m^2/s] anti-diffusion, b [m^4/s] hyper-diffusion.
    What you should see: waves of length 2 pi sqrt(2 b/a) grow at the rate a^2/(4 b) and become chaotic; the mean stays.
    Good values: a = b = 1 on a box of length 32 pi with 128 points or more and dt = 0.25.
    Limits: a box shorter than 2 pi sqrt(b/a) has no growing mode and u decays.
    Source: A.-K. Kassam, L. N. Trefethen, SIAM J. Sci. Comput. 26 (2005) 1214, eq. (3.2).
    """

    fields: ClassVar[tuple[Field, ...]] = (Field("u", unit="m/s"),)
    dims: ClassVar[tuple[int, ...]] = (1,)
    antidiffusion: float = parameter(1.0, unit="m^2/s", minimum=0.0, doc="destabilizing second-order term")
    hyperdiffusion: float = parameter(1.0, unit="m^4/s", above=0.0, doc="stabilizing fourth-order term")

    def stiff(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """-a u_xx - b u_xxxx."""
        return {"u": -self.antidiffusion * d.partial(u.u, 0, 2) - self.hyperdiffusion * d.partial(u.u, 0, 4)}

    def flux(self, u: Any, d: Calculus[Any]) -> dict[str, tuple[Any, ...]]:
        """u^2/2."""
        del d
        return {"u": (0.5 * (u.u * u.u),)}

    def invariants(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """The mean."""
        del d
        return {"mean": u.u}
