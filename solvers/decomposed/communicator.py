"""The ranks that share one sample, and what they tell each other."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

import numpy as np

from sciml.types import Array

Program = Callable[..., tuple[Array, Any]]
"""What every rank runs: arrays in; out come values whose axis `ROWS` is shared, and what is the same on all ranks."""

ROWS = 2
"""The shared axis of saved values, shape (T, fields, rows, ...)."""


class Communicator(abc.ABC):
    """The processes or devices that hold one sample together, each a slab of rows along the first axis of the grid.

    Registered subclasses are frozen dataclasses, equal if they connect the same ranks. The first three methods are
    used inside of a `Program`; a rank that is traced by jax is an array.
    """

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """How many ranks there are."""

    @property
    @abc.abstractmethod
    def rank(self) -> Any:
        """Which of them this is, from 0; may be traced inside of a program."""

    @abc.abstractmethod
    def exchange(self, blocks: Array) -> Array:
        """Block i of the first axis, shape (size, ...), goes to rank i; block i of the result came from there."""

    @abc.abstractmethod
    def shift(self, first: Array, last: Array) -> tuple[Array, Array]:
        """On a ring of ranks: `last` of the rank before, and `first` of the one after."""

    @abc.abstractmethod
    def total(self, value: Array) -> Array:
        """The sum over the ranks, the same bits on all of them."""

    @abc.abstractmethod
    def run(self, program: Program, *inputs: Any) -> tuple[Any, Any]:
        """The outputs of a program, which is hashable, on inputs that are the same everywhere; compiled once."""

    @abc.abstractmethod
    def said(self, value: str) -> list[str]:
        """What every process says, in the order of their ranks."""

    @abc.abstractmethod
    def held(self, values: Any) -> tuple[np.ndarray, int]:
        """The rows of saved values that this process holds, and which is the first of its ranks."""

    @abc.abstractmethod
    def gathered(self, rows: np.ndarray) -> np.ndarray | None:
        """All rows of saved values, from those each process holds; None except on the first process."""
