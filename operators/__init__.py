"""Neural operators and surrogates: Fourier neural operator, DeepONet, transformer, plain perceptron."""

from sciml.operators.deeponet import DeepONet
from sciml.operators.fno import FNO
from sciml.operators.mlp import MLP
from sciml.operators.transformer import Transformer

__all__ = ["FNO", "MLP", "DeepONet", "Transformer"]
