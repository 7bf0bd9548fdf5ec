"""Conditions on the faces of a box, all of the form alpha u + beta du/dn = value, with the outward normal n."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jax

from sciml.domain import Box
from sciml.errors import ConfigError
from sciml.functions import Coefficient, as_function


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Condition:
    """alpha u + beta du/dn = value on one face; `value` is a number or a function f(x) or f(x, t)."""

    value: Coefficient = 0.0
    alpha: float = field(default=1.0, metadata={"static": True})
    beta: float = field(default=0.0, metadata={"static": True})


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


CONDITIONS = {"dirichlet": dirichlet, "neumann": neumann, "robin": robin}

Boundary = Mapping[str, Condition]
"""Face name (`x-`, `x+`, `y-`, ...) to condition."""


def check_boundary(box: Box, boundary: Boundary) -> dict[str, Any]:
    """The conditions in the order of the faces of `box`; raises `ConfigError` unless there is one per bounded face."""
    missing = [face for face in box.faces if face not in boundary]
    extra = [face for face in boundary if face not in box.faces]
    if missing or extra:
        raise ConfigError(
            "the boundary conditions do not match the bounded faces of the domain",
            expected=", ".join(box.faces) or "none: every axis is periodic",
            got=", ".join(boundary) or "none",
            reason=f"missing {missing}" if missing else f"no such bounded face {extra}",
            fix="boundary={" + ", ".join(f"'{f}': dirichlet(0.0)" for f in box.faces) + "}",
        )
    return {face: boundary[face] for face in box.faces}
