"""A small inverse problem from end to end, and the error that its noise allows."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_close
from compilation import no_recompilation

from sciml.errors import ConfigError
from sciml.metrics import relative_l2
from sciml.parallel.step import build_step
from sciml.pinn.information import smallest_errors
from sciml.training.optimizers.levenberg_marquardt import LevenbergMarquardt
from sciml.training.state import TrainState, parameter_count, with_parameters

STEPS, ERROR = 30, 1e-4


def trained(heat, model):
    """The model after STEPS steps, none of which but the first compiles anything."""
    optimizer, batch = LevenbergMarquardt(), heat.readings()
    step = build_step(model, heat.objective(), optimizer)
    state = TrainState.start(model, optimizer, jax.random.key(0))
    state, _ = step(state, batch)
    with no_recompilation():
        for _ in range(STEPS - 1):
            state, _ = step(state, batch)
    return with_parameters(model, state.params)


def field_error(heat, model):
    """Relative L2 error over the box and the horizon."""
    z = jnp.stack(jnp.meshgrid(jnp.linspace(0, 1, 33), jnp.linspace(0, 1, 17)), axis=-1).reshape(-1, 2)
    predicted, truth = jax.jit(jax.vmap(model.network))(z)[:, 0], jax.jit(jax.vmap(heat.exact))(z)
    return float(relative_l2(np.asarray(predicted), np.asarray(truth)))


def bound(heat):
    """Smallest relative standard error of the diffusivity."""
    z = jnp.stack([jnp.asarray(heat.readings()[name]) for name in ("x", "t")], axis=1)

    def readings(coefficients):
        equation = dataclasses.replace(heat.problem.equation, **coefficients)
        case = dataclasses.replace(heat, problem=dataclasses.replace(heat.problem, equation=equation))
        return jax.vmap(case.exact)(z)

    return smallest_errors(readings, {"diffusivity": heat.problem.equation.diffusivity}, noise=1e-4)["diffusivity"]


def test_field_and_diffusivity_are_recovered_down_to_the_noise(heat):
    model = heat.network(guess=0.025)
    assert parameter_count(model) < 300
    model = trained(heat, model)
    assert field_error(heat, model) < ERROR
    deviation = abs(float(model.coefficients()["diffusivity"]) / 0.04 - 1.0)
    assert deviation < 4 * bound(heat)  # four standard deviations of the best that the noise allows


def test_a_wrong_diffusivity_that_is_not_an_unknown_stays_wrong(heat):
    """The control: the same training, with the equation of another diffusivity."""
    other = dataclasses.replace(heat.problem.equation, diffusivity=0.025)
    wrong = dataclasses.replace(heat, problem=dataclasses.replace(heat.problem, equation=other))
    readings = heat.readings()
    model = trained(_Misread(wrong, readings), heat.network(unknown=()))
    assert field_error(heat, model) > 100 * ERROR


@dataclasses.dataclass(frozen=True)
class _Misread:
    """The readings of one case, explained by the equation of another."""

    case: object
    given: dict

    def readings(self):
        return self.given

    def objective(self):
        return self.case.objective()


def test_smallest_error_of_a_straight_line():
    """y = a x at x = 1, 2, 3: the error of log a is noise / (a |x|)."""
    errors = smallest_errors(lambda c: c["a"] * jnp.asarray([1.0, 2.0, 3.0]), {"a": 2.0}, noise=0.1)
    assert_close(errors, {"a": 0.1 / (2.0 * 14**0.5)}, rtol=1e-12)


def test_readings_that_say_nothing_are_refused():
    with pytest.raises(ConfigError, match="do not determine the coefficients"):
        smallest_errors(lambda c: c["a"] * c["b"] * jnp.ones(4), {"a": 1.0, "b": 2.0}, noise=0.1)
