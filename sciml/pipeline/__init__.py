"""From a recipe to data, trained models, a report and surrogates."""

from sciml.pipeline.description import describe
from sciml.pipeline.stages import evaluate, export, generate, run, train

__all__ = ["describe", "evaluate", "export", "generate", "run", "train"]
