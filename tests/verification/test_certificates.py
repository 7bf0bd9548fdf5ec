"""`verify` finds what is wrong with an equation, in words, and accepts what is right, from a user's own file too."""

from __future__ import annotations

import jax.numpy as jnp
import pytest
from verification.trial_equations import Predation

from sciml.equations import Evolution, Field, Steady, equation, parameter
from sciml.errors import ConfigError
from sciml.solvers import verify
from sciml.solvers.verification import checks_for, stiff_is_linear


@equation
class NonlinearStiff(Evolution):
    """A product in the stiff part."""

    fields = (Field("u"),)
    rate: float = parameter(0.1)

    def stiff(self, u, d):
        return {"u": -self.rate * u.u * u.u}


@equation
class Screened(Steady):
    """-lap u + m u + sin u = f: nonlinear, solved by Newton's method."""

    fields = (Field("u"),)
    mass: float = parameter(2.0)

    def residual(self, u, d):
        return {"u": -d.laplacian(u.u) + self.mass * u.u + d.map(jnp.sin, u.u)}


@equation
class NeedsValue(Evolution):
    """A coefficient without default."""

    fields = (Field("u"),)
    rate: float = parameter()


OWN = '''
from sciml.equations import Evolution, Field, equation, parameter

@equation
class Fisher(Evolution):
    """Fisher's equation, u_t = D u_xx + r u (1 - u)."""

    fields = (Field("u"),)
    diffusivity: float = parameter(0.1, unit="m^2/s", above=0.0)
    rate: float = parameter(1.0, unit="1/s")

    def stiff(self, u, d):
        return {"u": self.diffusivity * d.laplacian(u.u) + self.rate * u.u}

    def nonstiff(self, u, d):
        return {"u": -self.rate * u.u * u.u}
'''


def test_a_nonlinear_stiff_part_is_found():
    report = verify(NonlinearStiff)
    assert not report.passed
    failed = {check.name for check in report.checks if not check.passed}
    assert "stiff part is linear" in failed
    assert "FAIL  stiff part is linear" in report.text and "move this term to `nonstiff`" in report.text


def test_a_users_file_gets_its_certificate(tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    report = verify("own.py:Fisher", relative_to=tmp_path)
    assert report.passed, report.text
    assert "Order certificate: Fisher (diffusivity = 0.1, rate = 1)" in report.text
    assert "etdrk4                        4" in report.text


@pytest.mark.slow
@pytest.mark.parametrize("cls", [Predation, Screened])
def test_systems_and_nonlinear_steady_equations(cls):
    report = verify(cls)
    assert report.passed, report.text


def test_missing_defaults_and_names_are_explained():
    with pytest.raises(ConfigError, match="cannot be made without arguments"):
        verify(NeedsValue)
    with pytest.raises(ConfigError, match="unknown equation 'burger', did you mean 'burgers'"):
        verify("burger")


def test_checks_follow_the_kind_of_equation():
    names = {name for name, _ in checks_for(Screened())}
    assert "order in space" in names and "order in time" not in names
    assert stiff_is_linear(Predation())[0]
