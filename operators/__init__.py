"""Neural operators and surrogates: Fourier neural operator, DeepONet, plain perceptron."""

from sciml.operators.deeponet import DeepONet
from sciml.operators.fno import FNO
from sciml.operators.mlp import MLP

__all__ = ["FNO", "MLP", "DeepONet"]
