"""The compressible Euler equations of an ideal gas, in one and two dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import jax.numpy as jnp

from sciml.calculus.base import Calculus
from sciml.equations.base import Field, equation, parameter
from sciml.equations.conservation import ConservationLaw, Contact
from sciml.functions import Function, evaluate
from sciml.registry import register

MOMENTA = ("momentum_x", "momentum_y")
DENSITY, ENERGY = Field("density", unit="kg/m^3"), Field("energy", unit="J/m^3")


@register("equation", "euler_1d")
@equation
class Euler1D(ConservationLaw):
    """Euler equations of an ideal gas in 1D, rho_t + (rho v)_x = 0, (rho v)_t + (rho v^2 + p)_x = 0,
    E_t + ((E + p) v)_x = 0, with p = (gamma - 1)(E - rho v^2/2).

    Symbols: density rho [kg/m^3], momentum_x rho v [kg/(m^2 s)], energy E [J/m^3] per volume, gamma [1].
    What you should see: sound travels at v +- sqrt(gamma p/rho); jumps split into a shock or fan at either side of a
    contact, across which only the density jumps; mass, momentum and energy stay.
    Good values: gamma = 1.4, rho and p about 1, 100 to 1000 cells, method finite_volume.
    Limits: constant v and p: the density is advected with v (stationary contact if v = 0).
    Source: E. F. Toro, Riemann Solvers and Numerical Methods for Fluid Dynamics (2009), eqs. (3.1)-(3.3).
    """

    fields: ClassVar[tuple[Field, ...]] = (DENSITY, Field("momentum_x", unit="kg/(m^2 s)"), ENERGY)
    dims: ClassVar[tuple[int, ...]] = (1,)
    typical: ClassVar[Mapping[str, tuple[float, float]]] = {
        "density": (1.0, 0.1),
        "momentum_x": (0.3, 0.1),
        "energy": (3.0, 0.3),
    }
    gamma: float = parameter(1.4, unit="1", above=1.0, doc="ratio of specific heats")

    def flux(self, u: Any, d: Calculus[Any]) -> dict[str, tuple[Any, ...]]:
        """Mass, momentum and energy carried along, and pressure."""
        del d
        return gas_flux(u, 1, self.gamma)

    def max_speed(self, u: Any, axis: int, d: Calculus[Any]) -> Any:
        """|v| + c."""
        return fastest_sound(u, axis, d, 1, self.gamma)

    def positive(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """Density and pressure."""
        del d
        return {"density": u.density, "pressure": pressure(u, 1, self.gamma)}

    def contact(self, u: Any, axis: int, d: Calculus[Any]) -> Contact:
        """Density, velocity, pressure."""
        del d
        return gas_contact(u, axis, 1, self.gamma)

    def reflect(self, axis: int) -> tuple[str, ...]:
        """The momentum along the axis."""
        return (MOMENTA[axis],)

    def invariants(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """Mass, momentum, energy."""
        del d
        return dict(u)

    def state(self, density: Any, velocity: Any, pressure: Any) -> dict[str, Function]:
        """The initial fields of density, velocity and pressure, each a number or a function f(x)."""
        return gas_state(density, (velocity,), pressure, self.gamma)


@register("equation", "euler_2d")
@equation
class Euler2D(ConservationLaw):
    """Euler equations of an ideal gas in 2D, rho_t + div(rho v) = 0, (rho v)_t + div(rho v v + p) = 0,
    E_t + div((E + p) v) = 0, with p = (gamma - 1)(E - rho |v|^2/2).

    Symbols: density rho [kg/m^3], momentum_x, momentum_y rho v [kg/(m^2 s)], energy E [J/m^3] per volume, gamma [1].
    What you should see: sound travels at sqrt(gamma p/rho) through the moving gas, vortices are carried along, slip
    lines roll up; mass, momentum and energy stay.
    Good values: gamma = 1.4, rho and p about 1, 128 x 128 cells, method finite_volume.
    Limits: fields that do not depend on y with momentum_y = 0 follow the 1D equations.
    Source: E. F. Toro, Riemann Solvers and Numerical Methods for Fluid Dynamics (2009), eqs. (3.66)-(3.67).
    """

    fields: ClassVar[tuple[Field, ...]] = (DENSITY, *(Field(name, unit="kg/(m^2 s)") for name in MOMENTA), ENERGY)
    dims: ClassVar[tuple[int, ...]] = (2,)
    typical: ClassVar[Mapping[str, tuple[float, float]]] = {
        "density": (1.0, 0.1),
        "momentum_x": (0.3, 0.1),
        "momentum_y": (-0.2, 0.1),
        "energy": (3.0, 0.3),
    }
    gamma: float = parameter(1.4, unit="1", above=1.0, doc="ratio of specific heats")

    def flux(self, u: Any, d: Calculus[Any]) -> dict[str, tuple[Any, ...]]:
        """Mass, momentum and energy carried along, and pressure."""
        del d
        return gas_flux(u, 2, self.gamma)

    def max_speed(self, u: Any, axis: int, d: Calculus[Any]) -> Any:
        """|v| + c."""
        return fastest_sound(u, axis, d, 2, self.gamma)

    def positive(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """Density and pressure."""
        del d
        return {"density": u.density, "pressure": pressure(u, 2, self.gamma)}

    def contact(self, u: Any, axis: int, d: Calculus[Any]) -> Contact:
        """Density, velocity, pressure."""
        del d
        return gas_contact(u, axis, 2, self.gamma)

    def reflect(self, axis: int) -> tuple[str, ...]:
        """The momentum along the axis."""
        return (MOMENTA[axis],)

    def invariants(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """Mass, momentum, energy."""
        del d
        return dict(u)

    def state(self, density: Any, velocity_x: Any, velocity_y: Any, pressure: Any) -> dict[str, Function]:
        """The initial fields of density, velocity and pressure, each a number or a function f(x)."""
        return gas_state(density, (velocity_x, velocity_y), pressure, self.gamma)


def pressure(u: Any, dim: int, gamma: Any) -> Any:
    """(gamma - 1)(E - |rho v|^2/(2 rho)), in Pa."""
    squares = sum((u[name] * u[name] for name in MOMENTA[1:dim]), u.momentum_x * u.momentum_x)
    return (gamma - 1.0) * (u.energy - 0.5 * squares / u.density)


def gas_flux(u: Any, dim: int, gamma: Any) -> dict[str, tuple[Any, ...]]:
    """The flux of every field, one component per axis."""
    names, p = MOMENTA[:dim], pressure(u, dim, gamma)
    velocity = [u[name] / u.density for name in names]
    momentum = {
        name: tuple(u[name] * velocity[j] + p if i == j else u[name] * velocity[j] for j in range(dim))
        for i, name in enumerate(names)
    }
    energy = tuple((u.energy + p) * v for v in velocity)
    return {"density": tuple(u[name] for name in names), **momentum, "energy": energy}


def fastest_sound(u: Any, axis: int, d: Calculus[Any], dim: int, gamma: Any) -> Any:
    """|v| + sqrt(gamma p/rho) along an axis, in m/s."""
    sound = d.map(jnp.sqrt, gamma * pressure(u, dim, gamma) / u.density)
    return d.map(jnp.abs, u[MOMENTA[axis]] / u.density) + sound


def gas_contact(u: Any, axis: int, dim: int, gamma: Any) -> Contact:
    """Pressure pushes the momentum along the axis, and works on the energy."""
    velocity = u[MOMENTA[axis]] / u.density
    return Contact(u.density, velocity, pressure(u, dim, gamma), lambda v: {MOMENTA[axis]: 1.0, "energy": v})


def gas_state(density: Any, velocity: tuple[Any, ...], pressure: Any, gamma: Any) -> dict[str, Function]:
    """Density, momenta and energy as functions of a point."""

    def at(value: Any, x: Any) -> Any:
        return evaluate(value, x, 0.0) if callable(value) else value

    def energy(x: Any) -> Any:
        kinetic = 0.5 * at(density, x) * sum(at(v, x) ** 2 for v in velocity)
        return at(pressure, x) / (gamma - 1.0) + kinetic

    momenta: Mapping[str, Function] = {
        name: lambda x, v=v: at(density, x) * at(v, x) for name, v in zip(MOMENTA, velocity, strict=False)
    }
    return {"density": lambda x: at(density, x), **momenta, "energy": energy}
