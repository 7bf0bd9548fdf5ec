"""What rounding puts into Fourier coefficients that no real field has does not grow unseen."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_close

from sciml.calculus import FourierBasis
from sciml.domain import Box, Grid
from sciml.equations.ginzburg_landau import GinzburgLandau
from sciml.problem import make_problem
from sciml.solvers import Etdrk4, solve


@pytest.mark.parametrize("shape", [(8,), (9,), (6, 8), (5, 7), (4, 6, 8)])
def test_coefficients_of_a_real_field_stay_and_others_are_removed(shape):
    dim = len(shape)
    basis = FourierBasis(Grid(Box((0.0,) * dim, (1.0,) * dim, (True,) * dim), shape))
    random = np.random.default_rng(0)
    real = basis.forward(random.standard_normal((2, *shape)))
    assert_close(basis.of_real(real), real, rtol=1e-13, atol=1e-13)
    other = jnp.asarray(random.standard_normal(real.shape) + 1j * random.standard_normal(real.shape))
    cleaned = basis.of_real(other)
    assert float(jnp.abs(cleaned - other).max()) > 0.1
    assert_close(basis.forward(basis.backward(cleaned)), cleaned, rtol=1e-12, atol=1e-12)


def test_a_growing_linear_part_runs_for_long():
    """Without it this one blows up at t = 79.6; the field settles at modulus 1."""
    box = Box((0.0, 0.0), (4 * np.pi, 4 * np.pi), (True, True))
    random, shape = np.random.default_rng(1), (12, 10)
    initial = {"real": 0.3 + 0.1 * random.standard_normal(shape), "imaginary": 0.1 * random.standard_normal(shape)}
    problem = make_problem(GinzburgLandau(nonlinear_dispersion=0.0), box, initial=initial, horizon=90.0)
    found = solve(problem, Grid(box, shape), Etdrk4(dt=0.1), times=[90.0]).fields
    amplitude = jnp.sqrt(found["real"] ** 2 + found["imaginary"] ** 2)
    assert_close(amplitude, jnp.ones_like(amplitude), rtol=1e-9)
