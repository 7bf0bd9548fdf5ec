"""The classical Runge-Kutta method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, final

from sciml.registry import option, register
from sciml.solvers.method import Matvec, Rate, TimeStepper
from sciml.types import Array


@register("method", "rk4")
@final
@dataclass(frozen=True)
class Rk4(TimeStepper):
    """Classical explicit Runge-Kutta of order 4; diffusion limits its step to about 0.7 h^2/D per axis."""

    order: ClassVar[int] = 4
    references: ClassVar[tuple[str, ...]] = (
        "E. Hairer, S. P. Norsett, G. Wanner, Solving Ordinary Differential Equations I (1993), table II.1.2",
    )
    treats_linear_part: ClassVar[bool] = False
    exact_without_remainder: ClassVar[bool] = False
    real_limit: ClassVar[float] = 2.78
    imaginary_limit: ClassVar[float] = 2.82

    dt: float = option(0.01, above=0.0, unit="s", doc="largest time step; shortened to land on the saved times")
    difference_order: int = option(2, minimum=2, maximum=4, doc="order of the differences on bounded boxes, 2 or 4")
    unstable: Literal["substep", "refuse"] = "substep"

    def prepare(self, linear: Any, step: Any) -> None:
        """Nothing."""
        del linear, step

    def step(self, prepared: Any, linear: Any, rate: Rate, y: Array, t: Any, step: Any) -> Array:
        """Four stages."""
        del prepared, linear
        k1 = rate(y, t)
        k2 = rate(y + step / 2 * k1, t + step / 2)
        k3 = rate(y + step / 2 * k2, t + step / 2)
        k4 = rate(y + step * k3, t + step)
        return y + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    def damping(self, linear: Any, step: Any) -> Matvec:
        """No damping."""
        del linear, step
        return lambda y: y
