"""Conditions on the faces of a domain, of the form alpha u + beta du/dn = value, with the outward normal n."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import jax

from sciml.domain import Box
from sciml.errors import ConfigError
from sciml.functions import Coefficient, as_function
from sciml.geometry.mesh import Mesh


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Condition:
    """alpha u + beta du/dn = value on one face; `value` is a number or a function f(x) or f(x, t).

    With `of_flux`, which meshes understand, F n stands in place of du/dn, where the equation reads ... = div F.
    """

    value: Coefficient = 0.0
    alpha: float = field(default=1.0, metadata={"static": True})
    beta: float = field(default=0.0, metadata={"static": True})
    of_flux: bool = field(default=False, metadata={"static": True})


def dirichlet(value: Coefficient = 0.0) -> Condition:
    """u = value."""
    return Condition(as_function(value), 1.0, 0.0)


def neumann(value: Coefficient = 0.0) -> Condition:
    """du/dn = value, with the outward normal n."""
    return Condition(as_function(value), 0.0, 1.0)


def robin(alpha: float, beta: float, value: Coefficient = 0.0) -> Condition:
    """alpha u + beta du/dn = value; raises `ConfigError` when alpha and beta are both zero."""
    if alpha == 0 and beta == 0:
        raise ConfigError("a Robin condition needs a nonzero alpha or beta", got=f"{alpha=}, {beta=}")
    return Condition(as_function(value), float(alpha), float(beta))


def inflow(value: Coefficient = 0.0) -> Condition:
    """F n = value on a part of a mesh: what enters there, where the equation reads u_t = div F + ... or -div F = f.

    The heat flux D du/dn of u_t = D lap u, the traction of elasticity (per field).
    """
    return Condition(as_function(value), 0.0, 1.0, of_flux=True)


CONDITIONS = {"dirichlet": dirichlet, "neumann": neumann, "robin": robin}

FaceConditions: TypeAlias = Condition | Mapping[str, Condition]
"""One condition for all fields, or one per field name."""

Boundary: TypeAlias = Mapping[str, FaceConditions]
"""Face name (`x-`, `x+`, `y-`, ...) to condition, or to {field: condition}."""


def condition_for(conditions: FaceConditions, name: str | None) -> Condition:
    """The condition of a field on one face; `name` may be None where the face has one condition for all."""
    if isinstance(conditions, Condition):
        return conditions
    if name is None or name not in conditions:
        raise ConfigError(
            "this face has conditions per field, and none for the field asked for",
            expected=", ".join(conditions),
            got=name or "no field name",
        )
    return conditions[name]


def conditions_for(boundary: Boundary, name: str | None) -> dict[str, Condition]:
    """Face to condition for one field."""
    return {face: condition_for(conditions, name) for face, conditions in boundary.items()}


def all_conditions(boundary: Boundary) -> tuple[Condition, ...]:
    """Every condition on every face, each once."""
    groups = [[c] if isinstance(c, Condition) else list(c.values()) for c in boundary.values()]
    return tuple(condition for group in groups for condition in group)


def check_boundary(domain: Box | Mesh, boundary: Boundary, names: Sequence[str] | None = None) -> dict[str, Any]:
    """The conditions in the order of the faces of a box, or of the boundary parts of a mesh.

    Raises `ConfigError` unless there is one per bounded face, or, on a face with conditions per field, one for each
    of the fields `names`; also for a condition on the flux of a box.
    """
    faces = domain.faces
    missing = [face for face in faces if face not in boundary]
    extra = [face for face in boundary if face not in faces]
    if missing or extra:
        raise ConfigError(
            "the boundary conditions do not match the bounded faces of the domain",
            expected=", ".join(faces) or "none: every axis is periodic",
            got=", ".join(boundary) or "none",
            reason=f"missing {missing}" if missing else f"no such bounded face {extra}",
            fix="boundary={" + ", ".join(f"'{f}': dirichlet(0.0)" for f in faces) + "}",
        )
    if isinstance(domain, Box) and any(condition.of_flux for condition in all_conditions(boundary)):
        raise ConfigError(
            "conditions on the flux are for meshes",
            expected="dirichlet(value), neumann(value) or robin(alpha, beta, value)",
            got="inflow(value) on a face of a box",
            reason="series and differences take the value of u, its normal derivative, or a sum of both",
            fix="neumann(value / diffusivity)",
        )
    for face, conditions in boundary.items():
        if names is not None and not isinstance(conditions, Condition) and set(conditions) != set(names):
            raise ConfigError(
                f"the conditions on face {face} do not match the fields of the equation",
                expected=", ".join(names),
                got=", ".join(conditions) or "none",
                fix="{'" + face + "': {" + ", ".join(f"'{name}': dirichlet(0.0)" for name in names) + "}}",
            )
    return {face: _in_order(boundary[face], names) for face in faces}


def _in_order(conditions: FaceConditions, names: Sequence[str] | None) -> FaceConditions:
    if names is None or isinstance(conditions, Condition):
        return conditions
    return {name: conditions[name] for name in names}


def natural_faces(boundary: Boundary, order: int) -> frozenset[str]:
    """The faces whose points are unknowns of their own in differences of the given order.

    Order 2, and every field has a condition with a slope (Neumann or Robin) there: the face then owns half a cell,
    whose balance contains the condition. Elsewhere the values on the face are expressed by those inside.
    """
    groups = {face: [c] if isinstance(c, Condition) else list(c.values()) for face, c in boundary.items()}
    return frozenset(face for face, group in groups.items() if order == 2 and all(c.beta != 0 for c in group))
