"""Readings of the abstract calculus in which equations are written."""

from sciml.calculus.base import Calculus
from sciml.calculus.finite_difference import FiniteDifference
from sciml.calculus.finite_volume import CellAverages, FaceStates
from sciml.calculus.pointwise import Pointwise
from sciml.calculus.spectral import FourierBasis, Spectral
from sciml.calculus.symbol import Symbol

__all__ = [
    "Calculus",
    "CellAverages",
    "FaceStates",
    "FiniteDifference",
    "FourierBasis",
    "Pointwise",
    "Spectral",
    "Symbol",
]
