"""Data sets: generated in parallel into HDF5 shards, read back verified, or made of a user's own arrays."""

from sciml.data.arrays import open_arrays
from sciml.data.dataset import Dataset
from sciml.data.generate import Generated, Simulated, generate
from sciml.data.layout import Coordinate, Layout
from sciml.data.loader import Batches
from sciml.data.normalization import load_statistics, save_statistics, statistics

__all__ = [
    "Batches",
    "Coordinate",
    "Dataset",
    "Generated",
    "Layout",
    "Simulated",
    "generate",
    "load_statistics",
    "open_arrays",
    "save_statistics",
    "statistics",
]
