"""One sample over ranks: domain decomposition with the problems, grids and methods of `sciml.solvers.solve`."""

from sciml.solvers.decomposed.communicator import Communicator
from sciml.solvers.decomposed.serial import Serial
from sciml.solvers.decomposed.shared import RankSolution, solve_over_ranks
from sciml.solvers.decomposed.with_jax import JaxDevices
from sciml.solvers.decomposed.with_mpi4jax import Mpi4jax
from sciml.solvers.decomposed.with_mpi4py import Mpi4py

__all__ = ["Communicator", "JaxDevices", "Mpi4jax", "Mpi4py", "RankSolution", "Serial", "solve_over_ranks"]
