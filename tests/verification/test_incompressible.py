"""Incompressible flow: exact solutions, balances, signs, and that vorticity and velocity form are one flow."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_close

from sciml.boundary import dirichlet
from sciml.calculus import Pointwise, Spectral
from sciml.domain import Box, Grid
from sciml.equations import NavierStokes2D, NavierStokes3D, NavierStokesVorticity
from sciml.equations.base import FieldSet
from sciml.errors import ConfigError
from sciml.problem import make_problem
from sciml.solvers import Etdrk4, integrate, solve

PLANE = Grid(Box((0.0,) * 2, (2 * np.pi,) * 2, (True,) * 2), (32, 32))
SPACE = Grid(Box((0.0,) * 3, (2 * np.pi,) * 3, (True,) * 3), (24, 24, 24))
X, Y = PLANE.points[..., 0], PLANE.points[..., 1]


def swirl(x):
    """The stream function of a smooth random-looking flow without a mean."""
    return jnp.sin(x[0] + 0.3) * jnp.cos(2 * x[1]) + 0.5 * jnp.cos(2 * x[0] - x[1] + 1.0) + 0.4 * jnp.sin(x[1])


def vorticity(x):
    return -jnp.trace(jax.hessian(swirl)(x))


VELOCITY = {"u": lambda x: jax.grad(swirl)(x)[1], "v": lambda x: -jax.grad(swirl)(x)[0]}


def flow(equation, grid, times, initial: dict[str, Any], dt=0.01, source=None) -> dict[str, Any]:
    problem = make_problem(equation, grid.box, initial=initial, source=source, horizon=times[-1])
    run = jax.jit(lambda p: integrate(p, grid, Etdrk4(dt=dt), times))
    return {name: np.asarray(v) for name, v in run(problem).items()}


def stream_function(omega):
    d = Spectral(PLANE)
    return d.inverse_laplacian(-d.field(omega)).values


def test_taylor_green_vortices_decay_exactly():
    """omega = 2 cos x cos y exp(-2 nu t): the nonlinear term vanishes, so one exact step is all there is."""
    found = flow(
        NavierStokesVorticity(0.05, 0.0), PLANE, [1.0, 2.0], {"omega": lambda x: 2 * jnp.cos(x[0]) * jnp.cos(x[1])}
    )
    for frame, t in zip(found["omega"], (1.0, 2.0), strict=True):
        assert_close(frame, 2 * np.cos(X) * np.cos(Y) * np.exp(-0.1 * t), rtol=1e-12, atol=1e-12)


def test_laminar_kolmogorov_flow():
    """nu u'' - mu u + F sin 2y = 0 stays as it is: u = F sin 2y / (4 nu + mu), omega = -u'."""
    nu, mu, force = 0.1, 0.05, 0.3
    amplitude = force / (4 * nu + mu)
    curl = {"omega": lambda x: -2 * force * jnp.cos(2 * x[1])}
    start = {"omega": lambda x: -2 * amplitude * jnp.cos(2 * x[1])}
    found = flow(NavierStokesVorticity(nu, mu), PLANE, [1.0], start, source=curl)["omega"][0]
    assert_close(found, -2 * amplitude * np.cos(2 * Y), rtol=1e-11, atol=1e-12)
    push = {"u": lambda x, t: force * jnp.sin(2 * x[1]) + 0.0 * t}
    start = {"u": lambda x: amplitude * jnp.sin(2 * x[1]), "v": lambda x: 0.0 * x[0]}
    found = flow(NavierStokes2D(nu, mu), PLANE, [1.0], start, source=push)
    assert_close(found["u"][0], amplitude * np.sin(2 * Y), rtol=1e-11, atol=1e-12)


def test_a_pair_of_positive_vortices_turns_counter_clockwise():
    """The line between two positive vortices, at first along x, has turned to a small positive angle."""
    grid = Grid(PLANE.box, (64, 64))
    x, y = grid.points[..., 0] - np.pi, grid.points[..., 1] - np.pi

    def pair(p, sign=1.0):
        bumps = [jnp.exp(-((p[0] - np.pi - a) ** 2 + (p[1] - np.pi) ** 2) / 0.1) for a in (-0.6, 0.6)]
        return sign * 10.0 * (bumps[0] + bumps[1])

    for sign in (1.0, -1.0):
        omega = flow(NavierStokesVorticity(1e-3, 0.0), grid, [0.5], {"omega": lambda p, s=sign: pair(p, s)})["omega"][0]
        weight = sign * omega * (sign * omega > 0.5)
        angle = 0.5 * np.arctan2(2 * (weight * x * y).sum(), (weight * (x**2 - y**2)).sum())
        assert 0.1 < sign * angle < 1.2


def test_transport_is_the_divergence_of_velocity_times_vorticity():
    """The form with two products against u omega_x + v omega_y at points, for any stream function."""
    d, equation = Pointwise(2, has_time=False), NavierStokesVorticity(0.0, 0.0)
    u = FieldSet({"omega": d.sample(vorticity), "psi": d.sample(swirl)})
    transport = d.values(d.divergence(equation.flux(u, d)["omega"]))
    expected = d.partial(u.psi, 1) * d.partial(u.omega, 0) - d.partial(u.psi, 0) * d.partial(u.omega, 1)
    z = jnp.asarray(np.random.default_rng(0).uniform(0, 6, (20, 2)))
    assert_close(jax.vmap(transport)(z), jax.vmap(d.values(expected))(z), rtol=1e-12, atol=1e-12)


def test_velocity_and_vorticity_form_are_one_flow():
    """To the error of the grid, which the two forms do not share."""
    grid = Grid(PLANE.box, (48, 48))
    omega = flow(NavierStokesVorticity(0.05, 0.1), grid, [1.0], {"omega": vorticity})["omega"][0]
    found, d = flow(NavierStokes2D(0.05, 0.1), grid, [1.0], VELOCITY), Spectral(grid)
    u, v = (d.field(found[name][0]) for name in ("u", "v"))
    assert_close(d.values(d.partial(v, 0) - d.partial(u, 1)), omega, rtol=1e-7, atol=1e-7)
    divergence = d.values(d.divergence((u, v)))
    assert np.abs(divergence).max() < 1e-12 * np.abs(omega).max() * 48


def test_enstrophy_and_energy_fall_as_they_have_to():
    """dE/dt = -2 nu Z and dZ/dt = -2 nu P with enstrophy Z = <omega^2>/2, palinstrophy P = <|grad omega|^2>/2."""
    nu, h, d = 0.05, 1e-3, Spectral(PLANE)
    frames = flow(NavierStokesVorticity(nu, 0.0), PLANE, [0.3 - h, 0.3, 0.3 + h], {"omega": vorticity}, dt=1e-3)[
        "omega"
    ]
    energy = [0.5 * np.mean(np.asarray(stream_function(f)) * f) for f in frames]
    enstrophy = [0.5 * np.mean(f**2) for f in frames]
    slopes = d.gradient(d.field(frames[1]))
    palinstrophy = 0.5 * sum(np.mean(np.asarray(s.values) ** 2) for s in slopes)
    assert_close((energy[2] - energy[0]) / (2 * h), -2 * nu * enstrophy[1], rtol=1e-6)
    assert_close((enstrophy[2] - enstrophy[0]) / (2 * h), -2 * nu * palinstrophy, rtol=1e-5)


def taylor_green_3d():
    return {
        "u": lambda x: jnp.sin(x[0]) * jnp.cos(x[1]) * jnp.cos(x[2]),
        "v": lambda x: -jnp.cos(x[0]) * jnp.sin(x[1]) * jnp.cos(x[2]),
        "w": lambda x: 0.0 * x[0],
    }


def test_taylor_green_vortex_in_space():
    """E(0) = 1/8, Z(0) = 3/8, dE/dt = -2 nu Z; the pressure at the start; no divergence later."""
    nu, h = 0.02, 0.005
    times = [0.25 - h, 0.25, 0.25 + h]
    fields = flow(NavierStokes3D(nu, 0.0), SPACE, [0.0, *times], taylor_green_3d(), dt=h)
    d = Spectral(SPACE)
    energy = [0.5 * sum(np.mean(fields[n][i] ** 2) for n in "uvw") for i in range(4)]
    assert_close(energy[0], 0.125, rtol=1e-12)

    def enstrophy(i):
        u, v, w = (d.field(fields[n][i]) for n in "uvw")
        curl = (
            d.partial(w, 1) - d.partial(v, 2),
            d.partial(u, 2) - d.partial(w, 0),
            d.partial(v, 0) - d.partial(u, 1),
        )
        return 0.5 * sum(float(jnp.mean(c.values**2)) for c in curl)

    assert_close(enstrophy(0), 0.375, rtol=1e-12)
    assert_close((energy[3] - energy[1]) / (2 * h), -2 * nu * enstrophy(2), rtol=1e-5)
    assert enstrophy(3) != pytest.approx(0.375, rel=1e-3)  # otherwise the balance above would say little
    divergence = d.values(d.divergence([d.field(fields[n][3]) for n in "uvw"]))
    assert np.abs(divergence).max() < 1e-12


def test_pressure_of_the_taylor_green_vortex():
    """p = (cos 2x + cos 2y)(cos 2z + 2)/16, as the Taylor-Green vortex is usually started."""
    d = Spectral(SPACE)
    problem = make_problem(NavierStokes3D(0.0, 0.0), SPACE.box, initial=taylor_green_3d(), horizon=1.0)
    fields = problem.fields({n: d.field(v) for n, v in problem.initial_values(SPACE).items()}, d)
    x, y, z = np.moveaxis(SPACE.points, -1, 0)
    expected = (np.cos(2 * x) + np.cos(2 * y)) * (np.cos(2 * z) + 2) / 16
    assert_close(fields.p.values, expected, rtol=1e-12, atol=1e-14)


def test_abc_flow_is_exact_in_space():
    """curl u = u, so the nonlinear term is a gradient and u decays as exp(-nu t)."""
    a, b, c = 1.0, 0.7, 0.4
    abc = {
        "u": lambda x: a * jnp.sin(x[2]) + c * jnp.cos(x[1]),
        "v": lambda x: b * jnp.sin(x[0]) + a * jnp.cos(x[2]),
        "w": lambda x: c * jnp.sin(x[1]) + b * jnp.cos(x[0]),
    }
    found = flow(NavierStokes3D(0.1, 0.0), SPACE, [0.5], abc, dt=0.1)
    for name, function in abc.items():
        exact = jax.vmap(function)(jnp.asarray(SPACE.points.reshape(-1, 3))).reshape(SPACE.shape)
        assert_close(found[name][0], exact * np.exp(-0.05), rtol=1e-11, atol=1e-12)


def test_a_force_with_divergence_only_changes_the_pressure():
    """A gradient pushes nothing; without `source_potentials` the velocity would get a divergence."""
    slope = {"u": lambda x: jnp.cos(x[0]) * jnp.sin(x[1]), "v": lambda x: jnp.sin(x[0]) * jnp.cos(x[1])}
    free = flow(NavierStokes2D(0.05, 0.0), PLANE, [0.2], VELOCITY)
    pushed = flow(NavierStokes2D(0.05, 0.0), PLANE, [0.2], VELOCITY, source=slope)
    for name in ("u", "v"):
        assert_close(pushed[name], free[name], rtol=1e-10, atol=1e-11)


def test_the_start_is_made_free_of_divergence():
    gradient = {"u": lambda x: jnp.cos(x[0]) * jnp.sin(x[1]), "v": lambda x: jnp.sin(x[0]) * jnp.cos(x[1])}
    mixed = {name: (lambda x, name=name: VELOCITY[name](x) + gradient[name](x)) for name in VELOCITY}
    problem = make_problem(NavierStokes2D(0.05, 0.0), PLANE.box, initial=mixed, horizon=1.0)
    clean = make_problem(NavierStokes2D(0.05, 0.0), PLANE.box, initial=VELOCITY, horizon=1.0)
    for name, values in problem.initial_values(PLANE).items():
        assert_close(values, clean.initial_values(PLANE)[name], rtol=1e-12, atol=1e-13)


def test_a_stage_of_the_vorticity_form_takes_four_transforms():
    """Two products, hence two transforms back and two forth, and the state stays in Fourier space between saves."""
    problem = make_problem(NavierStokesVorticity(0.05, 0.0), PLANE.box, initial={"omega": vorticity}, horizon=1.0)

    def transforms(steps):
        run = jax.jit(lambda p: integrate(p, PLANE, Etdrk4(dt=1.0 / steps), [1.0])["omega"])
        return str(run.lower(problem).compile().as_text()).count(" fft(")

    assert transforms(8) - 2 == 4 * 4  # one at the start, one at the end, four stages inside the loop


def test_bounded_boxes_are_refused_with_a_reason():
    box = Box((0.0, 0.0), (1.0, 1.0), (True, False))
    walls = dict.fromkeys(box.faces, dirichlet())
    problem = make_problem(
        NavierStokesVorticity(0.05, 0.0), box, initial={"omega": vorticity}, boundary=walls, horizon=1.0
    )
    with pytest.raises(ConfigError, match="cannot invert the Laplacian"):
        solve(problem, Grid(box, (8, 8)), Etdrk4(dt=0.1), times=[0.1])
