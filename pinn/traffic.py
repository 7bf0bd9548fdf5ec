"""Bytes that a physics-informed network sends in one step where `tensor` splits its layers, by formula.

A pair of layers adds its outputs once per derivative that the loss needs, since equal sums are made once, and the
slopes of its inputs once per evaluation: the residual u_t - a u_xx evaluates u and u_t for its first term, u, u_x twice
and u_xx for its second (nested forward-mode differentiation), so it adds 4 times forward and 6 times backward.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, TypeAlias, final

from sciml import axes
from sciml.calculus.base import Calculus, FieldArithmetic, total
from sciml.functions import Coefficient
from sciml.parallel.cost import ring_share
from sciml.parallel.plan import Plan
from sciml.pinn.model import PINN
from sciml.pinn.objectives import FACE, POINTS, BoundaryResidual, PointResidual
from sciml.training.objective import Data, Objective, Weighted

Orders: TypeAlias = Counter[tuple[int, ...]]
"""How often each derivative of a network is evaluated, by its orders along the entries of z."""


@final
@dataclass(frozen=True)
class Evaluated:
    """Rows at which a network is evaluated, derivatives that are needed there, and evaluations that give them."""

    rows: int
    derivatives: int
    evaluations: int


@final
@dataclass(frozen=True)
class Evaluations(FieldArithmetic):
    """A field as the evaluations that its value at one point takes."""

    orders: Orders

    def combine(self, function: Callable[..., Any], *others: Any) -> Evaluations:
        """Those of all fields together; the two factors of u * u have equal slopes, which are added once."""
        del function
        found = Counter(self.orders)
        for other in others:
            found.update(other.orders if isinstance(other, Evaluations) and other is not self else {})
        return Evaluations(found)

    def linear(self, function: Callable[..., Any], other: Any) -> Evaluations:
        """As any other combination."""
        return self.combine(function, other)

    def scaled(self, factor: Any) -> Evaluations:
        """The same ones."""
        del factor
        return self


NOTHING = Evaluations(Counter())


@final
class Counting(Calculus[Evaluations]):
    """The reading that counts what `Pointwise` evaluates."""

    def __init__(self, dim: int, has_time: bool) -> None:
        self.dim, self.has_time = dim, has_time

    def field(self, values: Any) -> Evaluations:
        """A network's output: one evaluation."""
        del values
        return Evaluations(Counter([(0,) * (self.dim + self.has_time)]))

    def values(self, u: Any) -> Orders:
        """The evaluations of a field, none of a constant."""
        return u.orders if isinstance(u, Evaluations) else Counter()

    def partial(self, u: Evaluations, axis: int, order: int = 1) -> Evaluations:
        """Forward mode: each evaluation, and its derivative."""
        found = Counter(u.orders)
        for _ in range(order):
            for orders, count in list(found.items()):
                found[*orders[:axis], orders[axis] + 1, *orders[axis + 1 :]] += count
        return Evaluations(found)

    def dt(self, u: Evaluations) -> Evaluations:
        """Along the last entry."""
        return self.partial(u, self.dim)

    def gradient(self, u: Evaluations) -> tuple[Evaluations, ...]:
        """First derivatives."""
        return tuple(self.partial(u, axis) for axis in range(self.dim))

    def divergence(self, flux: Sequence[Evaluations]) -> Evaluations:
        """Sum of the derivatives of the components."""
        return total([self.partial(component, axis) for axis, component in enumerate(flux)])

    def laplacian(self, u: Evaluations) -> Evaluations:
        """Sum of second derivatives."""
        return total([self.partial(u, axis, 2) for axis in range(self.dim)])

    def map(self, function: Callable[..., Any], *u: Evaluations) -> Evaluations:
        """As any other combination."""
        return u[0].combine(function, *u[1:])

    def sample(self, coefficient: Coefficient) -> Any:
        """Functions of a point evaluate no network."""
        return NOTHING if callable(coefficient) else coefficient

    @property
    def coordinates(self) -> tuple[Evaluations, ...]:
        """No evaluations."""
        return (NOTHING,) * self.dim

    @property
    def time(self) -> Evaluations:
        """No evaluation."""
        return NOTHING


def tensor_traffic(model: Any, objective: Objective, batch: Mapping[str, Any], plan: Plan) -> dict[str, float]:
    """Bytes by mesh axis for one step of a `PINN`; `batch` is that of all devices, prepared, or its shapes.

    Exact for equations of second order; of the slopes of higher derivatives some are equal and added once (a quarter
    of all for Kuramoto-Sivashinsky's), which is not counted. Raises TypeError for an objective without formulas.
    """
    name, found = plan.mesh_axis(axes.HIDDEN), 0.0
    if name is None:
        return {}
    parts = plan.devices // plan.sizes[name]  # rows are spread over all other axes
    kernels = [layer.kernel for layer in model.network.layers]
    for part in evaluated(objective, model, batch):
        for place, kernel in enumerate(kernels):
            names, (size_in, size_out) = kernel.get_metadata()["axes"], kernel[...].shape
            if names[0]:
                found += part.rows * part.derivatives * size_out
            elif names[1] and place:  # the first layer's inputs are not learned
                found += part.rows * part.evaluations * size_in
    return {name: 2 * ring_share(plan.sizes[name]) * found / parts * kernels[0][...].dtype.itemsize}


@singledispatch
def evaluated(objective: Objective, model: PINN, batch: Mapping[str, Any]) -> list[Evaluated]:
    """What an objective evaluates; one implementation per class."""
    del model, batch
    raise TypeError(f"no formulas for {type(objective).__name__}")


@evaluated.register
def _(objective: Data, model: PINN, batch: Mapping[str, Any]) -> list[Evaluated]:
    del model
    return [Evaluated(batch[objective.outputs[0]].shape[0], 1, 1)]


@evaluated.register
def _(objective: PointResidual, model: PINN, batch: Mapping[str, Any]) -> list[Evaluated]:
    problem = model.problem(objective.problem)
    d = Counting(problem.domain.dim, problem.is_evolution)
    terms = problem.residual({name: d.field(name) for name in model.network.unknown_names}, d).values()
    orders = [d.values(term) for term in terms]
    distinct = set().union(*orders)
    return [Evaluated(batch[POINTS].shape[0], len(distinct), sum(count.total() for count in orders))]


@evaluated.register
def _(objective: BoundaryResidual, model: PINN, batch: Mapping[str, Any]) -> list[Evaluated]:
    """Value and normal derivative of all fields at once."""
    del model
    return [Evaluated(batch[FACE + face].shape[0], 2, 2) for face in objective.problem.boundary]


@evaluated.register
def _(objective: Weighted, model: PINN, batch: Mapping[str, Any]) -> list[Evaluated]:
    return [part for inner, _ in objective.terms.values() for part in evaluated(inner, model, batch)]
