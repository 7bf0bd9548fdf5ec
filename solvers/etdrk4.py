"""Exponential time differencing Runge-Kutta of order 4."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, final

from sciml.registry import option, register
from sciml.solvers.method import Matvec, Rate, TimeStepper
from sciml.types import Array


class Coefficients(NamedTuple):
    """Functions of step L: full and half exponential, the stage weight, and the weights of the last stage."""

    full: Array
    half: Array
    stage: Array
    first: Array
    middle: Array
    last: Array


@register("method", "etdrk4")
@final
@dataclass(frozen=True)
class Etdrk4(TimeStepper):
    """ETDRK4: the stiff linear part exactly, the rest by Runge-Kutta of order 4.

    On periodic boxes in Fourier space, on bounded ones in the eigenvectors of the differences. A linear
    equation without source is advanced from one saved time to the next in a single exact step.
    """

    order: ClassVar[int] = 4
    references: ClassVar[tuple[str, ...]] = (
        "S. M. Cox, P. C. Matthews, J. Comput. Phys. 176 (2002) 430, eqs. (26)-(29)",
        "A.-K. Kassam, L. N. Trefethen, SIAM J. Sci. Comput. 26 (2005) 1214, sec. 2",
    )
    treats_linear_part: ClassVar[bool] = True
    exact_without_remainder: ClassVar[bool] = True
    real_limit: ClassVar[float] = 2.7
    imaginary_limit: ClassVar[float] = 2.7

    dt: float = option(0.01, above=0.0, unit="s", doc="largest time step; shortened to land on the saved times")
    difference_order: int = option(2, minimum=2, maximum=4, doc="order of the differences on bounded boxes, 2 or 4")
    unstable: Literal["substep", "refuse"] = "substep"

    def prepare(self, linear: Any, step: Any) -> Coefficients:
        """The six functions of step L."""
        full, one, two, three = linear.phi(step)
        half, stage, _, _ = linear.phi(step / 2)
        return Coefficients(
            full, half, step / 2 * stage,
            step * (one - 3 * two + 4 * three), step * (2 * two - 4 * three), step * (4 * three - two),
        )  # fmt: skip

    def step(self, prepared: Coefficients, linear: Any, rate: Rate, y: Array, t: Any, step: Any) -> Array:
        """Cox and Matthews (26)-(29)."""
        c, act = prepared, linear.act
        n1 = rate(y, t)
        half = act(c.half, y)
        a = half + act(c.stage, n1)
        n2 = rate(a, t + step / 2)
        b = half + act(c.stage, n2)
        n3 = rate(b, t + step / 2)
        n4 = rate(act(c.half, a) + act(c.stage, 2 * n3 - n1), t + step)
        return act(c.full, y) + act(c.first, n1) + act(c.middle, n2 + n3) + act(c.last, n4)

    def damping(self, linear: Any, step: Any) -> Matvec:
        """phi_1(step L)."""
        first = linear.phi(step)[1]
        return lambda y: linear.act(first, y)
