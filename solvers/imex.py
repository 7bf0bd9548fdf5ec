"""An implicit-explicit Runge-Kutta method: the stiff linear part implicitly, the rest explicitly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, final

from sciml.registry import option, register
from sciml.solvers.method import Matvec, Rate, TimeStepper
from sciml.types import Array

NODES = (0.0, 1 / 2, 83 / 250, 31 / 50, 17 / 20, 1.0)
DIAGONAL = 1 / 4
IMPLICIT = (
    (),
    (1 / 4,),
    (8611 / 62500, -1743 / 31250),
    (5012029 / 34652500, -654441 / 2922500, 174375 / 388108),
    (15267082809 / 155376265600, -71443401 / 120774400, 730878875 / 902184768, 2285395 / 8070912),
    (82889 / 524892, 0.0, 15625 / 83664, 69875 / 102672, -2260 / 8211),
)
EXPLICIT = (
    (),
    (1 / 2,),
    (13861 / 62500, 6889 / 62500),
    (-116923316275 / 2393684061468, -2731218467317 / 15368042101831, 9408046702089 / 11113171139209),
    (
        -451086348788 / 2902428689909,
        -2682348792572 / 7519795681897,
        12662868775082 / 11960479115383,
        3355817975965 / 11060851509271,
    ),
    (
        647845179188 / 3216320057751,
        73281519250 / 8382639484533,
        552539513391 / 3454668386233,
        3354512671639 / 8306763924573,
        4040 / 17871,
    ),
)
WEIGHTS = (*IMPLICIT[-1], DIAGONAL)


@register("method", "imex")
@final
@dataclass(frozen=True)
class Imex(TimeStepper):
    """ARK4(3)6L[2]SA: an L-stable implicit-explicit Runge-Kutta method of order 4 with six stages."""

    order: ClassVar[int] = 4
    references: ClassVar[tuple[str, ...]] = (
        "C. A. Kennedy, M. H. Carpenter, Appl. Numer. Math. 44 (2003) 139, appendix C, ARK4(3)6L[2]SA",
    )
    treats_linear_part: ClassVar[bool] = True
    exact_without_remainder: ClassVar[bool] = False
    real_limit: ClassVar[float] = 4.0
    imaginary_limit: ClassVar[float] = 4.0

    dt: float = option(0.01, above=0.0, unit="s", doc="largest time step; shortened to land on the saved times")
    difference_order: int = option(2, minimum=2, maximum=4, doc="order of the differences on bounded boxes, 2 or 4")
    unstable: Literal["substep", "refuse"] = "substep"

    def prepare(self, linear: Any, step: Any) -> Array:
        """(1 - step L/4)^{-1}, the same for every stage."""
        return linear.shifted_inverse(DIAGONAL * step)

    def step(self, prepared: Array, linear: Any, rate: Rate, y: Array, t: Any, step: Any) -> Array:
        """Six stages; both tableaus share the weights."""
        explicit = [rate(y, t)]
        implicit = [linear.apply(y)]
        for node, row_implicit, row_explicit in zip(NODES[1:], IMPLICIT[1:], EXPLICIT[1:], strict=True):
            total = y + step * (_weighted(row_implicit, implicit) + _weighted(row_explicit, explicit))
            stage = linear.act(prepared, total)
            explicit.append(rate(stage, t + node * step))
            implicit.append(linear.apply(stage))
        return y + step * (_weighted(WEIGHTS, implicit) + _weighted(WEIGHTS, explicit))

    def damping(self, linear: Any, step: Any) -> Matvec:
        """(1 - step L/4)^{-1}."""
        inverse = linear.shifted_inverse(DIAGONAL * step)
        return lambda y: linear.act(inverse, y)


def _weighted(weights: tuple[float, ...], terms: list[Array]) -> Any:
    return sum(w * term for w, term in zip(weights, terms, strict=True) if w != 0)
