"""One solution on its grid, with the averages and differences from which quantities of interest are made."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from sciml.errors import DataError

Arrays: TypeAlias = Mapping[str, np.ndarray]
TIME = "time"


@dataclass(frozen=True)
class Trajectory:
    """Fields `(time, *space)`, or `(*space)` when `coordinates` has no "time" (steady problems).

    `coordinates` maps an axis to its points (n,), in the order of the arrays' axes; `initial` maps a field
    to its values `(*space)` at time 0; `periodic` names axes whose last point is followed by the first.
    Averages weight the points of a bounded axis by the trapezoidal rule, those of a periodic one equally.
    """

    fields: Arrays
    coordinates: Arrays
    initial: Arrays = field(default_factory=dict)
    periodic: Collection[str] = ()

    @property
    def space(self) -> tuple[str, ...]:
        """Names of the space axes, in order."""
        return tuple(axis for axis in self.coordinates if axis != TIME)

    def name(self, wanted: str | None) -> str:
        """`wanted`, or the only field there is; DataError when it is missing or there are several."""
        if wanted is None and len(self.fields) == 1:
            return next(iter(self.fields))
        if wanted is None or wanted not in self.fields:
            raise DataError(
                "which field a quantity is about is unclear" if wanted is None else f"no field {wanted!r}",
                expected=" | ".join(self.fields),
                got=wanted,
                fix=f"field: {next(iter(self.fields), 'u')}",
            )
        return wanted

    def frames(self, wanted: str | None) -> np.ndarray:
        """All saved states of a field: (time, *space), float64; one frame for a steady problem."""
        values = np.asarray(self.fields[self.name(wanted)], np.float64)
        return values if TIME in self.coordinates else values[None]

    def final(self, wanted: str | None) -> np.ndarray:
        """The last saved state of a field: (*space), float64."""
        return self.frames(wanted)[-1]

    def history(self, wanted: str | None) -> tuple[np.ndarray, np.ndarray]:
        """(times, states) from time 0 on: (n,), (n, *space). DataError when time 0 is not known."""
        name, states = self.name(wanted), self.frames(wanted)
        times = np.asarray(self.coordinates.get(TIME, ()), np.float64)
        if len(times) and times[0] > 0 and name in self.initial:
            times = np.concatenate([[0.0], times])
            states = np.concatenate([np.asarray(self.initial[name], np.float64)[None], states])
        if len(times) < 2 or times[0] > 0:
            raise DataError(
                f"the history of {name} does not start at time 0",
                expected="an initial field or a first saved time of 0, and at least one later time",
                got=f"times {times[:3]}, initial fields {sorted(self.initial)}",
            )
        return times, states

    def average(self, values: np.ndarray, over: tuple[str, ...] | None = None) -> float:
        """Mean over space of `values`, whose axes are `over` (default: all space axes)."""
        for axis in reversed(self.space if over is None else over):
            values = values @ self._weights(axis)
        return float(values)

    def differences(self, values: np.ndarray, axis: str) -> np.ndarray:
        """Values of the next point minus those of each point along `axis` of `values` (*space)."""
        number = self.space.index(axis)
        closed = np.concatenate([values, values.take([0], number)], number) if axis in self.periodic else values
        return np.diff(closed, axis=number)

    def derivative(self, values: np.ndarray, axis: str) -> np.ndarray:
        """Central difference along `axis` of `values` (*space); one-sided at the ends of a bounded axis."""
        number, points = self.space.index(axis), np.asarray(self.coordinates[axis], np.float64)
        if axis in self.periodic:
            spacing = points[1] - points[0]
            return (np.roll(values, -1, number) - np.roll(values, 1, number)) / (2 * spacing)
        return np.gradient(values, points, axis=number, edge_order=2 if len(points) > 2 else 1)

    def _weights(self, axis: str) -> np.ndarray:
        points = np.asarray(self.coordinates[axis], np.float64)
        if axis in self.periodic or len(points) < 2:
            return np.full(len(points), 1.0 / len(points))
        cells = np.diff(points)
        return (np.append(cells, 0.0) + np.append(0.0, cells)) / (2 * cells.sum())
