"""Physics-informed networks: fields as functions of a point, trained on the residual of the equation."""

from sciml.pinn.model import PINN, PINNConfig
from sciml.pinn.objectives import BoundaryResidual, PointResidual

__all__ = ["PINN", "BoundaryResidual", "PINNConfig", "PointResidual"]
