"""PDEs, one file each, written once over the abstract calculus. The files are imported when their name is used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from sciml.equations.base import Equation, Evolution, Field, FieldSet, Steady, equation, field_names, parameter

if TYPE_CHECKING:
    from sciml.equations.advection import Advection
    from sciml.equations.allen_cahn import AllenCahn
    from sciml.equations.burgers import Burgers
    from sciml.equations.darcy import Darcy
    from sciml.equations.heat import Heat
    from sciml.equations.kuramoto_sivashinsky import KuramotoSivashinsky
    from sciml.equations.poisson import Poisson

_MODULES = {
    "Advection": "advection",
    "AllenCahn": "allen_cahn",
    "Burgers": "burgers",
    "Darcy": "darcy",
    "Heat": "heat",
    "KuramotoSivashinsky": "kuramoto_sivashinsky",
    "Poisson": "poisson",
}

__all__ = [
    "Advection",
    "AllenCahn",
    "Burgers",
    "Darcy",
    "Equation",
    "Evolution",
    "Field",
    "FieldSet",
    "Heat",
    "KuramotoSivashinsky",
    "Poisson",
    "Steady",
    "equation",
    "field_names",
    "parameter",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'sciml.equations' has no attribute {name!r}")
    return getattr(importlib.import_module(f"sciml.equations.{_MODULES[name]}"), name)
