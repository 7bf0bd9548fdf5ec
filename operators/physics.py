"""The residual of the equation on an operator's predicted fields: a loss that needs no solutions (PINO).

Source: Z. Li et al., Physics-informed neural operator, arXiv:2111.03794; here the residual is a reading of
the same equation text that the solver reads.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from sciml.calculus.finite_difference import FiniteDifference
from sciml.calculus.spectral import Spectral
from sciml.domain import Grid
from sciml.errors import ConfigError
from sciml.problem import Problem
from sciml.training.objective import Batch, Objective, Residuals, predict_batch
from sciml.types import Array

Place = tuple[str, str]
"""Where a batch entry belongs in the problem: ("initial" | "equation" | "source", name)."""


@final
@dataclass(frozen=True, eq=False)
class GridResidual(Objective):
    """Residual of `problem` on the fields that a model predicts on `grid` at `times`.

    `places` says which entries of a batch replace what in the problem: numbers, or fields sampled on the grid.
    For an evolution the initial frame is put before the predicted ones, and time derivatives are differences
    over the saved frames; they are as good as those frames are dense. One term per equation, in units of
    rms(u0) / horizon (of the residual of u = 0 if steady), and on bounded domains one term `boundary/<field>`,
    the misfit of the conditions in units of rms(u). An rms of zero counts as 1. Build it with `grid_residual`,
    which checks all that.
    """

    problem: Problem
    grid: Grid
    times: tuple[float, ...] = ()
    places: Mapping[str, Place] = field(default_factory=dict)
    difference_order: int = 2

    def residuals(self, model: nnx.Module, batch: Batch) -> Residuals:
        """Rows are samples: shape (rows, *frames, *grid)."""
        predicted = predict_batch(model, batch)
        known = {name: batch[name] for name in self.places}
        return jax.vmap(self._sample)({n: predicted[n] for n in self.problem.field_names}, known)

    def _sample(self, fields: dict[str, Array], known: dict[str, Array]) -> Residuals:
        problem = with_values(self.problem, self.places, known)
        dtype = jnp.result_type(*fields.values())
        # Second derivatives of single precision numbers lose half of their digits: go on in double precision.
        values = {name: u.astype(jnp.float64) for name, u in fields.items()}
        if self.times:
            start = self._initial(problem, known)
            values = {name: jnp.concatenate([start[name][None], u]) for name, u in values.items()}
        d = self._reading()
        states = {name: _state(d, u) for name, u in values.items()}
        terms = {name: d.values(term) for name, term in problem.residual(states, d).items()}
        scales = self._scales(problem, values, d)
        rows = {name: _interior(d, term) / scales[name] for name, term in terms.items()}
        if not all(self.grid.box.periodic):
            misfits = {name: u - d.values(states[name]) for name, u in values.items()}
            rows |= {f"boundary/{name}": m / _rms(values[name]) for name, m in misfits.items()}
        return {name: row.astype(dtype) for name, row in rows.items()}

    def _initial(self, problem: Problem, known: Mapping[str, Array]) -> dict[str, Array]:
        """Initial frames: sampled ones from the batch, the others from the problem's functions."""
        given = {place[1]: known[name] for name, place in self.places.items() if place[0] == "initial"}
        rest = dataclasses.replace(problem, initial={n: f for n, f in problem.initial.items() if n not in given})
        return {**rest.initial_values(self.grid), **{n: u.astype(jnp.float64) for n, u in given.items()}}

    def _reading(self) -> Any:
        times = (0.0, *self.times) if self.times else None
        if all(self.grid.box.periodic):
            return Spectral(self.grid, times=times)
        return FiniteDifference(self.grid, self.problem.boundary, self.difference_order, times=times)

    def _scales(self, problem: Problem, values: Mapping[str, Array], d: Any) -> dict[str, Array]:
        if self.times:
            return {name: _rms(u[0]) / self.times[-1] for name, u in values.items()}
        zero = {name: _state(d, jnp.zeros_like(u)) for name, u in values.items()}
        return {name: _rms(_interior(d, d.values(term))) for name, term in problem.residual(zero, d).items()}


def grid_residual(
    problem: Problem,
    grid: Grid,
    *,
    times: Any = None,
    replace: Mapping[str, Place] | None = None,
    difference_order: int = 2,
) -> GridResidual:
    """The residual objective of a family of problems, of which `problem` is one.

    `times` are the predicted frames' times, t = 0 not included (None if steady); `replace` maps entries of a
    batch to their places. Raises ConfigError for times that do not fit the kind of problem, or unknown places.
    """
    frames = () if times is None else tuple(float(t) for t in np.asarray(times))
    if problem.is_evolution != bool(frames):
        raise ConfigError(
            "the saved times do not fit the problem",
            expected="times after t = 0 for an evolution, none for a steady problem",
            got=f"{type(problem.equation).__name__}, times {frames or None}",
        )
    if frames and (frames[0] <= 0 or any(b <= a for a, b in zip(frames, frames[1:], strict=False))):
        raise ConfigError(
            "the predicted times must grow and come after the start", expected="0 < t1 < t2 ...", got=frames
        )
    places = dict(replace or {})
    unknown = {name: place for name, place in places.items() if place[0] not in _PUT}
    if unknown:
        raise ConfigError("unknown places in a problem", expected=sorted(_PUT), got=unknown)
    return GridResidual(problem, grid, frames, places, difference_order)


def with_values(problem: Problem, places: Mapping[str, Place], values: Mapping[str, Array]) -> Problem:
    """The problem with numbers, or fields sampled on the grid, in the given places."""
    for name, (part, target) in places.items():
        problem = _PUT[part](problem, target, values[name])
    return problem


def _put_initial(problem: Problem, name: str, value: Array) -> Problem:
    del name, value  # initial frames are prepended to the trajectory; the function stays
    return problem


def _put_coefficient(problem: Problem, name: str, value: Array) -> Problem:
    equation = dataclasses.replace(problem.equation, **{name: value.astype(jnp.float64)})
    return dataclasses.replace(problem, equation=equation)


def _put_source(problem: Problem, name: str, value: Array) -> Problem:
    return dataclasses.replace(problem, source={**problem.source, name: value.astype(jnp.float64)})


_PUT = {"initial": _put_initial, "equation": _put_coefficient, "source": _put_source}


def _state(d: Any, values: Array) -> Any:
    """The unknown in a reading; on bounded grids the conditions hold on its faces."""
    return d.state(values) if isinstance(d, FiniteDifference) else d.field(values)


def _interior(d: Any, values: Array) -> Array:
    return values[(..., *d.interior)] if isinstance(d, FiniteDifference) else values


def _rms(values: Array) -> Array:
    """Root mean square as a constant (no gradient) to divide by; 1 where all values are zero."""
    square = jax.lax.stop_gradient(jnp.mean(values**2))
    return jnp.sqrt(jnp.where(square > 0, square, 1.0))
