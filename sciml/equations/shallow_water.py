"""The shallow water equations over a flat bottom, in one and two dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import jax.numpy as jnp

from sciml.calculus.base import Calculus
from sciml.equations.base import Field, equation, parameter
from sciml.equations.conservation import ConservationLaw, Contact
from sciml.registry import register

DISCHARGES = ("discharge_x", "discharge_y")
DEPTH = Field("depth", unit="m")
DRY = 1e-10  # m: thinner water does not move, which keeps the velocity defined on dry ground


@register("equation", "shallow_water_1d")
@equation
class ShallowWater1D(ConservationLaw):
    """Shallow water equations in 1D over a flat bottom, h_t + (h v)_x = 0, (h v)_t + (h v^2 + g h^2/2)_x = 0.

    Symbols: depth h [m], discharge_x h v [m^2/s], g [m/s^2] gravity.
    What you should see: waves travel at v +- sqrt(g h); a dam break sends a bore one way and a fan the other; mass and
    momentum stay, energy falls at bores.
    Good values: g = 9.81, depths about 1 m, 100 to 1000 cells, method finite_volume.
    Limits: water at rest stays at rest; small waves follow the wave equation with speed sqrt(g h).
    Source: R. J. LeVeque, Finite Volume Methods for Hyperbolic Problems (2002), eqs. (13.5)-(13.6).
    """

    fields: ClassVar[tuple[Field, ...]] = (DEPTH, Field("discharge_x", unit="m^2/s"))
    dims: ClassVar[tuple[int, ...]] = (1,)
    typical: ClassVar[Mapping[str, tuple[float, float]]] = {"depth": (1.0, 0.1), "discharge_x": (0.3, 0.1)}
    gravity: float = parameter(9.81, unit="m/s^2", above=0.0, doc="acceleration of gravity")

    def flux(self, u: Any, d: Calculus[Any]) -> dict[str, tuple[Any, ...]]:
        """Mass and momentum carried along, and pressure."""
        return water_flux(u, d, 1, self.gravity)

    def max_speed(self, u: Any, axis: int, d: Calculus[Any]) -> Any:
        """|v| + sqrt(g h)."""
        return fastest_wave(u, axis, d, self.gravity)

    def positive(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """Depth."""
        del d
        return {"depth": u.depth}

    def contact(self, u: Any, axis: int, d: Calculus[Any]) -> Contact:
        """Depth, velocity, hydrostatic force."""
        return water_contact(u, axis, d, self.gravity)

    def reflect(self, axis: int) -> tuple[str, ...]:
        """The discharge along the axis."""
        return (DISCHARGES[axis],)

    def invariants(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """Mass and momentum."""
        del d
        return dict(u)


@register("equation", "shallow_water_2d")
@equation
class ShallowWater2D(ConservationLaw):
    """Shallow water equations in 2D over a flat bottom, h_t + div(h v) = 0, (h v)_t + div(h v v) + grad(g h^2/2) = 0.

    Symbols: depth h [m], discharge_x, discharge_y h v [m^2/s], g [m/s^2] gravity.
    What you should see: waves travel at sqrt(g h) through the moving water; a column of water that is let go sends a
    circular bore outward; mass and momentum stay, energy falls at bores.
    Good values: g = 9.81 (1 for the radial dam break), depths of 1 to 2 m, 128 x 128 cells, method finite_volume.
    Limits: water at rest stays at rest; fields that do not depend on y follow the 1D equations.
    Source: R. J. LeVeque, Finite Volume Methods for Hyperbolic Problems (2002), eq. (21.4).
    """

    fields: ClassVar[tuple[Field, ...]] = (DEPTH, *(Field(name, unit="m^2/s") for name in DISCHARGES))
    dims: ClassVar[tuple[int, ...]] = (2,)
    typical: ClassVar[Mapping[str, tuple[float, float]]] = {
        "depth": (1.0, 0.1),
        "discharge_x": (0.3, 0.1),
        "discharge_y": (-0.2, 0.1),
    }
    gravity: float = parameter(9.81, unit="m/s^2", above=0.0, doc="acceleration of gravity")

    def flux(self, u: Any, d: Calculus[Any]) -> dict[str, tuple[Any, ...]]:
        """Mass and momentum carried along, and pressure."""
        return water_flux(u, d, 2, self.gravity)

    def max_speed(self, u: Any, axis: int, d: Calculus[Any]) -> Any:
        """|v| + sqrt(g h)."""
        return fastest_wave(u, axis, d, self.gravity)

    def positive(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """Depth."""
        del d
        return {"depth": u.depth}

    def contact(self, u: Any, axis: int, d: Calculus[Any]) -> Contact:
        """Depth, velocity, hydrostatic force."""
        return water_contact(u, axis, d, self.gravity)

    def reflect(self, axis: int) -> tuple[str, ...]:
        """The discharge along the axis."""
        return (DISCHARGES[axis],)

    def invariants(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """Mass and momentum."""
        del d
        return dict(u)


def velocity(u: Any, axis: int, d: Calculus[Any]) -> Any:
    """Discharge over depth along an axis, in m/s; zero where it is dry."""

    def divided(discharge: Any, depth: Any) -> Any:
        wet = depth > DRY
        return jnp.where(wet, discharge / jnp.where(wet, depth, 1.0), 0.0)

    return d.map(divided, u[DISCHARGES[axis]], u.depth)


def water_flux(u: Any, d: Calculus[Any], dim: int, gravity: Any) -> dict[str, tuple[Any, ...]]:
    """The flux of every field, one component per axis."""
    names, force = DISCHARGES[:dim], 0.5 * gravity * (u.depth * u.depth)
    speeds = [velocity(u, axis, d) for axis in range(dim)]
    discharges = {
        name: tuple(u[name] * speeds[j] + force if i == j else u[name] * speeds[j] for j in range(dim))
        for i, name in enumerate(names)
    }
    return {"depth": tuple(u.depth * v for v in speeds), **discharges}


def fastest_wave(u: Any, axis: int, d: Calculus[Any], gravity: Any) -> Any:
    """|v| + sqrt(g h) along an axis, in m/s."""
    wave = d.map(lambda depth: jnp.where(depth > 0, jnp.sqrt(jnp.where(depth > 0, depth, 1.0)), 0.0), u.depth)
    return d.map(jnp.abs, velocity(u, axis, d)) + gravity**0.5 * wave


def water_contact(u: Any, axis: int, d: Calculus[Any], gravity: Any) -> Contact:
    """The weight of the water pushes the discharge along the axis."""
    force = 0.5 * gravity * (u.depth * u.depth)
    return Contact(u.depth, velocity(u, axis, d), force, lambda v: {DISCHARGES[axis]: 1.0})
