"""An equation on elements: residuals and matrices, element by element in JAX, from the weak reading of its text."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciml.boundary import Condition, condition_for
from sciml.calculus.weak import Weak, WeakField, WeakForm, parts
from sciml.errors import ConfigError
from sciml.functions import evaluate_on
from sciml.problem import Problem
from sciml.solvers.finite_element.elements import Elements, Patch
from sciml.solvers.finite_element.linear import Pattern
from sciml.types import Array


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Space:
    """Tables of the elements and the sparse matrix of a problem's fields; states have the shape (fields, nodes).

    `facets` are those of the parts where some field has no Dirichlet condition. `free`: the places in a flattened
    state that no Dirichlet condition fixes; `slots`: of every entry of an element's matrix, shape (fields, n, fields,
    k, n) for (column field, column, row field, element, row), the place among the entries of the pattern.
    """

    points: Any
    cells: Patch
    facets: dict[str, Patch]
    fixed: dict[str, Any]
    free: Any
    pattern: Pattern
    slots: dict[str, Any]
    names: tuple[str, ...] = field(metadata={"static": True})

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of a state."""
        return len(self.names), len(self.points)

    def patches(self) -> list[tuple[str, Patch]]:
        """The cells, called "", and the facets by part."""
        return [("", self.cells), *self.facets.items()]


def space_for(problem: Problem, elements: Elements) -> Space:
    """The space of a problem, made once for all problems with the same fields and kinds of conditions."""
    names = problem.field_names
    essential = {
        face: tuple(condition_for(conditions, name).beta == 0 for name in names)
        for face, conditions in problem.boundary.items()
    }
    return _space(elements, names, tuple(essential.items()))


@lru_cache(maxsize=8)
def _space(elements: Elements, names: tuple[str, ...], essential: tuple[tuple[str, tuple[bool, ...]], ...]) -> Space:
    count = len(elements.nodes)
    is_fixed = np.zeros((len(names), count), bool)
    for face, fields in essential:
        for i, yes in enumerate(fields):
            is_fixed[i, elements.nodes_on[face]] |= yes
    free = np.flatnonzero(~is_fixed.ravel())
    if not len(free):
        raise ConfigError("every node of the mesh is fixed by a condition", fix="more cells, or degree=2")
    facets = {face: elements.facets[face] for face, fields in essential if not all(fields)}
    number = np.full(is_fixed.size, -1)
    number[free] = np.arange(len(free))
    keys = {}
    for name, patch in [("", elements.cells), *facets.items()]:
        unknown = number[np.arange(len(names))[:, None, None] * count + patch.nodes]  # (fields, k, n)
        row = unknown[None, None]
        column = np.moveaxis(unknown, 2, 1)[:, :, None, :, None]
        keys[name] = np.where((row < 0) | (column < 0), -1, column * len(free) + row)
    entries = np.unique(np.concatenate([k.ravel() for k in keys.values()]))
    entries = entries[entries >= 0]
    columns, rows = np.divmod(entries, len(free))
    starts = np.searchsorted(columns, np.arange(len(free) + 1))
    slots = {n: np.where(k < 0, len(entries), np.searchsorted(entries, k)).astype(np.int32) for n, k in keys.items()}
    pattern = Pattern(rows.astype(np.int32), columns.astype(np.int32), starts.astype(np.int32), len(free))
    return Space(elements.nodes, elements.cells, facets, dict(elements.nodes_on), free, pattern, slots, names)


def lift(space: Space, problem: Problem, t: Any) -> Array:
    """The values that Dirichlet conditions prescribe at time t, zero elsewhere: a state."""
    u = jnp.zeros(space.shape)
    for face, conditions in problem.boundary.items():
        for i, name in enumerate(space.names):
            condition = condition_for(conditions, name)
            if condition.beta == 0:
                nodes = space.fixed[face]
                values = _value(condition, jnp.asarray(space.points)[nodes], t)
                u = u.at[i, nodes].set(values / condition.alpha)
    return u


def residual(space: Space, problem: Problem, u: Array, rate: Array | None, t: Any) -> Array:
    """The weak residual of a state and its time derivative, tested with every free function: shape (unknowns,)."""
    total = jnp.zeros(space.shape)
    for name, patch in space.patches():
        local_rate = None if rate is None else rate[:, patch.nodes]
        total = total.at[:, patch.nodes].add(_local(space, problem, name, u[:, patch.nodes], local_rate, t))
    return total.ravel()[space.free]


def matrix(space: Space, problem: Problem, u: Array, rate: Array | None, t: Any, weights: tuple[Any, Any]) -> Array:
    """The entries of a dr/du + b dr/drate, `weights` being (a, b), for the pattern of the space."""
    entries = jnp.zeros(space.pattern.rows.shape[0] + 1)
    a, b = weights
    for name, patch in space.patches():
        if name and not _depends_on_state(problem, space, name):
            continue
        shape = (len(space.names), *patch.nodes.shape)
        rates = None if rate is None else rate[:, patch.nodes]

        def local(y: Array, name: str = name, patch: Patch = patch, rates: Any = rates) -> Array:
            moved = None if rates is None else rates + b * y
            return _local(space, problem, name, u[:, patch.nodes] + a * y, moved, t)

        _, derivative = jax.linearize(local, jnp.zeros(shape))
        units = jnp.eye(shape[0] * shape[2]).reshape(shape[0] * shape[2], shape[0], 1, shape[2])
        found = jax.vmap(lambda e, d=derivative, s=shape: d(jnp.broadcast_to(e, s)))(units)
        entries = entries.at[space.slots[name]].add(found.reshape(space.slots[name].shape))
    return entries[:-1]


def _local(space: Space, problem: Problem, face: str, u: Array, rate: Array | None, t: Any) -> Array:
    """The residual of each element, shape (fields, k, n), from the values at its nodes, of the same shape."""
    patch: Patch = space.facets[face] if face else space.cells
    if face and not _needs_text(problem, space, face):
        return _prescribed(problem, space, face, u, patch, t)
    d = WeakForm(jnp.asarray(patch.points), t, lambda values: _interpolated(patch, jnp.asarray(values)[patch.nodes]))
    fields = {name: _interpolated(patch, u[i], None if rate is None else rate[i]) for i, name in enumerate(space.names)}
    if face:
        fields = {name: _with_condition(problem, face, name, f, patch, t) for name, f in fields.items()}
    terms = problem.residual(fields, d)
    found = []
    for name in space.names:
        term = terms.get(name, 0.0)
        found.append(_of_face(problem, face, name, term, fields, patch, t) if face else _of_cell(term, patch))
    return jnp.stack(found)


def _conditions(problem: Problem, space: Space, face: str) -> list[Condition]:
    """Of every field on one part of the boundary."""
    return [condition_for(problem.boundary[face], name) for name in space.names]


def _needs_text(problem: Problem, space: Space, face: str) -> bool:
    """Whether some condition is one on the normal derivative, from which the equation makes its flux."""
    return any(c.beta != 0 and not c.of_flux for c in _conditions(problem, space, face))


def _depends_on_state(problem: Problem, space: Space, face: str) -> bool:
    return any(c.beta != 0 and (c.alpha != 0 or not c.of_flux) for c in _conditions(problem, space, face))


def _prescribed(problem: Problem, space: Space, face: str, u: Array, patch: Patch, t: Any) -> Array:
    """The boundary integrals where conditions prescribe fluxes, not the text of the equation."""
    found = []
    for i, condition in enumerate(_conditions(problem, space, face)):
        value = None if condition.beta == 0 else _slope_from(condition, _at_points(patch, u[i]), patch, t)
        found.append(jnp.zeros(patch.nodes.shape) if value is None else -_tested(patch, value))
    return jnp.stack(found)


def _interpolated(patch: Patch, u: Array, rate: Array | None = None) -> WeakField:
    """Values (k, n) at the nodes as a field at the quadrature points."""
    slopes = jnp.einsum("kqnd,kn->dkq", patch.slopes, u)
    return WeakField(_at_points(patch, u), tuple(slopes), None if rate is None else _at_points(patch, rate))


def _at_points(patch: Patch, u: Array) -> Array:
    if patch.shapes.shape[0] == 1:
        return jnp.einsum("qn,kn->kq", patch.shapes[0], u)
    return jnp.einsum("kqn,kn->kq", patch.shapes, u)


def _tested(patch: Patch, density: Any) -> Array:
    """The integrals of a density times each function of an element, shape (k, n)."""
    weighted = jnp.broadcast_to(density, patch.weights.shape) * patch.weights
    if patch.shapes.shape[0] == 1:
        return jnp.einsum("kq,qn->kn", weighted, patch.shapes[0])
    return jnp.einsum("kq,kqn->kn", weighted, patch.shapes)


def _of_cell(term: Any, patch: Patch) -> Array:
    source, flux = parts(term, patch.points.shape[-1])
    found = _tested(patch, source)
    if isinstance(term, Weak):
        components = jnp.stack([jnp.broadcast_to(f, patch.weights.shape) * patch.weights for f in flux], axis=-1)
        found = found - jnp.einsum("kqd,kqnd->kn", components, patch.slopes)
    return found


def _of_face(
    problem: Problem, face: str, name: str, term: Any, fields: dict[str, WeakField], patch: Patch, t: Any
) -> Array:
    condition = condition_for(problem.boundary[face], name)
    if condition.beta == 0:
        return jnp.zeros(patch.nodes.shape)
    if not isinstance(term, Weak):
        raise ConfigError(
            f"the equation of {name!r} has no flux that a condition on {face!r} could prescribe",
            expected="a Dirichlet condition",
            got="a Neumann, Robin or inflow condition",
            reason="the term contains no second derivative and no divergence",
        )
    if condition.of_flux:
        return -_tested(patch, _slope_from(condition, fields[name].value, patch, t))
    return _tested(patch, sum(part * patch.normals[..., axis] for axis, part in enumerate(term.flux)))


def _with_condition(problem: Problem, face: str, name: str, u: WeakField, patch: Patch, t: Any) -> WeakField:
    """A field whose normal derivative is the one that its Neumann or Robin condition says."""
    condition = condition_for(problem.boundary[face], name)
    if condition.beta == 0 or condition.of_flux:
        return u
    slopes = jnp.stack(u.slopes or (), axis=-1)
    change = _slope_from(condition, u.value, patch, t) - jnp.sum(slopes * patch.normals, axis=-1)
    slopes = slopes + change[..., None] * patch.normals
    return WeakField(u.value, tuple(jnp.moveaxis(slopes, -1, 0)), u.rate)


def _slope_from(condition: Condition, u: Any, patch: Patch, t: Any) -> Array:
    """(value - alpha u)/beta."""
    return (_value(condition, jnp.asarray(patch.points), t) - condition.alpha * u) / condition.beta


def _value(condition: Condition, points: Array, t: Any) -> Array:
    value = condition.value
    return evaluate_on(value, points, t) if callable(value) else jnp.broadcast_to(value, points.shape[:-1])
