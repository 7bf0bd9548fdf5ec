"""The incompressible Navier-Stokes equations for the velocity, with the pressure as a potential."""

from __future__ import annotations

from typing import Any, ClassVar

from sciml.calculus.base import Calculus, total
from sciml.equations.base import Evolution, Field, equation, is_zero, parameter
from sciml.registry import register

PRESSURE = Field("p", unit="m^2/s^2")


@register("equation", "navier_stokes_2d")
@equation
class NavierStokes2D(Evolution):
    """Incompressible flow in the plane, u_t + div(u u) + grad p = nu lap u - mu u + f, div u = 0.

    The pressure solves lap p = -div div(u u) + div f, which keeps div u = 0: on a periodic box with Fourier series
    this is the Leray projection, exactly. Of an initial velocity the part without divergence is taken.

    Symbols: u, v [m/s] velocity, p [m^2/s^2] pressure over density, nu [m^2/s] viscosity, mu [1/s] linear drag, f
    [m/s^2] force, a source of u and v.
    What you should see: vortices that are carried, merge and decay; the divergence stays at rounding.
    Good values: nu from 1e-3 to 1e-1 on a box of length 2 pi with speeds about 1.
    Limits: nu = mu = 0 is the Euler equation, which keeps the energy; the curl obeys `navier_stokes_vorticity`.
    Source: A. J. Chorin, J. E. Marsden, A Mathematical Introduction to Fluid Mechanics (1993), sec. 1.3.
    """

    fields: ClassVar[tuple[Field, ...]] = (Field("u", unit="m/s"), Field("v", unit="m/s"))
    auxiliary: ClassVar[tuple[Field, ...]] = (PRESSURE,)
    dims: ClassVar[tuple[int, ...]] = (2,)
    viscosity: float = parameter(0.01, unit="m^2/s", minimum=0.0, doc="kinematic viscosity")
    drag: float = parameter(0.0, unit="1/s", minimum=0.0, doc="linear (Ekman) friction")

    def potentials(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """lap p = -div div(u u)."""
        return {"p": -_twice_divergence((u.u, u.v), d)}

    def source_potentials(self, source: Any, d: Calculus[Any]) -> dict[str, Any]:
        """The divergence of the force."""
        return {"p": d.divergence((source.u, source.v))}

    def stiff(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """nu lap u - mu u."""
        return _friction({"u": u.u, "v": u.v}, self.viscosity, self.drag, d)

    def nonstiff(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """-grad p."""
        return {"u": -d.partial(u.p, 0), "v": -d.partial(u.p, 1)}

    def flux(self, u: Any, d: Calculus[Any]) -> dict[str, tuple[Any, ...]]:
        """u u."""
        del d
        return dict(zip(("u", "v"), _products((u.u, u.v)), strict=True))

    def start(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """The part of the initial velocity without divergence."""
        return _projected({"u": u.u, "v": u.v}, d)

    def invariants(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """Momentum without drag, energy without viscosity and drag."""
        del d
        return _conserved({"u": u.u, "v": u.v}, self.viscosity, self.drag)

    def decreasing(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """Energy."""
        del d
        return {"energy": _energy((u.u, u.v))}


@register("equation", "navier_stokes_3d")
@equation
class NavierStokes3D(Evolution):
    """Incompressible flow in space, u_t + div(u u) + grad p = nu lap u - mu u + f, div u = 0.

    The pressure solves lap p = -div div(u u) + div f, which keeps div u = 0: on a periodic box with Fourier series
    this is the Leray projection, exactly. Of an initial velocity the part without divergence is taken.

    Symbols: u, v, w [m/s] velocity, p [m^2/s^2] pressure over density, nu [m^2/s] viscosity, mu [1/s] linear drag, f
    [m/s^2] force, a source of u, v and w.
    What you should see: vortex tubes stretch and break up; the energy E falls at the rate 2 nu times the enstrophy,
    at first slowly, then fastest when the smallest scales have formed.
    Good values: nu = 1/100 to 1/1600 for the Taylor-Green vortex on a box of length 2 pi, 64 to 512 points per axis.
    Limits: nu = mu = 0 is the Euler equation; Beltrami flows, whose curl is parallel to them, decay as exp(-nu k^2 t).
    Source: A. J. Chorin, J. E. Marsden, A Mathematical Introduction to Fluid Mechanics (1993), sec. 1.3;
    M. E. Brachet et al., J. Fluid Mech. 130 (1983) 411, eq. (1.1).
    """

    fields: ClassVar[tuple[Field, ...]] = (Field("u", unit="m/s"), Field("v", unit="m/s"), Field("w", unit="m/s"))
    auxiliary: ClassVar[tuple[Field, ...]] = (PRESSURE,)
    dims: ClassVar[tuple[int, ...]] = (3,)
    viscosity: float = parameter(0.01, unit="m^2/s", minimum=0.0, doc="kinematic viscosity")
    drag: float = parameter(0.0, unit="1/s", minimum=0.0, doc="linear friction")

    def potentials(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """lap p = -div div(u u)."""
        return {"p": -_twice_divergence((u.u, u.v, u.w), d)}

    def source_potentials(self, source: Any, d: Calculus[Any]) -> dict[str, Any]:
        """The divergence of the force."""
        return {"p": d.divergence((source.u, source.v, source.w))}

    def stiff(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """nu lap u - mu u."""
        return _friction({"u": u.u, "v": u.v, "w": u.w}, self.viscosity, self.drag, d)

    def nonstiff(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """-grad p."""
        return {"u": -d.partial(u.p, 0), "v": -d.partial(u.p, 1), "w": -d.partial(u.p, 2)}

    def flux(self, u: Any, d: Calculus[Any]) -> dict[str, tuple[Any, ...]]:
        """u u."""
        del d
        return dict(zip(("u", "v", "w"), _products((u.u, u.v, u.w)), strict=True))

    def start(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """The part of the initial velocity without divergence."""
        return _projected({"u": u.u, "v": u.v, "w": u.w}, d)

    def invariants(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """Momentum without drag, energy without viscosity and drag."""
        del d
        return _conserved({"u": u.u, "v": u.v, "w": u.w}, self.viscosity, self.drag)

    def decreasing(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """Energy."""
        del d
        return {"energy": _energy((u.u, u.v, u.w))}


def _products(velocity: tuple[Any, ...]) -> tuple[tuple[Any, ...], ...]:
    """u_i u_j; the symmetric ones are one and the same field."""
    n = len(velocity)
    upper = {(i, j): velocity[i] * velocity[j] for i in range(n) for j in range(i, n)}
    return tuple(tuple(upper[min(i, j), max(i, j)] for j in range(n)) for i in range(n))


def _twice_divergence(velocity: tuple[Any, ...], d: Calculus[Any]) -> Any:
    return d.divergence([d.divergence(row) for row in _products(velocity)])


def _friction(velocity: dict[str, Any], viscosity: Any, drag: Any, d: Calculus[Any]) -> dict[str, Any]:
    return {name: viscosity * d.laplacian(u) - drag * u for name, u in velocity.items()}


def _projected(velocity: dict[str, Any], d: Calculus[Any]) -> dict[str, Any]:
    potential = d.inverse_laplacian(d.divergence(tuple(velocity.values())))
    return {name: u - d.partial(potential, axis) for axis, (name, u) in enumerate(velocity.items())}


def _energy(velocity: tuple[Any, ...]) -> Any:
    return 0.5 * total([u * u for u in velocity])


def _conserved(velocity: dict[str, Any], viscosity: Any, drag: Any) -> dict[str, Any]:
    if not is_zero(drag):
        return {}
    momenta = {f"momentum of {name}": u for name, u in velocity.items()}
    return momenta | ({"energy": _energy(tuple(velocity.values()))} if is_zero(viscosity) else {})
