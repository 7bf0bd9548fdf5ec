"""The flux through a face between two states."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp

from sciml.calculus.finite_volume import FaceStates, Transport
from sciml.equations.base import FieldSet, add, read, stiff_part
from sciml.equations.conservation import ConservationLaw, Contact
from sciml.types import Array


@dataclass(frozen=True, eq=False)
class Faces:
    """A law read at the faces along one axis; states and fluxes have the shape (fields, *faces)."""

    law: ConservationLaw
    names: tuple[str, ...]
    axis: int
    d: FaceStates

    def fields(self, state: Array) -> FieldSet:
        """A state by field name."""
        return FieldSet({name: state[i] for i, name in enumerate(self.names)})

    def flux(self, state: Array) -> Array:
        """The flux of a state along the axis: the text's `flux`, minus the transport in its other parts."""
        fields = self.fields(state)
        flux = read(self.law.flux, fields, self.d)
        others = add(stiff_part(self.law, fields, self.d), read(self.law.nonstiff, fields, self.d))
        parts = []
        for name in self.names:
            other = others.get(name)
            transport = other.flux[self.axis] if isinstance(other, Transport) else 0.0
            parts.append(jnp.broadcast_to(flux[name][self.axis] if name in flux else 0.0, state.shape[1:]) - transport)
        return jnp.stack(parts)

    def speed(self, state: Array) -> Array:
        """The largest speed of a state."""
        return jnp.broadcast_to(self.law.max_speed(self.fields(state), self.axis, self.d), state.shape[1:])

    def contact(self, state: Array) -> Contact | None:
        """What moves with the fluid."""
        return self.law.contact(self.fields(state), self.axis, self.d)

    def stack(self, terms: Mapping[str, Any], shape: tuple[int, ...]) -> Array:
        """Terms by field as one array, zero where there is none."""
        return jnp.stack([jnp.broadcast_to(terms.get(name, 0.0), shape) for name in self.names])


def rusanov(faces: Faces, left: Array, right: Array) -> Array:
    """The mean of the fluxes, with the fastest wave's speed as viscosity. V. V. Rusanov, J. Comput. Math. Phys. USSR 1
    (1961) 267."""
    speed = jnp.maximum(faces.speed(left), faces.speed(right))
    return 0.5 * (faces.flux(left) + faces.flux(right) - speed * (right - left))


def hllc(faces: Faces, left: Array, right: Array) -> Array:
    """Two acoustic waves and the contact between them, at rest kept exactly; `rusanov` for a law without contact.

    P. Batten et al., SIAM J. Sci. Comput. 18 (1997) 1553, eqs. (6)-(9); speeds of S. F. Davis, SIAM J. Sci. Stat.
    Comput. 9 (1988) 445.
    """
    a, b = faces.contact(left), faces.contact(right)
    if a is None or b is None:
        return rusanov(faces, left, right)
    sound_a = faces.speed(left) - jnp.abs(a.velocity)
    sound_b = faces.speed(right) - jnp.abs(b.velocity)
    slowest = jnp.minimum(a.velocity - sound_a, b.velocity - sound_b)
    fastest = jnp.maximum(a.velocity + sound_a, b.velocity + sound_b)
    mass_a, mass_b = a.inertia * (slowest - a.velocity), b.inertia * (fastest - b.velocity)
    middle = _divided(b.pressure - a.pressure + mass_a * a.velocity - mass_b * b.velocity, mass_a - mass_b)
    pressure = a.pressure + mass_a * (middle - a.velocity)
    flux_a, flux_b = faces.flux(left), faces.flux(right)
    star_a = flux_a + slowest * (_star(faces, left, a, slowest, middle, pressure) - left)
    star_b = flux_b + fastest * (_star(faces, right, b, fastest, middle, pressure) - right)
    inner = jnp.where(middle >= 0, star_a, star_b)
    return jnp.where(slowest >= 0, flux_a, jnp.where(fastest <= 0, flux_b, inner))


def _star(faces: Faces, state: Array, contact: Contact, wave: Array, middle: Array, pressure: Array) -> Array:
    """The state between a wave and the contact: Rankine-Hugoniot across the wave."""
    shape = state.shape[1:]
    pushed = pressure * faces.stack(contact.push(middle), shape)
    before = contact.pressure * faces.stack(contact.push(contact.velocity), shape)
    return _divided((wave - contact.velocity) * state + pushed - before, wave - middle)


def _divided(a: Array, b: Array) -> Array:
    """a/b, zero where b is (both sides empty)."""
    return jnp.where(b != 0, a / jnp.where(b != 0, b, 1.0), 0.0)


Riemann = Callable[[Faces, Array, Array], Array]
RIEMANN: dict[str, Riemann] = {"rusanov": rusanov, "hllc": hllc}
"""Name to solver: (faces, state below, state above) -> flux."""
