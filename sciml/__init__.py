"""sciml: physics-informed scientific machine learning in JAX.

One PDE text feeds solver, PINN residual, operator loss and verification. Names are imported on first use, so
that `import sciml` itself loads neither jax nor anything else that takes time.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sciml.boundary import dirichlet, neumann, robin
    from sciml.calculus import FiniteDifference, Pointwise, Spectral, Symbol
    from sciml.data import Dataset, open_arrays, statistics
    from sciml.domain import Box, Grid
    from sciml.equations import Evolution, Field, Steady, equation, parameter
    from sciml.parallel.plan import Plan
    from sciml.parallel.step import build_step
    from sciml.problem import Problem, make_problem, manufactured
    from sciml.recipe import Recipe
    from sciml.recipe import read as read_recipe
    from sciml.solvers import solve, solve_batch
    from sciml.spec import Spec, Variable
    from sciml.surrogate import Surrogate, export, load
    from sciml.training.loop import train
    from sciml.training.state import TrainState

__version__ = "0.1.0"

_PLACES = {
    "sciml.boundary": ("dirichlet", "neumann", "robin"),
    "sciml.calculus": ("FiniteDifference", "Pointwise", "Spectral", "Symbol"),
    "sciml.data": ("Dataset", "open_arrays", "statistics"),
    "sciml.domain": ("Box", "Grid"),
    "sciml.equations": ("Evolution", "Field", "Steady", "equation", "parameter"),
    "sciml.parallel.plan": ("Plan",),
    "sciml.parallel.step": ("build_step",),
    "sciml.problem": ("Problem", "make_problem", "manufactured"),
    "sciml.recipe": ("Recipe", "read_recipe"),
    "sciml.solvers": ("solve", "solve_batch"),
    "sciml.spec": ("Spec", "Variable"),
    "sciml.surrogate": ("Surrogate", "export", "load"),
    "sciml.training.loop": ("train",),
    "sciml.training.state": ("TrainState",),
}
_MODULES = {name: module for module, names in _PLACES.items() for name in names}
_RENAMED = {"read_recipe": "read"}

__all__ = [
    "Box",
    "Dataset",
    "Evolution",
    "Field",
    "FiniteDifference",
    "Grid",
    "Plan",
    "Pointwise",
    "Problem",
    "Recipe",
    "Spec",
    "Spectral",
    "Steady",
    "Surrogate",
    "Symbol",
    "TrainState",
    "Variable",
    "build_step",
    "dirichlet",
    "equation",
    "export",
    "load",
    "make_problem",
    "manufactured",
    "neumann",
    "open_arrays",
    "parameter",
    "read_recipe",
    "robin",
    "solve",
    "solve_batch",
    "statistics",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'sciml' has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), _RENAMED.get(name, name))


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
