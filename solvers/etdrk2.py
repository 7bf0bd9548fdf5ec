"""Exponential time differencing Runge-Kutta of order 2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, final

from sciml.registry import option, register
from sciml.solvers.method import Matvec, Rate, TimeStepper
from sciml.types import Array


class Coefficients(NamedTuple):
    """The exponential of step L, and the weights of the predictor and of the corrector."""

    full: Array
    first: Array
    second: Array


@register("method", "etdrk2")
@final
@dataclass(frozen=True)
class Etdrk2(TimeStepper):
    """ETDRK2: the stiff linear part exactly, the rest by a predictor and a corrector; half the cost of `etdrk4`.

    Worth it for rough or short runs; where digits count, `etdrk4` reaches them with fewer evaluations. On the
    imaginary axis the explicit part grows in each step however short it is, so that a long run of pure transport needs
    shorter steps than a short one.
    """

    order: ClassVar[int] = 2
    references: ClassVar[tuple[str, ...]] = (
        "S. M. Cox, P. C. Matthews, J. Comput. Phys. 176 (2002) 430, eqs. (20)-(22)",
    )
    treats_linear_part: ClassVar[bool] = True
    exact_without_remainder: ClassVar[bool] = True
    real_limit: ClassVar[float] = 2.0
    imaginary_limit: ClassVar[float] = 0.0
    imaginary_growth: ClassVar[float] = 1 / 8  # |1 + i z - z^2/2| = sqrt(1 + z^4/4)

    dt: float = option(0.01, above=0.0, unit="s", doc="largest time step; shortened to land on the saved times")
    difference_order: int = option(2, minimum=2, maximum=4, doc="order of the differences on bounded boxes, 2 or 4")
    unstable: Literal["substep", "refuse"] = "substep"

    def prepare(self, linear: Any, step: Any) -> Coefficients:
        """The three functions of step L."""
        full, one, two, _ = linear.phi(step)
        return Coefficients(full, step * one, step * two)

    def step(self, prepared: Coefficients, linear: Any, rate: Rate, y: Array, t: Any, step: Any) -> Array:
        """Cox and Matthews (20)-(22)."""
        n1 = rate(y, t)
        predicted = linear.act(prepared.full, y) + linear.act(prepared.first, n1)
        return predicted + linear.act(prepared.second, rate(predicted, t + step) - n1)

    def damping(self, linear: Any, step: Any) -> Matvec:
        """phi_1(step L)."""
        first = linear.phi(step)[1]
        return lambda y: linear.act(first, y)
