"""sciml: physics-informed scientific machine learning in JAX."""

__version__ = "0.1.0"
