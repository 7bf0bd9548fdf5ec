"""What ranks tell each other, as an operation that jax can trace and differentiate before it is sent."""

from __future__ import annotations

from typing import Any, Literal

from jax.extend.core import Primitive
from jax.interpreters import ad, mlir

from sciml.types import Array

Kind = Literal["exchange", "shift", "total"]
"""The three messages of a `Communicator`."""

message_p = Primitive("message")
message_p.multiple_results = True


def send(over: Any, kind: Kind, *arrays: Array) -> tuple[Array, ...]:
    """The arrays that come back, of the same shapes; `over.deliver(kind, *arrays)` does it.

    `over.effects` are those of jax that keep messages in order inside of one compiled program.
    """
    return tuple(message_p.bind(*arrays, over=over, kind=kind))


@message_p.def_effectful_abstract_eval
def _same_shapes(*arrays: Any, over: Any, kind: Kind) -> tuple[list[Any], Any]:
    del kind
    return list(arrays), over.effects


def _tangents(arrays: Any, tangents: Any, *, over: Any, kind: Kind) -> tuple[Any, Any]:
    """Every message is linear."""
    known = [ad.instantiate_zeros(tangent) for tangent in tangents]
    return message_p.bind(*arrays, over=over, kind=kind), message_p.bind(*known, over=over, kind=kind)


def _inside_a_program(*arrays: Any, over: Any, kind: Kind) -> list[Any]:
    """How a compiled program sends: for communicators whose messages are operations of XLA themselves."""
    return list(over.deliver(kind, *arrays))


ad.primitive_jvps[message_p] = _tangents
mlir.register_lowering(message_p, mlir.lower_fun(_inside_a_program, multiple_results=True))
