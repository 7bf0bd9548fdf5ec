"""Random numbers and random fields, drawn by explicit keys; fields are functions of a point."""

from sciml.sampling.distributions import Distribution
from sciml.sampling.fields import RandomField
from sciml.sampling.series import CosineSeries, FourierSeries

__all__ = ["CosineSeries", "Distribution", "FourierSeries", "RandomField"]
