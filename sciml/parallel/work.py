"""What a traced program does, counted in its text (a jaxpr) before any compiler sees it: arithmetic, memory, messages.

Loops of known length count that often, loops of unknown length once. Memory is that of a machine that works through
the operations one by one, frees what is not needed any more, and fuses chains of elementwise operations; a real
compiler does a little better or worse.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from sciml.types import PyTree

VIEWS = frozenset(
    ("reshape", "squeeze", "expand_dims", "broadcast_in_dim", "transpose", "iota", "copy", "pvary", "pcast", "rev")
)
"""Operations that become part of their users."""
MOVES = frozenset(
    ("slice", "dynamic_slice", "dynamic_update_slice", "gather", "scatter", "scatter-add", "concatenate", "pad")
)
"""Operations that copy and compute nothing."""
MESSAGES = frozenset(
    ("psum", "psum_invariant", "all_gather", "all_gather_invariant", "reduce_scatter", "all_to_all", "ppermute", "pmax")
)


@final
@dataclass(frozen=True)
class Work:
    """Of one device: floating-point operations, bytes read and written, largest sum of live intermediate values, and
    how many messages are started over each set of mesh axes.
    """

    flops: float = 0.0
    moved: float = 0.0
    peak: float = 0.0
    messages: Mapping[str, float] = field(default_factory=dict)


def work_of(program: PyTree) -> Work:
    """The work of a jaxpr, one device's where it holds a `shard_map`."""
    return _work(program.jaxpr if isinstance(program, ClosedJaxpr) else program)


def _work(program: Jaxpr) -> Work:
    memory, flops, moved, messages = _Memory.of(program), 0.0, 0.0, defaultdict[str, float](float)
    for place, operation in enumerate(program.eqns):
        name, times, inner = operation.primitive.name, 1, Work()
        for body, repeats in _bodies(operation):
            found = _work(body)
            inner = max(inner, found, key=lambda w: w.flops + w.peak)
            times = repeats
        outputs = sum(_bytes(v) for v in operation.outvars)
        if inner.flops or inner.peak:
            flops, moved = flops + times * inner.flops, moved + times * inner.moved
            for axes, count in inner.messages.items():
                messages[axes] += times * count
        elif name not in VIEWS:
            flops += FLOPS.get(name, _one_each)(operation) if name not in MOVES else 0.0
            reads = sum(_bytes(v) for v in operation.invars) if name in FLOPS else 0.0
            moved += outputs + reads
        if name in MESSAGES:
            messages["+".join(_names(operation.params))] += 1
        memory.run(place, operation, inner.peak, keeps=name == "scan")
    return Work(flops, moved, memory.peak, dict(messages))


@dataclass
class _Memory:
    """Live intermediate values during a walk over a program; what comes from outside is not counted."""

    last: dict[Any, int]
    roots: dict[Any, Any] = field(default_factory=dict)
    live: dict[Any, float] = field(default_factory=dict)
    peak: float = 0.0

    @classmethod
    def of(cls, program: Jaxpr) -> _Memory:
        """Before the first operation: when is each value needed for the last time."""
        roots: dict[Any, Any] = {}
        last: dict[Any, int] = {}
        for place, operation in enumerate(program.eqns):
            given = [v for v in operation.invars if not isinstance(v, Literal)]
            if operation.primitive.name in VIEWS and given:
                roots[operation.outvars[0]] = roots.get(given[0], given[0])
            for v in given:
                last[roots.get(v, v)] = place
        for v in program.outvars:
            if not isinstance(v, Literal):
                last[roots.get(v, v)] = len(program.eqns)
        return cls(last, roots)

    def run(self, place: int, operation: Any, inside: float, keeps: bool) -> None:
        """One operation; a loop that `keeps` holds its outputs while its body runs."""
        if operation.primitive.name in VIEWS:
            return
        made = {v: float(_bytes(v)) for v in operation.outvars if v in self.last}
        before, outputs = sum(self.live.values()), sum(made.values())
        dying = [v for v in self.live if self.last[v] <= place]
        reused = 0.0 if operation.primitive.name in FLOPS or inside else sum(self.live[v] for v in dying)
        needed = outputs + inside if keeps else max(outputs, inside)
        self.peak = max(self.peak, before + max(needed - reused, 0.0))
        for v in dying:
            del self.live[v]
        self.live.update(made)


def _bodies(operation: Any) -> Iterator[tuple[Jaxpr, int]]:
    """Programs inside an operation, and how often they run."""
    times = operation.params.get("length", 1) if operation.primitive.name == "scan" else 1
    for name, value in operation.params.items():
        if name in ("jvp_jaxpr_fun", "cond_jaxpr", "fwd_jaxpr_thunk", "bwd"):
            continue
        for part in value if isinstance(value, tuple | list) else (value,):
            if isinstance(part, ClosedJaxpr):
                yield part.jaxpr, times
            elif isinstance(part, Jaxpr):
                yield part, times


def _names(params: Mapping[str, Any]) -> tuple[str, ...]:
    found = params.get("axes", params.get("axis_name", ()))
    return tuple(map(str, found)) if isinstance(found, tuple) else (str(found),)


def _bytes(v: Any) -> float:
    shape, kind = getattr(v.aval, "shape", ()), getattr(v.aval, "dtype", None)
    if kind is None or not isinstance(kind, np.dtype):
        return 0.0
    return math.prod(shape) * kind.itemsize


def _one_each(operation: Any) -> float:
    sizes = [math.prod(getattr(v.aval, "shape", ())) for v in (*operation.outvars, *operation.invars)]
    return float(max(sizes, default=0))


def _product(operation: Any) -> float:
    (left, _), _ = operation.params["dimension_numbers"]
    inner = math.prod(operation.invars[0].aval.shape[i] for i in left)
    return 2.0 * math.prod(operation.outvars[0].aval.shape) * inner


def _fourier(operation: Any) -> float:
    size = math.prod(operation.params["fft_lengths"])
    points = max(math.prod(v.aval.shape) for v in (operation.invars[0], operation.outvars[0]))
    return 5.0 * points * math.log2(max(size, 2))


def _factorization(operation: Any) -> float:
    *batch, n = operation.invars[0].aval.shape[:-1]
    return math.prod(batch) * n**3 / 3


def _substitution(operation: Any) -> float:
    matrix, right = (v.aval.shape for v in operation.invars[:2])
    return float(matrix[-1] * math.prod(right))


FLOPS: dict[str, Callable[[Any], float]] = {
    "dot_general": _product,
    "fft": _fourier,
    "cholesky": _factorization,
    "triangular_solve": _substitution,
}
"""Operations that cost more than one operation per number."""
