"""One rank: what the others are compared with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, final

import jax
import numpy as np

from sciml.registry import register
from sciml.solvers.decomposed.communicator import Communicator, Program
from sciml.types import Array


@register("communicator", "serial")
@final
@dataclass(frozen=True)
class Serial(Communicator):
    """One process that holds everything."""

    @property
    def size(self) -> int:
        """One."""
        return 1

    @property
    def rank(self) -> int:
        """The first."""
        return 0

    def exchange(self, blocks: Array) -> Array:
        """The block itself."""
        return blocks

    def shift(self, first: Array, last: Array) -> tuple[Array, Array]:
        """Its own edges, from the other side."""
        return last, first

    def total(self, value: Array) -> Array:
        """The value itself."""
        return value

    def run(self, program: Program, *inputs: Any) -> tuple[Any, Any]:
        """One compiled call."""
        return _compiled(program)(*inputs)

    def said(self, value: str) -> list[str]:
        """The one value."""
        return [value]

    def held(self, values: Any) -> tuple[np.ndarray, int]:
        """All of them."""
        return np.asarray(values), 0

    def gathered(self, rows: np.ndarray) -> np.ndarray:
        """The rows themselves."""
        return rows


@lru_cache(maxsize=32)
def _compiled(program: Program) -> Any:
    return jax.jit(program)
