"""A sample's bits depend on nothing but itself; failures are values; functions and stacks give the same."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_close, assert_identical
from verification.trial_equations import Explosion

from sciml.boundary import dirichlet
from sciml.domain import Box, Grid
from sciml.equations.burgers import Burgers
from sciml.equations.darcy import Darcy
from sciml.errors import ConfigError
from sciml.problem import make_problem
from sciml.solvers import Direct, Etdrk4, Rk4, solve, solve_batch, stack

BOX = Box((0.0,), (1.0,), (True,))
GRID = Grid(BOX, (24,))
METHOD = Etdrk4(dt=0.1)
TIMES = (0.1, 0.2)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Bump:
    """A sine of random height and phase."""

    height: jax.Array
    phase: jax.Array

    def __call__(self, x):
        return self.height * jnp.sin(2 * jnp.pi * x[0] + self.phase)


def problem_of(index):
    """The random problem number `index`."""
    height, phase, exponent = jax.random.uniform(jax.random.fold_in(jax.random.key(3), index), 3)
    return make_problem(
        Burgers(10.0 ** (-2.5 + 1.5 * exponent)), BOX, initial={"u": Bump(6 * height, 6 * phase)}, horizon=0.2
    )


@pytest.fixture(scope="module")
def alone():
    return solve_batch(problem_of, GRID, METHOD, times=TIMES, ids=np.arange(7), chunk=3)


def test_bits_do_not_depend_on_company_position_or_count(alone):
    """The same ids in another order, with others left out, and alone; the substeps differ between samples."""
    ids = np.asarray([5, 0, 6, 2])
    other = solve_batch(problem_of, GRID, METHOD, times=TIMES, ids=ids, chunk=3)
    assert_identical(other.fields["u"], alone.fields["u"][ids])
    single = solve_batch(problem_of, GRID, METHOD, times=TIMES, ids=np.asarray([4]), chunk=3)
    assert_identical(single.fields["u"], alone.fields["u"][[4]])
    assert len(set(alone.steps.tolist())) > 1


def test_result_is_that_of_single_solves(alone):
    """Rounding only: another program."""
    assert alone.fields["u"].shape == (7, 2, 24) and not alone.failures
    for index in (0, 3):
        one = solve(problem_of(index), GRID, METHOD, times=TIMES).fields["u"]
        assert_close(alone.fields["u"][index], one, rtol=1e-10, atol=1e-12, dtype=False)


def test_a_stack_of_problems_is_a_batch(alone):
    batch = solve_batch(stack([problem_of(i) for i in range(4)]), GRID, METHOD, times=TIMES, chunk=4)
    assert_close(batch.fields["u"], alone.fields["u"][:4], rtol=1e-10, atol=1e-12)


def explosion_of(index):
    """Infinite at t = 1/(index + 1): only the first one lives until 0.7."""
    return make_problem(Explosion(1.0 + index), BOX, initial={"u": lambda x: jnp.ones(()) + 0 * x[0]}, horizon=1.0)


def test_a_blow_up_is_a_value_with_its_sample_and_time():
    batch = solve_batch(explosion_of, GRID, Rk4(dt=0.002), times=(0.4, 0.7), ids=np.asarray([0, 1, 3]), chunk=2)
    assert list(batch.failures) == [1, 3]
    assert "sample 3 blew up at t = 0.2" in str(batch.failures[3])
    assert batch.failures[1].exit_code == 79 and "sample 1 blew up at t = 0.5" in str(batch.failures[1])
    found = batch.fields["u"][..., 0]
    assert_close(found[0], 1 / (1 - np.asarray([0.4, 0.7])), rtol=1e-6)
    assert_close(found[1, 0], 1 / (0.5 - 0.4) / 2, rtol=1e-4, dtype=False)
    assert np.isnan(found[1, 1]) and np.isnan(found[2]).all()


def layered(index):
    """Darcy flow whose permeability is fit in sample 0, changes its sign in 1, is undefined in 2."""
    lowest = jnp.asarray([0.5, -0.5, jnp.nan])[index]
    line = Box((0.0,), (1.0,), (False,))
    ends = {"x-": dirichlet(1.0), "x+": dirichlet(0.0)}
    return make_problem(Darcy(Drop(lowest), 0.0), line, boundary=ends)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Drop:
    """1, and another value beyond x = 0.6."""

    lowest: jax.Array

    def __call__(self, x):
        return jnp.where(x[0] < 0.6, 1.0, self.lowest)


def test_coefficients_outside_of_their_limits_mark_their_sample():
    grid = Grid(Box((0.0,), (1.0,), (False,)), (9,))
    batch = solve_batch(layered, grid, Direct(), ids=np.arange(3), chunk=3)
    assert list(batch.failures) == [1, 2]
    assert "coefficient 'permeability' of sample 1 changes sign" in str(batch.failures[1])
    assert "-0.5 at x = 0.625" in str(batch.failures[1]) and batch.failures[1].exit_code == 79
    assert "coefficient 'permeability' of sample 2 is not finite" in str(batch.failures[2])
    assert np.isfinite(batch.fields["u"][0]).all() and np.isnan(batch.fields["u"][1:]).all()


def test_wrong_batches_are_explained():
    with pytest.raises(ConfigError, match="needs the ids"):
        solve_batch(problem_of, GRID, METHOD, times=TIMES)
    with pytest.raises(ConfigError, match="leading axis"):
        solve_batch(problem_of(0), GRID, METHOD, times=TIMES)
