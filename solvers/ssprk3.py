"""The strong-stability-preserving Runge-Kutta method of order 3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, final

from sciml.registry import option, register
from sciml.solvers.method import Matvec, Rate, TimeStepper
from sciml.types import Array

STAGES = ((0.0, 1.0, 0.0), (0.75, 0.25, 1.0), (1 / 3, 2 / 3, 0.5))
"""(weight of the state at the start, of the Euler step from the last stage, time of that step) of each stage."""


@register("method", "ssprk3")
@final
@dataclass(frozen=True)
class Ssprk3(TimeStepper):
    """Explicit SSP Runge-Kutta of order 3: a convex combination of Euler steps, so it adds no oscillations."""

    order: ClassVar[int] = 3
    references: ClassVar[tuple[str, ...]] = ("C.-W. Shu, S. Osher, J. Comput. Phys. 77 (1988) 439, eq. (2.18)",)
    treats_linear_part: ClassVar[bool] = False
    exact_without_remainder: ClassVar[bool] = False
    real_limit: ClassVar[float] = 2.51
    imaginary_limit: ClassVar[float] = 1.73

    dt: float = option(0.01, above=0.0, unit="s", doc="largest time step; shortened to land on the saved times")
    difference_order: int = option(2, minimum=2, maximum=4, doc="order of the differences on bounded boxes, 2 or 4")
    unstable: Literal["substep", "refuse"] = "substep"

    def prepare(self, linear: Any, step: Any) -> None:
        """Nothing."""
        del linear, step

    def step(self, prepared: Any, linear: Any, rate: Rate, y: Array, t: Any, step: Any) -> Array:
        """Three Euler steps, averaged."""
        del prepared, linear
        first = y + step * rate(y, t)
        second = 0.75 * y + 0.25 * (first + step * rate(first, t + step))
        return y / 3 + 2 / 3 * (second + step * rate(second, t + step / 2))

    def damping(self, linear: Any, step: Any) -> Matvec:
        """No damping."""
        del linear, step
        return lambda y: y
