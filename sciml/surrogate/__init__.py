"""Trained models as folders that other programs load: `export` writes one, `load` uses it."""

from sciml.surrogate.arguments import RangeWarning
from sciml.surrogate.exporting import export
from sciml.surrogate.loading import Surrogate, load

__all__ = ["RangeWarning", "Surrogate", "export", "load"]
