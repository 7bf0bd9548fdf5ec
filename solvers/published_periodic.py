"""What the literature says about waves, dispersion and reactions on periodic boxes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from sciml.domain import Box, Grid
from sciml.equations.advection import Advection
from sciml.equations.allen_cahn import AllenCahn
from sciml.equations.cahn_hilliard import CahnHilliard
from sciml.equations.fisher_kpp import FisherKpp
from sciml.equations.fitzhugh_nagumo import FitzHughNagumo
from sciml.equations.ginzburg_landau import GinzburgLandau
from sciml.equations.gray_scott import GrayScott
from sciml.equations.heat import Heat
from sciml.equations.korteweg_de_vries import KortewegDeVries
from sciml.equations.kuramoto_sivashinsky import KuramotoSivashinsky
from sciml.equations.maxwell import MaxwellTE, MaxwellTM
from sciml.equations.schroedinger import Schroedinger
from sciml.equations.wave import Wave
from sciml.problem import make_problem
from sciml.solvers.etdrk4 import Etdrk4
from sciml.solvers.published import Row, published
from sciml.solvers.solitary import (
    bright_soliton,
    fisher_front,
    ginzburg_landau_plane_wave,
    kdv_soliton,
    kdv_two_solitons,
)
from sciml.solvers.solve import solve

EXACT = 1e-11  # rounding, over hundreds of steps
SOLITON_STEPS = (0.04, 0.02, 0.01, 0.005)


def interval(length: float, points: int) -> Grid:
    """A periodic interval around zero."""
    return Grid(Box((-length / 2,), (length / 2,), (True,)), (points,))


def square(length: float, points: int) -> Grid:
    """A periodic square around zero."""
    return Grid(Box((-length / 2,) * 2, (length / 2,) * 2, (True, True)), (points, points))


def advanced(equation: Any, grid: Grid, start: Mapping[str, Any], time: float, dt: float) -> dict[str, np.ndarray]:
    """The fields at a time, shape (*grid.shape), from functions of space (and time)."""
    problem = make_problem(equation, grid.box, initial=start, horizon=time)
    fields = solve(problem, grid, Etdrk4(dt=dt), times=[time]).fields
    return {name: np.asarray(values[0]) for name, values in fields.items()}


def error(equation: Any, grid: Grid, exact: Mapping[str, Any], time: float, dt: float) -> float:
    """The largest error over the largest value, of all fields, against functions of space and time."""
    found = advanced(equation, grid, exact, time, dt)
    problem = make_problem(equation, grid.box, initial=exact, horizon=time, exact=exact)
    truth = {name: np.asarray(values) for name, values in problem.exact_values(grid, time).items()}
    size = max(np.abs(values).max() for values in truth.values())
    return float(max(np.abs(found[name] - truth[name]).max() for name in truth) / size)


@published("heat")
def decay() -> Iterator[Row]:
    """A product of cosines."""
    exact = {"u": lambda x, t: jnp.exp(-0.13 * t) * jnp.cos(2 * x[0]) * jnp.cos(3 * x[1])}
    found = error(Heat(0.01), square(2 * np.pi, 12), exact, 2.0, 1.0)
    yield Row("modes decay as exp(-D |k|^2 t) (Fourier 1822), error", found, 0.0, EXACT)


@published("advection")
def one_period() -> Iterator[Row]:
    """Once around the box."""
    exact = {"u": lambda x, t: jnp.exp(jnp.sin(x[0])) + 0.0 * t}
    found = error(Advection(0.5), interval(2 * np.pi, 64), exact, 4 * np.pi, 1.0)
    yield Row("returns after one period, error", found, 0.0, EXACT)


@published("wave")
def dalembert() -> Iterator[Row]:
    """A bump at rest, and one in motion to the right alone."""
    speed, grid = 2.0, interval(2 * np.pi, 64)
    exact = {
        "u": lambda x, t: 0.5 * (_bump(x[0] - speed * t) + _bump(x[0] + speed * t)),
        "v": lambda x, t: 0.5 * speed * (_slope(x[0] + speed * t) - _slope(x[0] - speed * t)),
    }
    yield Row("two halves run apart (d'Alembert 1747), error", error(Wave(speed), grid, exact, 0.7, 0.7), 0.0, EXACT)


def _bump(s: Any) -> Any:
    return jnp.exp(jnp.cos(s))


def _slope(s: Any) -> Any:
    return -jnp.sin(s) * _bump(s)


@published("korteweg_de_vries")
def solitons() -> Iterator[Row]:
    """One soliton at four steps, and a fast one that overtakes a slow one."""
    grid = interval(40.0, 256)
    exact = {"u": kdv_soliton(2.0, period=40.0)}
    errors = [error(KortewegDeVries(6.0, 1.0), grid, exact, 2.0, dt) for dt in SOLITON_STEPS]
    order = float(np.polyfit(np.log(SOLITON_STEPS), np.log(errors), 1)[0])
    yield Row("order of etdrk4 on a soliton, steps 0.04 to 0.005", order, 4.0, 0.2)
    yield Row("soliton of speed 2 at t = 2, dt = 0.005, error (Korteweg, de Vries 1895)", errors[-1], 0.0, 5e-8)
    pair = {"u": kdv_two_solitons(1.0, 4.0, meeting=1.0)}
    found = error(KortewegDeVries(6.0, 1.0), interval(80.0, 384), pair, 2.0, 0.005)
    yield Row("two solitons through each other, error (Hirota 1971)", found, 0.0, 1e-5)


@published("kuramoto_sivashinsky")
def linear_growth() -> Iterator[Row]:
    """A small wave at the wave number of fastest growth."""
    k, t = np.sqrt(0.5), 4.0
    grid = interval(4 * 2 * np.pi / k, 32)
    found = advanced(KuramotoSivashinsky(1.0, 1.0), grid, {"u": lambda x: 1e-7 * jnp.cos(k * x[0])}, t, 0.1)
    rate = float(np.log(np.abs(found["u"]).max() / 1e-7) / t)
    yield Row("fastest growth k^2 - k^4 = 1/4 (Kassam, Trefethen 2005)", rate, 0.25, 1e-6)


@published("fisher_kpp")
def front() -> Iterator[Row]:
    """Two fronts that run apart on a long box; the growth of the mass tells their speed."""
    length, time = 260.0, 2.0
    right = fisher_front(1.0, 1.0, center=75.0)
    exact = {"u": lambda x, t: right(jnp.abs(x), t)}
    grid = interval(length, 512)
    found = advanced(FisherKpp(1.0, 1.0), grid, exact, time, 0.02)["u"]
    start, end = (np.asarray([right(np.abs(x), t) for x in grid.points]) for t in (0.0, time))
    speed = float((found.sum() - start.sum()) * length / 512 / (2 * time))
    yield Row("speed of the front 5/sqrt(6) (Ablowitz, Zeppetella 1979)", speed, 5 / np.sqrt(6), 1e-6)
    yield Row("profile of the front, error", float(np.abs(found - end).max()), 0.0, 1e-6)


@published("allen_cahn")
def interfaces() -> Iterator[Row]:
    """A pair of steady fronts, and a circle that shrinks by its curvature."""
    diffusivity, width = 1e-3, 0.08
    equation = AllenCahn(diffusivity, 2 * diffusivity / width**2)
    pair = {"u": lambda x: jnp.tanh((0.5 - jnp.abs(x[0])) / width)}
    grid = interval(2.0, 128)
    start = np.asarray(make_problem(equation, grid.box, initial=pair, horizon=1.0).initial_values(grid)["u"])
    moved = float(np.abs(advanced(equation, grid, pair, 20.0, 0.5)["u"] - start).max())
    yield Row("front tanh(x sqrt(r/(2 D))) is steady (Allen, Cahn 1979), change", moved, 0.0, 1e-4)
    circle = {"u": lambda x: jnp.tanh((0.6 - jnp.sqrt(x[0] ** 2 + x[1] ** 2)) / width)}
    area = [4 * (advanced(equation, square(2.0, 64), circle, t, 1.0)["u"].mean() + 1) / 2 for t in (10.0, 30.0)]
    rate = float((area[0] - area[1]) / (20.0 * 2 * np.pi * diffusivity))
    yield Row("area of a circle falls by 2 pi D per second (Allen, Cahn 1979), ratio", rate, 1.0, 0.02)


@published("cahn_hilliard")
def spinodal() -> Iterator[Row]:
    """A small wave at the wave number of fastest growth."""
    width = 0.01
    k, t = 1 / np.sqrt(2 * width), 0.04
    grid = interval(2 * 2 * np.pi / k, 32)
    found = advanced(CahnHilliard(1.0, width), grid, {"u": lambda x: 1e-6 * jnp.cos(k * x[0])}, t, 0.0005)["u"]
    rate = float(np.log(np.abs(found).max() / 1e-6) / t)
    yield Row("fastest growth M/(4 g) (Cahn 1961)", rate, 25.0, 1e-4)


@published("gray_scott")
def uniform_states() -> Iterator[Row]:
    """The state with catalyst that exists for F >= 4 (F + k)^2."""
    feed, kill = 0.06, 0.06
    u = 0.5 * (1 - np.sqrt(1 - 4 * (feed + kill) ** 2 / feed))
    state = {"u": lambda x: u + 0.0 * x[0], "v": lambda x: (feed + kill) / u + 0.0 * x[0]}
    found = advanced(GrayScott(2e-5, 1e-5, feed, kill), interval(1.0, 8), state, 20.0, 1.0)
    yield Row("u of the uniform state with catalyst (Pearson 1993)", float(found["u"][0]), float(u), 1e-10)


@published("fitzhugh_nagumo")
def rest() -> Iterator[Row]:
    """u = v = -k^(1/3), where both reactions vanish."""
    state = -np.cbrt(0.005)
    start = {name: lambda x: state + 0.0 * x[0] for name in ("u", "v")}
    found = advanced(FitzHughNagumo(1e-3, 5e-3, 0.005, 1.0), interval(1.0, 8), start, 2.0, 0.1)
    yield Row("uniform rest u = v = -k^(1/3)", float(found["u"][0]), float(state), 1e-10)


@published("ginzburg_landau")
def plane_wave() -> Iterator[Row]:
    """A stable plane wave of wave number 1/2 turns at w = D b k^2 + g c a^2."""
    equation = GinzburgLandau(1.0, 1.0, 1.0, 0.5, -0.4)
    found = error(equation, interval(4 * np.pi, 16), ginzburg_landau_plane_wave(equation, 0.5), 4.0, 0.02)
    yield Row("plane wave (Aranson, Kramer 2002, eq. 5), error", found, 0.0, 1e-6)


@published("schroedinger")
def bound_state() -> Iterator[Row]:
    """A soliton in motion, and two sech x, which breathe with the period pi/2 and peak at 4."""
    length, equation = 40.0, Schroedinger(0.5, 1.0)
    exact = bright_soliton(0.5, 1.0, speed=4 * 2 * np.pi / length, period=length)
    found = error(equation, interval(length, 256), exact, 2.0, 0.02)
    yield Row("soliton in motion, error (Zakharov, Shabat 1972)", found, 0.0, 1e-6)
    start = {"real": lambda x: 2 / jnp.cosh(x[0]), "imaginary": lambda x: 0.0 * x[0]}
    fields = advanced(equation, interval(length, 768), start, np.pi / 4, np.pi / 4 / 400)
    peak = float(np.hypot(fields["real"], fields["imaginary"])[384])
    yield Row("2 sech x at t = pi/4 peaks at 4 (Satsuma, Yajima 1974)", peak, 4.0, 1e-5)


@published("maxwell_tm")
def cavity() -> Iterator[Row]:
    """The mode (2, 1) of a square metal cavity of side 1, continued oddly to a periodic box of side 2."""
    turn, k = np.pi * np.sqrt(5.0), np.pi
    mode = {
        "ez": lambda x, t: jnp.sin(2 * k * x[0]) * jnp.sin(k * x[1]) * jnp.cos(turn * t),
        "hx": lambda x, t: -k / turn * jnp.sin(2 * k * x[0]) * jnp.cos(k * x[1]) * jnp.sin(turn * t),
        "hy": lambda x, t: 2 * k / turn * jnp.cos(2 * k * x[0]) * jnp.sin(k * x[1]) * jnp.sin(turn * t),
    }
    found = error(MaxwellTM(1.0, 1.0), square(2.0, 12), mode, 1.3, 1.3)
    yield Row("mode (2, 1) of a unit cavity turns at pi c sqrt(5) (Jackson, sec. 8.7), error", found, 0.0, EXACT)


@published("maxwell_te")
def oblique_wave() -> Iterator[Row]:
    """A plane wave along (3, 4)/5: E across the direction, in phase with H, sqrt(m/e) times as large."""
    permittivity, permeability = 2.0, 0.5
    impedance = np.sqrt(permeability / permittivity)
    sizes = {"hz": 1.0, "ex": -0.8 * impedance, "ey": 0.6 * impedance}
    wave = {name: lambda x, t, a=a: a * jnp.sin(3 * x[0] + 4 * x[1] - 5 * t) for name, a in sizes.items()}
    found = error(MaxwellTE(permittivity, permeability), square(2 * np.pi, 12), wave, 0.9, 0.9)
    yield Row("plane wave at 1/sqrt(e m), impedance sqrt(m/e) (Jackson, sec. 7.1), error", found, 0.0, EXACT)
