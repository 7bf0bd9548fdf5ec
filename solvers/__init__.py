"""Numerical solutions of the problems: time steppers, elliptic solvers, exact solutions, verification."""

from sciml.solvers.accuracy import Reference, error_estimate, reference_solution
from sciml.solvers.batch import BatchSolution, solve_batch, stack
from sciml.solvers.bicgstab import Bicgstab
from sciml.solvers.conjugate_gradient import ConjugateGradient
from sciml.solvers.direct import Direct
from sciml.solvers.etdrk2 import Etdrk2
from sciml.solvers.etdrk4 import Etdrk4
from sciml.solvers.exact import ExactSolution, exact_solution
from sciml.solvers.imex import Imex
from sciml.solvers.method import EllipticSolver, Method, TimeStepper
from sciml.solvers.multigrid import Multigrid
from sciml.solvers.rk4 import Rk4
from sciml.solvers.solve import Solution, integrate, solve
from sciml.solvers.ssprk3 import Ssprk3
from sciml.solvers.target import Settings, settings_for
from sciml.solvers.verification import Check, Report, verify

__all__ = [
    "BatchSolution",
    "Bicgstab",
    "Check",
    "ConjugateGradient",
    "Direct",
    "EllipticSolver",
    "Etdrk2",
    "Etdrk4",
    "ExactSolution",
    "Imex",
    "Method",
    "Multigrid",
    "Reference",
    "Report",
    "Rk4",
    "Settings",
    "Solution",
    "Ssprk3",
    "TimeStepper",
    "error_estimate",
    "exact_solution",
    "integrate",
    "reference_solution",
    "settings_for",
    "solve",
    "solve_batch",
    "stack",
    "verify",
]
