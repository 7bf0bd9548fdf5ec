"""A traced program cut at its messages: compiled segments, and between them what MPI sends, outside of jax.

What a rank sends is made inside of a segment and leaves it as an output. Cut out of an array between two segments, an
edge would cost more than the segment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from sciml.solvers.decomposed.message import message_p

Values = Sequence[Any]
Run = Callable[..., Values]


@dataclass(frozen=True)
class _Part:
    """A segment, a message, or a loop that has messages inside: how it runs, on what, and what need not be kept."""

    run: Run
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    dead: tuple[Any, ...]


@final
class Staged:
    """A closed jaxpr that contains messages, as a function of its inputs.

    Messages are sent in the order in which the program has them, which is the same on every rank.
    """

    def __init__(self, closed: core.ClosedJaxpr) -> None:
        jaxpr = closed.jaxpr
        self._consts = [jnp.asarray(c) for c in closed.consts]
        self._inputs, self._outputs = (*jaxpr.constvars, *jaxpr.invars), tuple(jaxpr.outvars)
        self._parts = _without_dead(_cut(jaxpr), self._outputs)

    def __call__(self, *inputs: Any) -> list[Any]:
        """The outputs; messages are sent on the way."""
        known = dict(zip(self._inputs, (*self._consts, *inputs), strict=True))
        for part in self._parts:
            known.update(zip(part.outputs, part.run(*(_value(v, known) for v in part.inputs)), strict=True))
            for variable in part.dead:
                del known[variable]
        return [_value(v, known) for v in self._outputs]


def _value(variable: Any, known: dict[Any, Any]) -> Any:
    return variable.val if isinstance(variable, core.Literal) else known[variable]


def _cut(jaxpr: core.Jaxpr) -> list[_Part]:
    """What can be computed before the next message goes into one segment with it."""
    ready: dict[Any, int] = {}
    segments: dict[int, list[Any]] = {}
    stops: dict[int, list[Any]] = {}
    latest = 0
    for eqn in jaxpr.eqns:
        level = max((ready.get(v, 0) for v in eqn.invars if not isinstance(v, core.Literal)), default=0)
        if _has_messages(eqn):
            latest = level = max(level, latest)
            stops.setdefault(level, []).append(eqn)
            level += 1
        else:
            segments.setdefault(level, []).append(eqn)
        ready.update((v, level) for v in eqn.outvars)
    parts = []
    for level in range(max([*segments, *stops], default=-1) + 1):
        if level in segments:
            parts.append(_segment(segments[level], jaxpr))
        parts += [_Part(_stop(eqn), tuple(eqn.invars), tuple(eqn.outvars), ()) for eqn in stops.get(level, ())]
    return parts


def _segment(eqns: Sequence[Any], jaxpr: core.Jaxpr) -> _Part:
    """One compiled function; its outputs are the variables that anything else uses."""
    made = {v: None for eqn in eqns for v in eqn.outvars if not isinstance(v, core.DropVar)}
    inside = {id(eqn) for eqn in eqns}
    others = [v for eqn in jaxpr.eqns if id(eqn) not in inside for v in eqn.invars]
    needed = {v for v in (*others, *jaxpr.outvars) if not isinstance(v, core.Literal)}
    used = dict.fromkeys(v for eqn in eqns for v in eqn.invars if not isinstance(v, core.Literal))
    inputs, outputs = [v for v in used if v not in made], [v for v in made if v in needed]
    body = core.Jaxpr(constvars=(), invars=inputs, outvars=outputs, eqns=list(eqns), debug_info=jaxpr.debug_info)
    run = jax.jit(core.jaxpr_as_fun(core.ClosedJaxpr(body, [])))
    return _Part(run, tuple(inputs), tuple(outputs), ())


def _without_dead(parts: list[_Part], kept: Sequence[Any]) -> tuple[_Part, ...]:
    """Every variable is let go after its last use, because these are whole fields."""
    later = {v for v in kept if not isinstance(v, core.Literal)}
    marked = []
    for part in reversed(parts):
        seen = {v for v in (*part.inputs, *part.outputs) if not isinstance(v, core.Literal)}
        marked.append(_Part(part.run, part.inputs, part.outputs, tuple(seen - later)))
        later |= seen
    return tuple(reversed(marked))


def _has_messages(eqn: Any) -> bool:
    if eqn.primitive is message_p:
        return True
    return any(_has_messages(inner) for jaxpr in core.jaxprs_in_params(eqn.params) for inner in jaxpr.eqns)


def _stop(eqn: Any) -> Run:
    return _STOPS[eqn.primitive.name](eqn)


def _message(eqn: Any) -> Run:
    over, kind = eqn.params["over"], eqn.params["kind"]
    return lambda *arrays: over.deliver(kind, *(np.asarray(a) for a in arrays))


def _call(eqn: Any) -> Run:
    return Staged(eqn.params["jaxpr"])


def _while(eqn: Any) -> Run:
    params = eqn.params
    condition, body = Staged(params["cond_jaxpr"]), Staged(params["body_jaxpr"])
    n_condition, n_body = params["cond_nconsts"], params["body_nconsts"]

    def run(*inputs: Any) -> Values:
        fixed, constants = inputs[:n_condition], inputs[n_condition : n_condition + n_body]
        carry: Values = inputs[n_condition + n_body :]
        while bool(np.asarray(condition(*fixed, *carry)[0])):
            carry = body(*constants, *carry)
        return carry

    return run


def _with_one_axis_more(outside: Sequence[Any], inside: Sequence[Any]) -> int:
    """How many variables of a loop are cut into rows or made of them; jax has counted them in more than one way."""
    return sum(out.aval.ndim > inner.aval.ndim for out, inner in zip(outside, inside, strict=True))


def _scan(eqn: Any) -> Run:
    params = eqn.params
    body, length, inside = Staged(params["jaxpr"]), params["length"], params["jaxpr"].jaxpr
    n_rows, n_made = _with_one_axis_more(eqn.invars, inside.invars), _with_one_axis_more(eqn.outvars, inside.outvars)
    n_carry = len(eqn.outvars) - n_made
    n_constants = len(eqn.invars) - n_rows - n_carry

    def run(*inputs: Any) -> Values:
        constants, carry = inputs[:n_constants], inputs[n_constants : n_constants + n_carry]
        rows = [np.asarray(x) for x in inputs[n_constants + n_carry :]]
        made: list[Values] = []
        for i in reversed(range(length)) if params["reverse"] else range(length):
            results = body(*constants, *carry, *(x[i] for x in rows))
            carry = results[:n_carry]
            made.append([np.asarray(y) for y in results[n_carry:]])
        ordered = made[::-1] if params["reverse"] else made
        return [*carry, *(np.stack(column) for column in zip(*ordered, strict=True))]

    return run


_STOPS: dict[str, Callable[[Any], Run]] = {
    "message": _message,
    "jit": _call,
    "pjit": _call,
    "closed_call": _call,
    "while": _while,
    "scan": _scan,
}
