"""Logical axes: what a model may say about the parts of its arrays, whatever devices hold them.

A parameter names its axes (`nnx.Param(value, axes=(None, "hidden"))`), and a layer says where contributions of
the parts must be added (`total(x, "hidden")`). Which logical axis is split, and over which axis of the device
mesh, is a plan's matter: it traces the model inside `placed(Placement(...))`. Outside of one, every function
here is the identity, so that a model is an ordinary function of whole arrays.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar, final

import jax

from sciml.types import Array, PyTree

T = TypeVar("T")
HIDDEN, HEADS, SPECTRAL = "hidden", "heads", "spectral"
LAYERS, EXPERTS, SPACE = "layers", "experts", "space"
LOGICAL = (HIDDEN, HEADS, SPECTRAL, LAYERS, EXPERTS, SPACE)
"""Inner width of a pair of dense layers, attention heads, input channels of a spectral convolution; equal layers
of a stack, experts of a mixture; the first space axis of fields."""


@final
@dataclass(frozen=True)
class Placement:
    """How the program being traced is laid over devices, one device's view.

    split: logical axis -> (mesh axis, number of parts), only those with more than one part.
    options: choices of the plan that a layer may follow (`microbatches`, `schedule`, `attention`, ...).
    """

    split: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)


WHOLE = Placement()
_active: ContextVar[Placement] = ContextVar("placement", default=WHOLE)


@contextlib.contextmanager
def placed(placement: Placement) -> Iterator[None]:
    """What is traced inside follows `placement`; for use inside `jax.shard_map` only."""
    token = _active.set(placement)
    try:
        yield
    finally:
        _active.reset(token)


def placement() -> Placement:
    """The one in force."""
    return _active.get()


def parts(name: str | None) -> int:
    """Number of parts of a logical axis; 1 where it is whole."""
    return _active.get().split.get(name or "", ("", 1))[1]


def index(name: str) -> Array | int:
    """Which part this device has."""
    return jax.lax.axis_index(mesh_axis(name)) if parts(name) > 1 else 0


def mesh_axis(name: str) -> str:
    """The mesh axis over which a split logical axis lies."""
    return _active.get().split[name][0]


def total(x: Array, name: str | None) -> Array:
    """Sum of the contributions of all parts."""
    return jax.lax.psum(x, mesh_axis(name)) if name and parts(name) > 1 else x


def portion(x: Array, name: str | None, axis: int) -> Array:
    """This device's part of a whole array, cut along `axis`; its length must divide."""
    if parts(name) == 1 or name is None:
        return x
    size = x.shape[axis] // parts(name)
    return jax.lax.dynamic_slice_in_dim(x, index(name) * size, size, axis)


def swap(x: Array, name: str, split: int, join: int) -> Array:
    """All-to-all: from parts along `join` to parts along `split`."""
    if parts(name) == 1:
        return x
    return jax.lax.all_to_all(x, mesh_axis(name), split, join, tiled=True)


def varying(x: Array) -> frozenset[str]:
    """Mesh axes along which devices may hold different values of `x`."""
    if isinstance(x, jax.ShapeDtypeStruct):
        return x.manual_axis_type.varying if x.manual_axis_type else frozenset()
    kind = jax.typeof(x)
    return kind.manual_axis_type.varying if hasattr(kind, "manual_axis_type") else kind.vma


def vary(x: Array, mesh_axes: Iterable[str]) -> Array:
    """`x` marked as differing along these mesh axes, so that differentiation does not add over them by itself."""
    missing = tuple(sorted(frozenset(mesh_axes) - varying(x)))
    return jax.lax.pcast(x, missing, to="varying") if missing else x


def varying_like(x: Array, *others: Array) -> Array:
    """`x` marked as differing wherever one of `others` does: what the start of a scan's carry must be."""
    return vary(x, frozenset().union(*(varying(other) for other in others)))


def spread(x: Array, name: str) -> Array:
    """A whole array about to meet the parts of `name`: the one place where the gradients of the parts are added."""
    return vary(x, [mesh_axis(name)]) if parts(name) > 1 else x


def settled(body: Callable[..., PyTree], carry: PyTree, *rest: PyTree) -> PyTree:
    """`carry` marked as differing wherever `body(carry, *rest)` does: the start of a loop with that body."""
    while True:
        after = jax.eval_shape(body, carry, *rest)
        marked = jax.tree.map(lambda old, new: vary(old, varying(new)), carry, after)
        if jax.tree.map(varying, marked) == jax.tree.map(varying, carry):
            return marked
        carry = marked


def recomputed(function: Callable[..., T]) -> Callable[..., T]:
    """`function`, whose inner values are computed again in the backward pass if the plan wants to save memory."""
    return jax.checkpoint(function) if placement().options.get("remat") else function


def whole_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Shape of the whole field, of whose first space axis this device has a part: `(X local, ...)` to `(X, ...)`."""
    return (shape[0] * parts(SPACE), *shape[1:])
