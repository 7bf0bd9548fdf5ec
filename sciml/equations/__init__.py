"""PDEs, one file each, written once over the abstract calculus."""

from sciml.equations.advection import Advection
from sciml.equations.allen_cahn import AllenCahn
from sciml.equations.base import Equation, Evolution, Field, FieldSet, Steady, equation, field_names, parameter
from sciml.equations.burgers import Burgers
from sciml.equations.darcy import Darcy
from sciml.equations.heat import Heat
from sciml.equations.kuramoto_sivashinsky import KuramotoSivashinsky
from sciml.equations.poisson import Poisson

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
