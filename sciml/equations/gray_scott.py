"""The Gray-Scott model."""

from __future__ import annotations

from typing import Any, ClassVar

from sciml.calculus.base import Calculus
from sciml.equations.base import Evolution, Field, equation, parameter
from sciml.registry import register


@register("equation", "gray_scott")
@equation
class GrayScott(Evolution):
    """Gray-Scott reaction and diffusion, u_t = A lap u - u v^2 + F (1 - u), v_t = B lap v + u v^2 - (F + k) v.

    Symbols: u [1] fuel, v [1] catalyst, A and B [m^2/s] their diffusivities, F [1/s] feed rate, k [1/s] kill rate.
    What you should see: a seed of v divides into spots, stripes, mazes or waves, depending on F and k.
    Good values: A = 0.16, B = 0.08 with points 1 m apart, or 2e-5 and 1e-5 on [-1, 1]^2; steps of 1 s, 10 000 s;
        (F, k) = (0.014, 0.054) moving spots, (0.029, 0.057) maze, (0.03, 0.062) spots, (0.058, 0.065) worms.
    Limits: v = 0 leaves diffusion and refilling, u -> 1; with A = B = 0 every point is an ODE of its own.
    Source: J. E. Pearson, Science 261 (1993) 189, eqs. (2); P. Gray, S. K. Scott, Chem. Eng. Sci. 39 (1984) 1087.
    """

    fields: ClassVar[tuple[Field, ...]] = (Field("u"), Field("v"))
    fuel_diffusivity: float = parameter(0.16, unit="m^2/s", minimum=0.0, doc="diffusivity of u")
    catalyst_diffusivity: float = parameter(0.08, unit="m^2/s", minimum=0.0, doc="diffusivity of v")
    feed: float = parameter(0.029, unit="1/s", minimum=0.0, doc="rate at which u is refilled and all is drained")
    kill: float = parameter(0.057, unit="1/s", minimum=0.0, doc="rate at which v is removed besides")

    def stiff(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """Diffusion and the linear losses."""
        return {
            "u": self.fuel_diffusivity * d.laplacian(u.u) - self.feed * u.u,
            "v": self.catalyst_diffusivity * d.laplacian(u.v) - (self.feed + self.kill) * u.v,
        }

    def nonstiff(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """F - u v^2 and u v^2."""
        del d
        reaction = u.u * u.v * u.v
        return {"u": self.feed - reaction, "v": reaction}
