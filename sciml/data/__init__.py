"""Data sets: generated in parallel into HDF5 shards, read back verified, or made of a user's own arrays."""

from sciml.data.dataset import Dataset
from sciml.data.generate import Generated, Simulated, generate
from sciml.data.layout import Coordinate, Layout
from sciml.data.loader import Batches

__all__ = ["Batches", "Coordinate", "Dataset", "Generated", "Layout", "Simulated", "generate"]
