"""Maxwell's equations in two dimensions, without charges and currents."""

from __future__ import annotations

from typing import Any, ClassVar

from sciml.calculus.base import Calculus
from sciml.equations.base import Evolution, Field, equation, parameter
from sciml.registry import register


@register("equation", "maxwell_tm")
@equation
class MaxwellTM(Evolution):
    """Maxwell's equations with the magnetic field in the plane: e E_t = Hy_x - Hx_y, m Hx_t = -E_y, m Hy_t = E_x.

    Symbols: E = ez [V/m] electric field across the plane, hx and hy [A/m] magnetic field, e [F/m] permittivity,
        m [H/m] permeability; waves run at 1/sqrt(e m).
    What you should see: rings of light with a sharp front; energy and the divergence of the magnetic field stay.
    Good values: e = m = 1 (speed 1) on the unit box; on periodic boxes the solution is exact whatever the step.
    Limits: eliminating H gives the wave equation of speed 1/sqrt(e m) for E.
    Source: J. D. Jackson, Classical Electrodynamics, 3rd ed., eqs. (6.6); A. Taflove, S. Hagness, Computational
        Electrodynamics (2005), eqs. (3.10).
    """

    fields: ClassVar[tuple[Field, ...]] = (Field("ez", unit="V/m"), Field("hx", unit="A/m"), Field("hy", unit="A/m"))
    dims: ClassVar[tuple[int, ...]] = (2,)
    permittivity: float = parameter(1.0, unit="F/m", above=0.0, doc="permittivity e")
    permeability: float = parameter(1.0, unit="H/m", above=0.0, doc="permeability m")

    def stiff(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """The curls."""
        curl = d.partial(u.hy, 0) - d.partial(u.hx, 1)
        return {
            "ez": 1.0 / self.permittivity * curl,
            "hx": -1.0 / self.permeability * d.partial(u.ez, 1),
            "hy": 1.0 / self.permeability * d.partial(u.ez, 0),
        }

    def invariants(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """Energy (e E^2 + m H^2)/2 and the square of div H."""
        charge = d.partial(u.hx, 0) + d.partial(u.hy, 1)
        magnetic = u.hx * u.hx + u.hy * u.hy
        energy = 0.5 * self.permittivity * (u.ez * u.ez) + 0.5 * self.permeability * magnetic
        return {"energy": energy, "squared divergence": charge * charge}


@register("equation", "maxwell_te")
@equation
class MaxwellTE(Evolution):
    """Maxwell's equations with the electric field in the plane: m H_t = Ex_y - Ey_x, e Ex_t = H_y, e Ey_t = -H_x.

    Symbols: H = hz [A/m] magnetic field across the plane, ex and ey [V/m] electric field, e [F/m] permittivity,
        m [H/m] permeability; waves run at 1/sqrt(e m).
    What you should see: as for `maxwell_tm`, with the parts of E and H exchanged.
    Good values: e = m = 1 (speed 1) on the unit box; on periodic boxes the solution is exact whatever the step.
    Limits: H = E, E = -H, e and m exchanged turns it into `maxwell_tm`.
    Source: J. D. Jackson, Classical Electrodynamics, 3rd ed., eqs. (6.6); A. Taflove, S. Hagness, Computational
        Electrodynamics (2005), eqs. (3.11).
    """

    fields: ClassVar[tuple[Field, ...]] = (Field("hz", unit="A/m"), Field("ex", unit="V/m"), Field("ey", unit="V/m"))
    dims: ClassVar[tuple[int, ...]] = (2,)
    permittivity: float = parameter(1.0, unit="F/m", above=0.0, doc="permittivity e")
    permeability: float = parameter(1.0, unit="H/m", above=0.0, doc="permeability m")

    def stiff(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """The curls."""
        curl = d.partial(u.ex, 1) - d.partial(u.ey, 0)
        return {
            "hz": 1.0 / self.permeability * curl,
            "ex": 1.0 / self.permittivity * d.partial(u.hz, 1),
            "ey": -1.0 / self.permittivity * d.partial(u.hz, 0),
        }

    def invariants(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """Energy (e E^2 + m H^2)/2 and the square of div E."""
        charge = d.partial(u.ex, 0) + d.partial(u.ey, 1)
        electric = u.ex * u.ex + u.ey * u.ey
        energy = 0.5 * self.permittivity * electric + 0.5 * self.permeability * (u.hz * u.hz)
        return {"energy": energy, "squared divergence": charge * charge}
