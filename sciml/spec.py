"""What goes into a model and what comes out: names, units, shapes, axes, ranges. Plain Python, no arrays.

A sample is a flat dict `name -> array` in physical units; `Spec` describes the names of one. It travels from
the data set through the model into the saved surrogate, so it is JSON all the way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from sciml.errors import ConfigError

Role: TypeAlias = Literal["field", "scalar", "point"]
DType: TypeAlias = Literal["float32", "float64"]
"""Numbers on disk."""
Numbers: TypeAlias = float | tuple[float, ...]
NON_SPATIAL = ("time", "channel")


@dataclass(frozen=True)
class Variable:
    """One named input or output of a sample.

    `shape` and `axes` are those of one sample without a batch axis: `(10, 64)`, `("time", "x")` for a
    trajectory, `()` for a scalar. `low` and `high` are the range seen in training, in `unit`.
    `role` is "scalar" for parameters and quantities of interest, "point" for a coordinate at which a
    pointwise model is evaluated, "field" otherwise. Raises ConfigError when shape and axes disagree.
    """

    name: str
    unit: str = "1"
    shape: tuple[int, ...] = ()
    axes: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    role: Role = "field"

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple(int(n) for n in self.shape))
        object.__setattr__(self, "axes", tuple(self.axes))
        if len(self.shape) != len(self.axes):
            raise ConfigError(
                f"variable {self.name!r} has {len(self.shape)} sizes and {len(self.axes)} axis names",
                expected="one axis name for each size",
                got=f"shape {self.shape}, axes {self.axes}",
                fix=f'Variable("{self.name}", shape=(10, 64), axes=("time", "x"))',
            )
        if self.role not in get_args(Role):
            raise ConfigError(f"variable {self.name!r} has an unknown role", expected=get_args(Role), got=self.role)

    @property
    def spatial(self) -> tuple[str, ...]:
        """Axis names without time and channel; none for a list of numbers (role "scalar" with a shape)."""
        return () if self.role == "scalar" else tuple(axis for axis in self.axes if axis not in NON_SPATIAL)

    @property
    def size(self) -> int:
        """Number of values in one sample."""
        return math.prod(self.shape)

    def describe(self) -> str:
        """`u0 (x: 64) [K]`: what error messages and the artifact's README print."""
        sizes = ", ".join(f"{axis}: {n}" for axis, n in zip(self.axes, self.shape, strict=True))
        return f"{self.name} ({sizes or 'scalar'}) [{self.unit}]"

    def to_json(self) -> dict[str, Any]:
        """Plain values; `from_json` is the inverse."""
        return {
            "name": self.name,
            "unit": self.unit,
            "shape": list(self.shape),
            "axes": list(self.axes),
            "low": self.low,
            "high": self.high,
            "role": self.role,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Variable:
        """Inverse of `to_json`."""
        return cls(**{**value, "shape": tuple(value["shape"]), "axes": tuple(value["axes"])})


@dataclass(frozen=True)
class Spec:
    """Inputs and outputs by name, in the order of a positional call, with the coordinates of every axis.

    `coordinates` maps an axis name ("time" included) to its values; `periodic` names the axes whose last
    point is followed by the first. Raises ConfigError for repeated names or sizes that disagree.
    """

    inputs: tuple[Variable, ...]
    outputs: tuple[Variable, ...]
    coordinates: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    periodic: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", tuple(self.inputs))
        object.__setattr__(self, "outputs", tuple(self.outputs))
        object.__setattr__(self, "periodic", tuple(self.periodic))
        points = {axis: tuple(float(v) for v in values) for axis, values in self.coordinates.items()}
        object.__setattr__(self, "coordinates", points)
        _refuse_repeated_names(self)
        _refuse_inconsistent_axes(self)

    def __hash__(self) -> int:
        return hash((self.inputs, self.outputs, tuple(sorted(self.coordinates.items())), self.periodic))

    def input(self, name: str) -> Variable:
        """The input called `name`; ConfigError otherwise."""
        return _find(self.inputs, name, "input")

    def output(self, name: str) -> Variable:
        """The output called `name`; ConfigError otherwise."""
        return _find(self.outputs, name, "output")

    def to_json(self) -> dict[str, Any]:
        """Plain values; `from_json` is the inverse."""
        return {
            "inputs": [v.to_json() for v in self.inputs],
            "outputs": [v.to_json() for v in self.outputs],
            "coordinates": {axis: list(values) for axis, values in self.coordinates.items()},
            "periodic": list(self.periodic),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Spec:
        """Inverse of `to_json`."""
        return cls(
            inputs=tuple(Variable.from_json(v) for v in value["inputs"]),
            outputs=tuple(Variable.from_json(v) for v in value["outputs"]),
            coordinates={axis: tuple(points) for axis, points in value["coordinates"].items()},
            periodic=tuple(value.get("periodic", ())),
        )


@dataclass(frozen=True)
class Statistics:
    """Mean, standard deviation and range of one variable over the training samples, in its unit.

    Each is a number, or a tuple with one entry per index of the variable's first axis (per saved time).
    """

    mean: Numbers
    std: Numbers
    low: Numbers
    high: Numbers

    def __post_init__(self) -> None:
        for name in ("mean", "std", "low", "high"):
            object.__setattr__(self, name, _numbers(getattr(self, name)))

    def to_json(self) -> dict[str, Any]:
        """Plain values; `from_json` is the inverse."""
        values = {name: getattr(self, name) for name in ("mean", "std", "low", "high")}
        return {name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Statistics:
        """Inverse of `to_json`."""
        return cls(**value)


def _numbers(value: Any) -> Numbers:
    """A float, or a tuple of floats for anything with a length (lists and 1D arrays included)."""
    if getattr(value, "ndim", None) == 0 or not hasattr(value, "__len__"):
        return float(value)
    return tuple(float(v) for v in value)


def _find(variables: tuple[Variable, ...], name: str, what: str) -> Variable:
    for variable in variables:
        if variable.name == name:
            return variable
    raise ConfigError(f"no {what} named {name!r}", expected=[v.name for v in variables], got=name)


def _refuse_repeated_names(spec: Spec) -> None:
    names = [v.name for v in (*spec.inputs, *spec.outputs)]
    repeated = sorted({n for n in names if names.count(n) > 1})
    if repeated:
        raise ConfigError(
            "a spec uses a name twice",
            expected="every input and output has its own name",
            got=repeated,
            reason="the initial field and the predicted field are both called u",
            fix="call the initial field u0",
        )


def _refuse_inconsistent_axes(spec: Spec) -> None:
    for variable in (*spec.inputs, *spec.outputs):
        for axis, size in zip(variable.axes, variable.shape, strict=True):
            points = spec.coordinates.get(axis)
            if points is not None and len(points) != size:
                raise ConfigError(
                    f"{variable.name!r} does not fit the coordinates of axis {axis!r}",
                    expected=f"{len(points)} points",
                    got=f"{size} in shape {variable.shape}",
                )
