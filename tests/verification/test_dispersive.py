"""Dispersion: solitons of KdV and Schroedinger at order 4, invariants, and closed forms without residual."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_close, observed_order

from sciml.calculus import Pointwise
from sciml.domain import Box, Grid
from sciml.equations import AllenCahn, FisherKpp, GinzburgLandau, KortewegDeVries, Schroedinger
from sciml.problem import make_problem
from sciml.solvers import Etdrk2, Etdrk4, Imex, exact_solution, integrate, solve
from sciml.solvers.linear import Diagonal
from sciml.solvers.solitary import (
    allen_cahn_front,
    bright_soliton,
    fisher_front,
    ginzburg_landau_plane_wave,
    kdv_soliton,
    kdv_two_solitons,
    schroedinger_plane_wave,
)

LINE = Box((-20.0,), (20.0,), (True,))
GRID = Grid(LINE, (256,))
STEPS = (0.04, 0.02, 0.01, 0.005)
SOLITON = make_problem(KortewegDeVries(), LINE, initial={"u": kdv_soliton(2.0, period=40.0)}, horizon=2.0)
MEETING = kdv_two_solitons(1.0, 4.0, meeting=1.0)


def soliton_errors(method, steps=STEPS, solved=None):
    """Largest error over the height at t = 2."""
    solved = solved or (lambda dt: solve(SOLITON, GRID, method(dt=dt), times=[2.0]).fields)
    exact = np.asarray([kdv_soliton(2.0, period=40.0)(x, 2.0) for x in GRID.points])
    found = [solved(dt)["u"][0] for dt in steps]
    return [float(np.abs(np.asarray(u) - exact).max() / exact.max()) for u in found]


def test_soliton_at_order_four():
    """The errors of a scheme with complex coefficients on this run: 2.1e-4, 1.2e-5, 7.1e-7, 4.1e-8, 2.5e-9."""
    steps = (*STEPS, 0.0025)
    errors = soliton_errors(Etdrk4, steps)
    assert abs(observed_order(steps, errors) - 4) < 0.2, errors
    assert_close(errors, [2.1e-4, 1.2e-5, 7.1e-7, 4.1e-8, 2.5e-9], rtol=0.05)


@pytest.mark.parametrize(("method", "order"), [(Etdrk2, 2), (Imex, 4)])
def test_soliton_with_the_other_methods(method, order):
    errors = soliton_errors(method)
    assert abs(observed_order(STEPS, errors) - order) < 0.2, errors


def test_real_parts_alone_would_be_of_order_one(monkeypatch):
    """What goes wrong where the coefficients of an imaginary symbol are cut to their real part."""
    whole = Diagonal.phi

    def cut(self, step):
        full, *others = whole(self, step)
        return (full, *(f.real + 0j for f in others))

    monkeypatch.setattr(Diagonal, "phi", cut)
    errors = soliton_errors(Etdrk4, solved=lambda dt: jax.jit(lambda: integrate(SOLITON, GRID, Etdrk4(dt=dt), [2.0]))())
    assert observed_order(STEPS, errors) < 1.5 and errors[-1] > 1e-3, errors


def test_invariants_of_two_solitons_through_each_other():
    """Mass to rounding; momentum and energy drift with the error of the step, of order 4."""
    box = Box((-40.0,), (40.0,), (True,))
    grid = Grid(box, (384,))
    problem = make_problem(KortewegDeVries(), box, initial={"u": MEETING}, horizon=2.0)
    drifts = []
    for dt in (0.02, 0.01):
        u = np.asarray(solve(problem, grid, Etdrk4(dt=dt), times=[0.0, 2.0]).fields["u"])
        slope = np.fft.irfft(2j * np.pi * np.fft.rfftfreq(384, 80.0 / 384) * np.fft.rfft(u), n=384)
        sums = np.stack([u, u**2, u**3 - 0.5 * slope**2]).sum(axis=-1)
        drifts.append(np.abs(sums[:, 1] / sums[:, 0] - 1))
    assert drifts[0][0] < 1e-13 and drifts[1][0] < 1e-13
    assert np.all(drifts[1][1:] < drifts[0][1:] / 12) and np.all(drifts[1][1:] < 5e-5)


CGLE = GinzburgLandau(linear_dispersion=0.7, nonlinear_dispersion=-0.5)
CLOSED = [
    (KortewegDeVries(), {"u": kdv_soliton(3.0, center=0.5)}),
    (KortewegDeVries(), {"u": MEETING}),
    (FisherKpp(0.3, 2.0), {"u": fisher_front(0.3, 2.0, center=0.2)}),
    (AllenCahn(0.05, 2.0), {"u": allen_cahn_front(0.05, 2.0, center=0.1)}),
    (Schroedinger(0.5, 2.0), bright_soliton(0.5, 2.0, amplitude=1.5, speed=0.8)),
    (Schroedinger(0.5, -1.0), schroedinger_plane_wave(0.5, -1.0, amplitude=0.7, wave=2.0)),
    (CGLE, ginzburg_landau_plane_wave(CGLE, 0.6)),
]


@pytest.mark.parametrize(
    ("equation", "exact"), CLOSED, ids=[f"{type(e).__name__}{i}" for i, (e, _) in enumerate(CLOSED)]
)
def test_closed_forms_leave_no_residual(equation, exact):
    """At points and times around the crest, in the pointwise reading; third derivatives cost six digits at most."""
    problem = make_problem(equation, LINE, initial=exact, exact=exact, horizon=1.0)
    d = Pointwise(1, has_time=True)
    terms = problem.residual({name: d.sample(f) for name, f in problem.exact.items()}, d)
    z = jnp.asarray(np.random.default_rng(1).uniform(-1.0, 2.0, (16, 2)))
    values = {name: jax.vmap(d.values(d.dt(d.sample(f))))(z) for name, f in problem.exact.items()}
    for name, term in terms.items():
        residual = float(jnp.abs(jax.vmap(d.values(term))(z)).max())
        assert residual < 1e-10, name
    moves = max(float(jnp.abs(v).max()) for v in values.values())
    assert moves > 1e-2 or isinstance(equation, AllenCahn)  # else zero would pass


@pytest.mark.parametrize("focusing", [1.0, -1.0])
def test_schroedinger_keeps_mass_and_energy(focusing):
    """Two humps that meet; the drift is the error of the step, far below what the terms of the energy exchange."""
    grid = Grid(Box((-10.0,), (10.0,), (True,)), (128,))
    start = {
        "real": lambda x: jnp.exp(-((x[0] - 2) ** 2)) * jnp.cos(x[0]) + jnp.exp(-((x[0] + 2) ** 2)),
        "imaginary": lambda x: -jnp.exp(-((x[0] - 2) ** 2)) * jnp.sin(x[0]),
    }
    problem = make_problem(Schroedinger(0.5, focusing), grid.box, initial=start, horizon=2.0)
    fields = solve(problem, grid, Etdrk4(dt=0.005), times=[0.0, 1.0, 2.0]).fields
    p = np.asarray(fields["real"]) + 1j * np.asarray(fields["imaginary"])
    slope = np.fft.ifft(2j * np.pi * np.fft.fftfreq(128, 20.0 / 128) * np.fft.fft(p))
    kinetic, potential = (0.5 * np.abs(slope) ** 2).mean(axis=1), (-0.5 * focusing * np.abs(p) ** 4).mean(axis=1)
    mass, energy = (np.abs(p) ** 2).mean(axis=1), kinetic + potential
    assert_close(mass, np.full(3, mass[0]), rtol=1e-7)
    assert_close(energy, np.full(3, energy[0]), rtol=0, atol=1e-6 * kinetic[0])
    assert np.ptp(kinetic) > 1e-2 * kinetic[0]


def test_free_schroedinger_spreads_a_gaussian():
    """|p| of a Gaussian at rest: width sqrt(1 + 4 D^2 t^2) for p_0 = exp(-x^2/2)."""
    grid = Grid(LINE, (128,))
    start = {"real": lambda x: jnp.exp(-(x[0] ** 2) / 2), "imaginary": lambda x: 0.0 * x[0]}
    problem = make_problem(Schroedinger(0.5, 0.0), LINE, initial=start, horizon=2.0)
    exact = exact_solution(problem, grid, [2.0])
    assert exact is not None and exact.error < 1e-12
    square = exact.fields["real"][0] ** 2 + exact.fields["imaginary"][0] ** 2
    width = 1 + 2.0**2
    assert_close(square, np.exp(-(grid.axes[0] ** 2) / width) / np.sqrt(width), rtol=0, atol=1e-12)
    focused = make_problem(Schroedinger(0.5, 1.0), LINE, initial=start, horizon=2.0)
    assert exact_solution(focused, grid, [2.0]) is None
