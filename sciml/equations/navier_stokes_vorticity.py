"""The incompressible Navier-Stokes equations in two dimensions, in vorticity form."""

from __future__ import annotations

from typing import Any, ClassVar

from sciml.calculus.base import Calculus
from sciml.equations.base import Evolution, Field, equation, is_zero, parameter
from sciml.registry import register


@register("equation", "navier_stokes_vorticity")
@equation
class NavierStokesVorticity(Evolution):
    """Incompressible flow in the plane, omega_t + div(u omega) = nu lap omega - mu omega + curl f, lap psi = -omega.

    The velocity is u = (psi_y, -psi_x), so omega = v_x - u_y: a positive vortex turns counter-clockwise. The transport
    is written (d_xx - d_yy)(u v) + d_xy(v^2 - u^2), which equals div(u omega) for this velocity and needs two products
    only. A force f = (f_1, f_2) enters as the source (f_2)_x - (f_1)_y of omega: Kolmogorov's f_1 = F sin(k y) as
    -F k cos(k y).

    Symbols: omega [1/s] vorticity, psi [m^2/s] stream function, nu [m^2/s] kinematic viscosity, mu [1/s] linear drag.
    What you should see: vortices of one sign merge, filaments between them are stretched and diffuse away; energy
    moves to large scales, enstrophy to small ones; without forcing both decay.
    Good values: nu from 1e-4 to 1e-2 on a box of length 1 or 2 pi with |omega| about 1; with Kolmogorov forcing of
    mode 4 a drag mu = 0.1 keeps the energy bounded.
    Limits: nu = mu = 0 is the Euler equation, which keeps energy and enstrophy; a flow in one direction that varies
    along the other alone obeys the heat equation. The mean of omega has no velocity on a periodic box: keep it zero.
    Source: C. Basdevant, J. Comput. Phys. 50 (1983) 209; P. G. Saffman, Vortex Dynamics (1992), sec. 1.1.
    """

    fields: ClassVar[tuple[Field, ...]] = (Field("omega", unit="1/s"),)
    auxiliary: ClassVar[tuple[Field, ...]] = (Field("psi", unit="m^2/s"),)
    dims: ClassVar[tuple[int, ...]] = (2,)
    typical: ClassVar[dict[str, tuple[float, float]]] = {"omega": (0.0, 1.0), "psi": (0.0, 0.6)}
    viscosity: float = parameter(0.01, unit="m^2/s", minimum=0.0, doc="kinematic viscosity")
    drag: float = parameter(0.0, unit="1/s", minimum=0.0, doc="linear (Ekman) friction")

    def potentials(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """lap psi = -omega."""
        del d
        return {"psi": -u.omega}

    def stiff(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """nu lap omega - mu omega."""
        return {"omega": self.viscosity * d.laplacian(u.omega) - self.drag * u.omega}

    def flux(self, u: Any, d: Calculus[Any]) -> dict[str, tuple[Any, ...]]:
        """((u v)_x + (v^2 - u^2)_y, -(u v)_y)."""
        first, second = d.partial(u.psi, 1), -d.partial(u.psi, 0)
        product = first * second
        difference = second * second - first * first
        return {"omega": (d.partial(product, 0) + d.partial(difference, 1), -d.partial(product, 1))}

    def invariants(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """Circulation; without viscosity and drag energy psi omega/2 and enstrophy omega^2/2."""
        del d
        circulation = {"circulation": u.omega}
        if not (is_zero(self.viscosity) and is_zero(self.drag)):
            return circulation if is_zero(self.drag) else {}
        return circulation | {"energy": 0.5 * (u.psi * u.omega), "enstrophy": 0.5 * (u.omega * u.omega)}

    def decreasing(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """Energy and enstrophy."""
        del d
        return {"energy": 0.5 * (u.psi * u.omega), "enstrophy": 0.5 * (u.omega * u.omega)}
