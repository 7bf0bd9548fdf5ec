"""What a numerical method is: a frozen set of recipe keys with a declared order and its references."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, ClassVar

from sciml.domain import Grid
from sciml.types import Array

Rate = Callable[[Array, Any], Array]
"""(state, time) -> time derivative of the state, or of its explicitly treated part."""

Matvec = Callable[[Array], Array]


class Method(abc.ABC):
    """A numerical scheme with an `order`; registered subclasses are frozen dataclasses whose fields are recipe keys."""

    references: ClassVar[tuple[str, ...]]
    cells: ClassVar[bool] = False
    """Whether its unknowns are averages over cells, so that a bounded box needs `Grid(box, shape, cells=True)`."""


class TimeStepper(Method):
    """A one-step method for y' = L y + N(y, t), with a step `dt` that is shortened to land on the saved times.

    `treats_linear_part` says whether L is treated exactly or implicitly; if not, N is the whole right-hand side
    and `linear` is None. The explicit part is stable while its eigenvalue times the step, damped as
    `damping` says, stays inside the ellipse with the half axes 0.9 `real_limit` and 0.9 `imaginary_limit`. An
    `imaginary_limit` of zero means that there is none: a step grows by `imaginary_growth` z^4 at i z, and how long it
    may be depends on how many there are.
    """

    order: ClassVar[int]
    dt: float
    difference_order: int
    unstable: str
    treats_linear_part: ClassVar[bool]
    exact_without_remainder: ClassVar[bool]
    real_limit: ClassVar[float]
    imaginary_limit: ClassVar[float]
    imaginary_growth: ClassVar[float] = 0.0

    @abc.abstractmethod
    def prepare(self, linear: Any, step: Any) -> Any:
        """What depends on L and the step size only, computed once for many steps."""

    @abc.abstractmethod
    def step(self, prepared: Any, linear: Any, rate: Rate, y: Array, t: Any, step: Any) -> Array:
        """The state at t + step."""

    @abc.abstractmethod
    def damping(self, linear: Any, step: Any) -> Matvec:
        """How L damps a contribution of N within one step (the identity for an explicit method)."""


class Scheme(Method):
    """A method for evolutions that brings its own discretization in space and its own march through time.

    `dt` is the largest time step. `plan` is the `Schedule` of the saved times; saved values have the shape
    (T, fields, *grid.shape).
    """

    dt: float

    @abc.abstractmethod
    def check(self, problem: Any, grid: Grid) -> None:
        """Raises `ConfigError` for a problem or a grid that the method is not made for; values may be abstract."""

    def explain(self, problem: Any, grid: Grid, place: int) -> str:
        """The `place` of a `Status` in words, such as "in cell 12 at x = 0.31"."""
        del problem, grid, place
        return ""

    @abc.abstractmethod
    def march_plainly(self, problem: Any, grid: Grid, plan: Any) -> Array:
        """The saved values with `plan.steps` steps per saved time, differentiable; a failure shows as NaN."""

    @abc.abstractmethod
    def march_watched(self, problem: Any, grid: Grid, plan: Any, steps: Any) -> tuple[Array, Any]:
        """The saved values with at least `steps` steps (shape (), may be traced) per saved time, and a `Status`."""


class EllipticSolver(Method):
    """A solver of the linear systems that a steady problem consists of (Newton's method if it is nonlinear).

    `uses_differences`: also on periodic boxes, where the others read the equation by Fourier series.
    """

    difference_order: int
    tolerance: float
    max_iterations: int
    needs_symmetry: ClassVar[bool]
    iterates: ClassVar[bool] = True
    uses_differences: ClassVar[bool] = False

    @property
    def order(self) -> int:
        """The order in space on a bounded box, that of the differences; on a periodic box it is spectral."""
        return self.difference_order

    @abc.abstractmethod
    def linear_solver(self, system: Any) -> Callable[[Matvec, Array], tuple[Array, Array]]:
        """A function (matvec, right-hand side) -> (solution, iterations as a float), transposable by jax."""
