"""Equations that only tests need: coupled, and growing without bound."""

from __future__ import annotations

from sciml.equations import Evolution, Field, equation, parameter


@equation
class Predation(Evolution):
    """Two coupled fields: u_t = a lap u + u - u v, v_t = b lap v - v + u v."""

    fields = (Field("u"), Field("v"))
    prey: float = parameter(0.1)
    hunter: float = parameter(0.05)

    def stiff(self, u, d):
        return {"u": self.prey * d.laplacian(u.u), "v": self.hunter * d.laplacian(u.v)}

    def nonstiff(self, u, d):
        return {"u": u.u - u.u * u.v, "v": u.u * u.v - u.v}


@equation
class Explosion(Evolution):
    """u_t = r u^2: u = 1/(1/u_0 - r t) is infinite at t = 1/(r u_0)."""

    fields = (Field("u"),)
    rate: float = parameter(1.0)

    def nonstiff(self, u, d):
        return {"u": self.rate * u.u * u.u}
