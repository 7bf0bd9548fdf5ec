"""Random numbers and random fields, drawn by explicit keys; fields are functions of a point."""

from sciml.sampling.distributions import Distribution, LogUniform, Normal, Uniform
from sciml.sampling.fields import LogNormalField, RandomCosineSeries, RandomField, RandomFourierSeries
from sciml.sampling.grid_function import GridFunction
from sciml.sampling.series import CosineSeries, FourierSeries

__all__ = [
    "CosineSeries",
    "Distribution",
    "FourierSeries",
    "GridFunction",
    "LogNormalField",
    "LogUniform",
    "Normal",
    "RandomCosineSeries",
    "RandomField",
    "RandomFourierSeries",
    "Uniform",
]
