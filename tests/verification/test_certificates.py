"""`verify` finds what is wrong with an equation, in words, and accepts what is right, from a user's own file too."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_close
from verification.trial_equations import Predation

from sciml.domain import Box, Grid
from sciml.equations import Evolution, Field, Steady, equation, parameter
from sciml.equations.darcy import Darcy
from sciml.equations.inviscid_burgers import InviscidBurgers
from sciml.equations.poisson import Poisson
from sciml.errors import ConfigError
from sciml.problem import make_problem
from sciml.solvers import Etdrk4, Imex, Rk4, published, solve, verification, verify
from sciml.solvers.finite_volume.certificate import order_on_cells
from sciml.solvers.finite_volume.reconstruction import GHOSTS, RECONSTRUCTIONS
from sciml.solvers.order import varied
from sciml.solvers.verification import checks_for, invariants_hold, rows_hold, stiff_is_linear


@equation
class NonlinearStiff(Evolution):
    """A product in the stiff part."""

    fields = (Field("u"),)
    rate: float = parameter(0.1)

    def stiff(self, u, d):
        return {"u": -self.rate * u.u * u.u}


@equation
class Heated(Evolution):
    """A constant in the stiff part: affine, not linear; u_t = D lap u + r has the mean m + r t."""

    fields = (Field("u"),)
    diffusivity: float = parameter(0.1)
    rate: Any = parameter(1.0)

    def stiff(self, u, d):
        return {"u": self.diffusivity * d.laplacian(u.u) + d.sample(self.rate)}


@equation
class Driven(Evolution):
    """The same with a function of time, on its own and as a factor, or a constant alone."""

    fields = (Field("u"), Field("v"))
    kind: str = dataclasses.field(default="added", metadata={"static": True})

    def stiff(self, u, d):
        terms = {
            "added": lambda: {"u": u.u + d.time},
            "factor": lambda: {"u": d.time * u.u},
            "alone": lambda: {"u": 3.0},
            "coupled": lambda: {"u": u.v + 1.0},
        }
        return terms[self.kind]()


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


def test_a_nonlinear_stiff_part_is_found(monkeypatch):
    monkeypatch.setattr(verification, "orders_in_time", lambda equation: (True, ("left out here: slow",)))
    report = verify(NonlinearStiff)
    assert not report.passed
    failed = {check.name for check in report.checks if not check.passed}
    assert "stiff part is linear" in failed
    assert "FAIL  stiff part is linear" in report.text and "move this term to `nonstiff`" in report.text


def test_an_affine_stiff_part_is_found():
    passed, _ = stiff_is_linear(Driven("coupled"))  # no symbol: superposition alone has to see the constant
    assert not passed
    report = verify(Heated)
    assert {"stiff part is linear", "order in time"} <= {check.name for check in report.checks if not check.passed}


@pytest.mark.parametrize("rate", [2.0, lambda x: 2.0 + jnp.sin(2 * jnp.pi * x[0])])
@pytest.mark.parametrize("method", [Etdrk4(dt=0.01), Imex(dt=0.01)])
def test_an_affine_stiff_part_is_refused(method, rate):
    """Multiplied by a factor per mode, it would make the mean grow like exp(n t)."""
    with pytest.raises(ConfigError, match="stiff part of Heated contains a term without unknowns") as caught:
        solve(*forced(Heated(0.1, rate)), method, times=[1.0])
    assert "nonstiff" in caught.value.fix and "the term of u" in str(caught.value)
    explicit = solve(*forced(Heated(0.1, rate)), Rk4(dt=0.005), times=[1.0]).fields["u"]
    assert_close(float(explicit.mean()), 3.0, rtol=1e-12)


@pytest.mark.parametrize("kind", ["added", "factor", "alone"])
def test_time_and_constants_are_no_stiff_parts(kind):
    with pytest.raises(ConfigError, match="stiff part of Driven"):
        solve(*forced(Driven(kind)), Etdrk4(dt=0.01), times=[1.0])


def forced(equation):
    box = Box((0.0,), (1.0,), (True,))
    initial = {field.name: lambda x: 1.0 + 0.0 * x[0] for field in equation.fields}
    return make_problem(equation, box, initial=initial, horizon=1.0), Grid(box, (16,))


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


@equation
class Decaying(Evolution):
    """u_t = -u + lap u, which says of its square that it stays, and that it never grows."""

    fields = (Field("u"),)
    rate: float = parameter(1.0)

    def stiff(self, u, d):
        return {"u": d.laplacian(u.u) - self.rate * u.u}

    def invariants(self, u, d):
        return {"square": u.u * u.u}

    def decreasing(self, u, d):
        return {"square": u.u * u.u}


def test_a_wrong_invariant_is_found():
    """The mean of u^2 falls by about 1 - exp(-2/4); what falls indeed is accepted."""
    passed, lines = invariants_hold(Decaying())
    assert not passed
    drift = float(lines[0].removeprefix("square drifts by "))
    assert 0.39 < drift < 0.45
    assert lines[1] == "square never grows"
    growing, lines = invariants_hold(Decaying(-1.0))
    assert not growing and lines[1].startswith("square never grows (")


def test_a_value_that_differs_from_the_literature_is_found():
    good = published.Row("period", 1.0 + 1e-9, 1.0, 1e-8)
    for bad in (1.1, float("nan"), float("inf")):
        passed, lines = rows_hold([good, good._replace(found=bad)])
        assert not passed and lines[0] == "period: 1, expected 1 to 1e-08"
        assert lines[1].startswith("NOT MET: period: ")
    assert rows_hold([good]) == (True, ("period: 1, expected 1 to 1e-08",))


def test_an_equation_without_published_values_has_no_certificate():
    assert not rows_hold([], needed=True)[0]
    assert rows_hold([])[0]


@pytest.mark.slow
def test_reconstructions_below_their_order_are_found(monkeypatch):
    """WENO5 in place of which MUSCL stands, with the order that is declared for WENO5."""
    assert order_on_cells(InviscidBurgers(1.0))[0]
    muscl = RECONSTRUCTIONS["muscl"][0]
    monkeypatch.setitem(RECONSTRUCTIONS, "weno5", (muscl, 5))
    monkeypatch.setitem(GHOSTS, "weno5", 2)
    passed, lines = order_on_cells(InviscidBurgers(1.0))
    assert not passed and lines[0].startswith("muscl, observed 2.") and lines[1].startswith("weno5, observed 2.")


def test_coefficients_vary_where_the_operator_has_some():
    assert varied(Poisson(1.0)) is None
    changed = varied(Darcy(2.0, 0.0))
    assert isinstance(changed, Darcy) and changed.forcing == 0.0
    values = [float(changed.permeability(jnp.asarray([x]))) for x in np.linspace(0, 3, 40)]
    assert 1.39 < min(values) < 1.45 and 2.55 < max(values) < 2.61


def test_lines_come_while_the_checks_run(monkeypatch):
    checks = [("first", lambda equation: (True, ("a", "b"))), ("second", lambda equation: (False, ()))]
    monkeypatch.setattr(verification, "checks_for", lambda equation, *, long: iter(checks))
    told: list[str] = []
    report = verify(Decaying, tell=told.append)
    assert "\n".join(told) == report.text and len(told) == 4
    assert told[-1] == "  1 of 2 checks passed"


def test_missing_defaults_and_names_are_explained():
    with pytest.raises(ConfigError, match="cannot be made without arguments"):
        verify(NeedsValue)
    with pytest.raises(ConfigError, match="unknown equation 'burger', did you mean 'burgers'"):
        verify("burger")


def test_checks_follow_the_kind_of_equation():
    names = {name for name, _ in checks_for(Screened())}
    assert "order in space" in names and "order in time" not in names
    assert stiff_is_linear(Predation())[0]
