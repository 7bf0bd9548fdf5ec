"""PDEs, one file each, written once over the abstract calculus."""

from sciml.equations.base import (
    Equation,
    Evolution,
    Field,
    FieldSet,
    Steady,
    equation,
    field_names,
    parameter,
)

__all__ = ["Equation", "Evolution", "Field", "FieldSet", "Steady", "equation", "field_names", "parameter"]
