"""Every registered equation earns its order certificate: the same checks as `sciml verify`."""

from __future__ import annotations

import dataclasses

import jax
import pytest

from sciml import registry
from sciml.equations import Equation
from sciml.solvers.verification import verify

NAMES = registry.names("equation")
SHIPPED = {
    "advection", "allen_cahn", "burgers", "cahn_hilliard", "darcy", "elasticity", "euler_1d", "euler_2d", "fisher_kpp",
    "fitzhugh_nagumo", "ginzburg_landau", "gray_scott", "heat", "helmholtz", "inviscid_burgers", "korteweg_de_vries",
    "kuramoto_sivashinsky", "maxwell_te", "maxwell_tm", "navier_stokes_2d", "navier_stokes_3d",
    "navier_stokes_vorticity", "poisson", "schroedinger", "shallow_water_1d", "shallow_water_2d", "wave",
}  # fmt: skip


def test_the_shipped_equations_are_registered():
    assert set(NAMES) == SHIPPED


OF_EACH_KIND = ("poisson", "wave")


@pytest.mark.parametrize("name", [n if n in OF_EACH_KIND else pytest.param(n, marks=pytest.mark.slow) for n in NAMES])
def test_certificate(name):
    """Readings, manufactured residual, linearity and symbol, orders, invariants, gradients, vmap, docstring."""
    report = verify(name)
    assert report.passed, report.text


@pytest.mark.parametrize("name", NAMES)
def test_is_a_frozen_pytree_of_its_coefficients(name):
    equation = registry.load("equation", name)()
    assert isinstance(equation, Equation)
    coefficients = [getattr(equation, f.name) for f in dataclasses.fields(equation)]
    assert jax.tree.leaves(equation) == coefficients
    leaves, structure = jax.tree.flatten(equation)
    assert jax.tree.unflatten(structure, leaves) == equation
    with pytest.raises(dataclasses.FrozenInstanceError):
        equation.surprise = 1.0


@pytest.mark.parametrize("name", NAMES)
def test_coefficients_are_described_with_units(name):
    """The recipe shows every coefficient with its unit, its limits and a line of text."""
    options = registry.describe("equation", name).options
    assert options and all(option.unit and option.doc for option in options)
