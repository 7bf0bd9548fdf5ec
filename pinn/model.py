"""A physics-informed network for one instance of a problem, with unknown coefficients to be recovered."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, final

import jax.numpy as jnp
import numpy as np
from flax import nnx

from sciml.domain import Box
from sciml.errors import ConfigError
from sciml.pinn.network import FieldNetwork
from sciml.pinn.scales import auxiliary_scales
from sciml.problem import Problem
from sciml.registry import option, register
from sciml.spec import Spec, Statistics, Variable
from sciml.types import Array


class PINN(nnx.Module):
    """Fields of one problem as a function of a point, and its unknown coefficients.

    Called with a dict of coordinates (`x`, `y`, `z`, `t`, each a number) it returns a dict of fields. Unknown
    coefficients are guess * exp(parameter), hence positive and of order one for the optimizer.
    """

    def __init__(self, network: FieldNetwork, guesses: Mapping[str, float]) -> None:
        self.network = network
        self.coordinates = coordinate_names(network.box, network.horizon is not None)
        self.guesses = tuple((name, float(value)) for name, value in guesses.items())
        self.logarithms = nnx.Dict({name: nnx.Param(jnp.zeros((), jnp.float64)) for name in guesses})

    def __call__(self, sample: Mapping[str, Array]) -> dict[str, Array]:
        """One point in, one value per field of the equation out; auxiliary fields stay inside."""
        values = self.network(jnp.stack([jnp.asarray(sample[name], jnp.float64) for name in self.coordinates]))
        names = self.network.field_names
        return dict(zip(names, values[: len(names)], strict=True))

    def coefficients(self) -> dict[str, Array]:
        """The present values of the unknown coefficients."""
        return {name: guess * jnp.exp(self.logarithms[name][...]) for name, guess in self.guesses}

    def problem(self, problem: Problem) -> Problem:
        """`problem` with the unknown coefficients replaced by the present values."""
        equation = dataclasses.replace(problem.equation, **self.coefficients())
        return dataclasses.replace(problem, equation=equation)


@final
@register("model", "pinn")
@dataclass(frozen=True)
class PINNConfig:
    """Physics-informed network for one held-out instance: sensor readings plus the residual of the equation.

    Trained in float64; levenberg_marquardt is the optimizer that reaches small errors. `unknown` names
    coefficients of the equation that are recovered along with the field.
    Source: M. Raissi, P. Perdikaris, G. E. Karniadakis, J. Comput. Phys. 378 (2019) 686, sections 3 and 4.
    """

    task: ClassVar[str] = "instance"
    width: int = option(18, minimum=1, doc="neurons per layer")
    layers: int = option(2, minimum=1, doc="hidden layers")
    harmonics: int = option(4, minimum=1, doc="waves per periodic axis, best those of the initial field")
    early: float = option(20.0, minimum=0.0, doc="times log(1 + early t/horizon) are evenly resolved; 0: times t")
    initial: Literal["exact", "free"] = option("exact", doc="build the initial field in, or leave it to the data")
    unknown: tuple[str, ...] = option((), doc="coefficients of the equation to recover")
    sample: int = option(0, minimum=0, doc="which sample of the test split is the instance")
    sensors: int = option(16, minimum=0, doc="number of sensors, at fixed random grid points")
    noise: float = option(0.001, minimum=0.0, doc="standard deviation of the readings, relative to that of the field")
    points: int = option(1500, minimum=1, doc="collocation points")
    resample: bool = option(False, doc="shift the collocation points at every step")

    def build(
        self, problem: Problem, scales: Mapping[str, tuple[float, float]], guesses: Mapping[str, float], *, seed: int
    ) -> PINN:
        """The network for `problem`; `scales` gives (mean, std) per field, `guesses` a first value per unknown.

        Raises `ConfigError` for an unknown that is not a coefficient of the equation, or has no positive guess.
        """
        values = {f.name: getattr(problem.equation, f.name) for f in dataclasses.fields(problem.equation)}
        numbers = sorted(name for name, value in values.items() if not callable(value) and jnp.ndim(value) == 0)
        strange = [name for name in self.unknown if name not in numbers]
        if strange:
            raise ConfigError(
                "an unknown of the PINN is not a number in the equation",
                expected=f"among {numbers}",
                got=strange,
                reason="only coefficients that are one number can be recovered, not fields",
            )
        bad = {name: guesses.get(name) for name in self.unknown if not (guesses.get(name) or 0.0) > 0.0}
        if bad:
            raise ConfigError(
                "an unknown of the PINN needs a positive first guess", got=bad, reason="it is guess * exp(parameter)"
            )
        network = FieldNetwork(
            problem,
            {**auxiliary_scales(problem), **scales},
            width=self.width,
            layers=self.layers,
            harmonics=self.harmonics,
            early=self.early,
            initial=self.initial,
            rngs=nnx.Rngs(seed),
        )
        return PINN(network, {name: guesses[name] for name in self.unknown})


def coordinate_names(box: Box, has_time: bool) -> tuple[str, ...]:
    """Names of the inputs of a pointwise model: the axes, then `t`."""
    return (*box.names, "t") if has_time else box.names


def point_spec(problem: Problem, statistics: Mapping[str, Statistics]) -> Spec:
    """Inputs and outputs of a PINN as an artifact: numbers per point, with the box as their range."""
    box = problem.domain
    inputs = [
        Variable(name, box.unit, low=low, high=high, role="point")
        for name, low, high in zip(box.names, box.lower, box.upper, strict=True)
    ]
    if problem.is_evolution:
        inputs.append(Variable("t", "s", low=0.0, high=float(problem.horizon), role="point"))
    outputs = [_output(f.name, f.unit, statistics) for f in problem.equation.fields]
    return Spec(tuple(inputs), tuple(outputs))


def _output(name: str, unit: str, statistics: Mapping[str, Statistics]) -> Variable:
    known: Any = statistics.get(name)
    low, high = (float(np.min(known.low)), float(np.max(known.high))) if known else (None, None)
    return Variable(name, unit, low=low, high=high)
