"""Quantities of interest: one number per trajectory, for data generation, evaluation and plain surrogates.

To add one: a frozen dataclass with `field` (and other options), `measure` and `unit`, registered.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from scipy.interpolate import PchipInterpolator

from sciml.data.trajectory import TIME, Arrays, Trajectory
from sciml.errors import DataError
from sciml.registry import option, register


class Quantity(ABC):
    """A functional of a trajectory; values are float64 in the unit that `unit` says."""

    field: str | None

    def __call__(
        self, fields: Arrays, coordinates: Arrays, initial: Arrays | None = None, *, periodic: Collection[str] = ()
    ) -> float:
        """The value for one trajectory; the arguments are those of `Trajectory`."""
        return self.measure(Trajectory(fields, coordinates, initial or {}, periodic))

    @abstractmethod
    def measure(self, trajectory: Trajectory) -> float:
        """The value for one trajectory. Raises DataError where it has none."""

    @abstractmethod
    def unit(self, field: str, units: Mapping[str, str]) -> str:
        """Unit of the value, from that of the field and those of the axes by name."""


@register("quantity", "final_energy")
@final
@dataclass(frozen=True)
class FinalEnergy(Quantity):
    """Mean of the squared field over space at the last time."""

    field: str | None = option(None, doc="name of the field; the only one by default")

    def measure(self, trajectory: Trajectory) -> float:
        """See `Quantity`."""
        return trajectory.average(trajectory.final(self.field) ** 2)

    def unit(self, field: str, units: Mapping[str, str]) -> str:
        """Square of the field's."""
        del units
        return "1" if field == "1" else f"{_factor(field)}^2"


@register("quantity", "half_amplitude_time")
@final
@dataclass(frozen=True)
class HalfAmplitudeTime(Quantity):
    """Time at which the amplitude first falls to half of its value at time 0.

    The amplitude is the root mean square over space, of the field or of its deviation from the spatial
    mean. Between saved times its logarithm is interpolated by monotone cubics (exact for one decaying
    mode). When half is not reached by the last saved time, that time is returned: read such a value as
    "not before". It is not extrapolated, because nothing is known of the decay after the data end. Raises
    DataError when the field at time 0 is not known or has no amplitude.
    """

    field: str | None = option(None, doc="name of the field; the only one by default")
    about: Literal["zero", "mean"] = option("zero", doc="amplitude of the field or of its deviation from the mean")

    def measure(self, trajectory: Trajectory) -> float:
        """See `Quantity`."""
        times, states = trajectory.history(self.field)
        amplitudes = np.array([self._amplitude(state, trajectory) for state in states])
        if not amplitudes[0] > 0:
            raise DataError(
                f"{trajectory.name(self.field)} has no amplitude at time 0, hence no time at which it halves",
                expected="a field that is not constant" if self.about == "mean" else "a field that is not 0",
                got=f"amplitude {amplitudes[0]}",
            )
        decay = np.log(np.maximum(amplitudes, np.finfo(float).tiny) / amplitudes[0])
        crossings = np.atleast_1d(PchipInterpolator(times, decay).solve(np.log(0.5), extrapolate=False))
        return float(crossings[0] if len(crossings) else times[-1])

    def unit(self, field: str, units: Mapping[str, str]) -> str:
        """That of time."""
        del field
        return units.get(TIME, "1")

    def _amplitude(self, state: np.ndarray, trajectory: Trajectory) -> float:
        mean = trajectory.average(state) if self.about == "mean" else 0.0
        return float(np.sqrt(trajectory.average((state - mean) ** 2)))


@register("quantity", "maximum")
@final
@dataclass(frozen=True)
class Maximum(Quantity):
    """Largest value of the field on the grid."""

    field: str | None = option(None, doc="name of the field; the only one by default")
    when: Literal["final", "all"] = option("final", doc="at the last time, or over all saved times")

    def measure(self, trajectory: Trajectory) -> float:
        """See `Quantity`."""
        frames = trajectory.frames(self.field)
        return float(np.max(frames[-1] if self.when == "final" else frames))

    def unit(self, field: str, units: Mapping[str, str]) -> str:
        """That of the field."""
        del units
        return field


@register("quantity", "minimum")
@final
@dataclass(frozen=True)
class Minimum(Quantity):
    """Smallest value of the field on the grid."""

    field: str | None = option(None, doc="name of the field; the only one by default")
    when: Literal["final", "all"] = option("final", doc="at the last time, or over all saved times")

    def measure(self, trajectory: Trajectory) -> float:
        """See `Quantity`."""
        frames = trajectory.frames(self.field)
        return float(np.min(frames[-1] if self.when == "final" else frames))

    def unit(self, field: str, units: Mapping[str, str]) -> str:
        """That of the field."""
        del units
        return field


@register("quantity", "mean")
@final
@dataclass(frozen=True)
class Mean(Quantity):
    """Mean of the field over space at the last time."""

    field: str | None = option(None, doc="name of the field; the only one by default")

    def measure(self, trajectory: Trajectory) -> float:
        """See `Quantity`."""
        return trajectory.average(trajectory.final(self.field))

    def unit(self, field: str, units: Mapping[str, str]) -> str:
        """That of the field."""
        del units
        return field


@register("quantity", "final_maximum_gradient")
@final
@dataclass(frozen=True)
class FinalMaximumGradient(Quantity):
    """Largest length of the field's gradient on the grid at the last time: the steepness of a front.

    By central differences, so a front thinner than two grid spacings looks less steep than it is.
    """

    field: str | None = option(None, doc="name of the field; the only one by default")

    def measure(self, trajectory: Trajectory) -> float:
        """See `Quantity`."""
        state = trajectory.final(self.field)
        parts = [trajectory.derivative(state, axis) for axis in trajectory.space]
        return float(np.sqrt(np.max(np.sum(np.square(parts), axis=0))))

    def unit(self, field: str, units: Mapping[str, str]) -> str:
        """Field over length."""
        length = next((unit for axis, unit in units.items() if axis != TIME), "1")
        return field if length == "1" else f"{_factor(field)}/{_factor(length)}"


@register("quantity", "total_variation")
@final
@dataclass(frozen=True)
class TotalVariation(Quantity):
    """Sum of the absolute differences between neighboring points at the last time.

    In more dimensions: for each axis averaged over the others, then summed over the axes. A value above
    that at time 0 reveals oscillations at a front.
    """

    field: str | None = option(None, doc="name of the field; the only one by default")

    def measure(self, trajectory: Trajectory) -> float:
        """See `Quantity`."""
        state, total = trajectory.final(self.field), 0.0
        for number, axis in enumerate(trajectory.space):
            along = np.abs(trajectory.differences(state, axis)).sum(axis=number)
            total += trajectory.average(along, tuple(a for a in trajectory.space if a != axis))
        return total

    def unit(self, field: str, units: Mapping[str, str]) -> str:
        """That of the field."""
        del units
        return field


def _factor(unit: str) -> str:
    """A unit as it must be written to stand in a product."""
    return unit if unit.isalpha() or unit == "1" else f"({unit})"
