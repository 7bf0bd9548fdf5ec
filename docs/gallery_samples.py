"""One sample of every equation for the gallery: what it starts from, on which grid, by which method."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciml.boundary import dirichlet, neumann
from sciml.domain import Box, Grid
from sciml.problem import make_problem
from sciml.registry import load
from sciml.sampling import RandomFourierSeries
from sciml.solvers import solve

Start = Callable[[Any], Any]


@dataclass(frozen=True)
class Sample:
    """An equation by name with its coefficients, initial fields, box, points per axis, method and saved times.

    `shown` is the field in the picture; `told` is what the picture should show.
    """

    equation: str
    shown: str
    told: str
    options: Mapping[str, Any] = field(default_factory=dict)
    initial: Mapping[str, Start] = field(default_factory=dict)
    lower: tuple[float, ...] = (0.0,)
    upper: tuple[float, ...] = (1.0,)
    points: int = 128
    method: str = "etdrk4"
    dt: float = 1e-3
    end: float | None = 1.0
    frames: int = 60
    boundary: Mapping[str, Any] = field(default_factory=dict)

    def solved(self) -> tuple[Grid, np.ndarray | None, np.ndarray]:
        """Grid, times, and the values of the field shown: (T, *grid.shape), or (*grid.shape) if steady."""
        dim = len(self.lower)
        box = Box(self.lower, self.upper, (not self.boundary,) * dim)
        cells = self.method == "finite_volume" and bool(self.boundary)
        grid = Grid(box, (self.points,) * dim, cells)
        equation = load("equation", self.equation)(**self.options)
        faces = {face: next(iter(self.boundary.values())) for face in box.faces}
        problem = make_problem(equation, box, initial=self.initial, boundary=faces, horizon=self.end)
        kind = load("method", self.method)
        if self.end is None:
            return grid, None, np.asarray(solve(problem, grid, kind()).fields[self.shown])
        times = np.linspace(0.0, self.end, self.frames)
        values = solve(problem, grid, kind(dt=self.dt), times=times).fields[self.shown]
        return grid, times, np.asarray(values)


def rough(seed: int, dim: int, upper: float, modes: int = 6, amplitude: float = 1.0, mean: float = 0.0) -> Start:
    """A random periodic field."""
    box = Box((0.0,) * dim, (upper,) * dim, (True,) * dim)
    return RandomFourierSeries(modes=modes, amplitude=amplitude, mean=mean).draw(jax.random.key(seed), box)


def bump(*center: float, width: float = 0.08, height: float = 1.0, base: float = 0.0) -> Start:
    """A Gaussian."""
    return lambda x: base + height * jnp.exp(-jnp.sum((x - jnp.asarray(center)) ** 2) / (2 * width**2))


def inside(inner: float, outer: float, radius: float = 0.5) -> Start:
    """One value inside a circle (an interval) around 0, another one outside."""
    return lambda x: jnp.where(jnp.sum(x**2) < radius**2, inner, outer)


def zero(x: Any) -> Any:
    """Nothing."""
    return 0.0 * x[0]


def steps(x: Any) -> Any:
    """A medium of two conductivities, 3 and 12."""
    return jnp.where(jnp.sin(7 * x[0] + 2 * x[1]) * jnp.cos(5 * x[1] - 3 * x[0]) > 0, 12.0, 3.0)


def two_solitons(x: Any) -> Any:
    """A tall soliton behind a low one."""
    tall, low = (c / 2 / jnp.cosh(jnp.sqrt(c) / 2 * (x[0] - at)) ** 2 for c, at in ((4.0, 8.0), (1.0, 16.0)))
    return tall + low


def layers(x: Any) -> Any:
    """Two shear layers with a small wave on them."""
    rolled = jnp.where(x[1] < np.pi, x[1] - np.pi / 2, 3 * np.pi / 2 - x[1])
    sign = jnp.where(x[1] < np.pi, -1.0, 1.0)
    return sign * 15 / jnp.pi / jnp.cosh(15 / jnp.pi * rolled) ** 2 + 0.05 * jnp.cos(x[0])


FLAT, PLANE, SPACE = (0.0,), (0.0, 0.0), (0.0, 0.0, 0.0)
TURN = 2 * np.pi
OPEN = {"all": neumann(0.0)}

SAMPLES: tuple[Sample, ...] = (
    Sample("heat", "u", "rough parts vanish first, the mean stays", {"diffusivity": 0.01},
           {"u": rough(0, 1, 1.0, 12)}, dt=1.0),
    Sample("advection", "u", "the profile moves without changing", {}, {"u": bump(0.3)}, dt=1.0),
    Sample("wave", "u", "a hump splits into two that run apart and meet again", {},
           {"u": bump(0.5), "v": zero}, dt=1.0),
    Sample("burgers", "u", "slopes steepen into shocks that catch up with each other and decay", {"viscosity": 2e-3},
           {"u": rough(1, 1, 1.0, 3)}, points=512),
    Sample("inviscid_burgers", "u", "the same start without viscosity: sharp shocks, fans between them", {},
           {"u": rough(1, 1, 1.0, 3)}, points=256, method="finite_volume", dt=1.0),
    Sample("korteweg_de_vries", "u", "the tall soliton passes the low one; both come out shifted", {},
           {"u": two_solitons}, upper=(40.0,), points=256, end=6.0, dt=2e-3),
    Sample("kuramoto_sivashinsky", "u", "ripples grow, saturate and split for ever", {},
           {"u": lambda x: jnp.cos(x[0] / 16) * (1 + jnp.sin(x[0] / 16))}, upper=(32 * np.pi,), points=256, dt=0.1,
           end=150.0, frames=150),
    Sample("allen_cahn", "u", "regions of +1 and -1 with thin interfaces; small ones shrink",
           {"diffusivity": 2e-4, "rate": 5.0}, {"u": rough(2, 2, 1.0, 8, 0.3)}, PLANE, (1.0, 1.0), end=4.0, dt=0.02),
    Sample("cahn_hilliard", "u", "two phases separate and coarsen; their amounts stay", {"gradient_energy": 2e-4},
           {"u": rough(3, 2, 1.0, 12, 0.1)}, PLANE, (1.0, 1.0), end=0.02, dt=2e-5, frames=20),
    Sample("gray_scott", "v", "a spot eats into its surroundings and leaves a maze",
           {"fuel_diffusivity": 2e-5, "catalyst_diffusivity": 1e-5},
           {"u": bump(0.1, 0.0, width=0.12, height=-0.6, base=1.0), "v": bump(0.0, 0.0, width=0.12, height=0.4)},
           (-1.0, -1.0), (1.0, 1.0), end=4000.0, dt=1.0, frames=9),
    Sample("fitzhugh_nagumo", "u", "waves of excitation", {"activator_diffusivity": 1e-3},
           {"u": rough(4, 2, 2.0, 6), "v": rough(5, 2, 2.0, 6)}, PLANE, (2.0, 2.0), end=5.0, dt=0.01, frames=16),
    Sample("fisher_kpp", "u", "two fronts of constant speed invade the empty part", {"diffusivity": 1e-3, "rate": 5.0},
           {"u": bump(0.5, width=0.03)}, dt=0.01, end=3.0, points=256),
    Sample("ginzburg_landau", "real", "spiral waves", {"nonlinear_dispersion": 1.2},
           {"real": rough(6, 2, 100.0, 6, 0.5), "imaginary": rough(7, 2, 100.0, 6, 0.5)}, PLANE, (100.0, 100.0), 128,
           dt=0.05, end=60.0, frames=16),
    Sample("schroedinger", "real", "a two-soliton state breathes", {"dispersion": 0.5, "focusing": 1.0},
           {"real": lambda x: 2 / jnp.cosh(x[0]), "imaginary": zero}, (-5.0,), (5.0,), 256, dt=1e-3, end=np.pi / 2),
    Sample("maxwell_tm", "ez", "a pulse spreads as a ring", {},
           {"ez": bump(0.4, 0.5, width=0.05), "hx": zero, "hy": zero}, PLANE, (1.0, 1.0), dt=1.0, end=0.3, frames=8),
    Sample("maxwell_te", "hz", "the same for the other polarization", {},
           {"hz": bump(0.4, 0.5, width=0.05), "ex": zero, "ey": zero}, PLANE, (1.0, 1.0), dt=1.0, end=0.3, frames=8),
    Sample("navier_stokes_vorticity", "omega", "two shear layers roll up into vortices", {"viscosity": 5e-4},
           {"omega": layers}, PLANE, (TURN, TURN), 256, dt=5e-3, end=8.0, frames=9),
    Sample("navier_stokes_2d", "u", "a Taylor-Green vortex with a disturbance", {"viscosity": 2e-3},
           {"u": lambda x: jnp.sin(x[0]) * jnp.cos(x[1]) + 0.2 * jnp.sin(3 * x[1]),
            "v": lambda x: -jnp.cos(x[0]) * jnp.sin(x[1])}, PLANE, (TURN, TURN), 96, dt=0.01, end=10.0, frames=9),
    Sample("navier_stokes_3d", "u", "the Taylor-Green vortex in space: a cut at z = 0", {"viscosity": 0.01},
           {"u": lambda x: jnp.sin(x[0]) * jnp.cos(x[1]) * jnp.cos(x[2]),
            "v": lambda x: -jnp.cos(x[0]) * jnp.sin(x[1]) * jnp.cos(x[2]), "w": zero}, SPACE, (TURN,) * 3, 32,
           dt=0.05, end=6.0, frames=4),
    Sample("shallow_water_1d", "depth", "a dam breaks: a shock runs to the right, a fan to the left", {"gravity": 1.0},
           {"depth": lambda x: jnp.where(x[0] < 0.5, 2.0, 1.0), "discharge_x": zero}, points=256,
           method="finite_volume", dt=1.0, end=0.25, boundary=OPEN),
    Sample("shallow_water_2d", "depth", "a round dam breaks: rings", {"gravity": 1.0},
           {"depth": inside(2.0, 1.0), "discharge_x": zero, "discharge_y": zero}, (-2.5, -2.5), (2.5, 2.5), 128,
           method="finite_volume", dt=1.0, end=1.0, frames=5, boundary=OPEN),
    Sample("euler_1d", "density", "Sod's tube: fan, contact and shock", {},
           {"density": lambda x: jnp.where(x[0] < 0.5, 1.0, 0.125), "momentum_x": zero,
            "energy": lambda x: jnp.where(x[0] < 0.5, 2.5, 0.25)}, points=256, method="finite_volume", dt=1.0, end=0.2,
           boundary=OPEN),
    Sample("euler_2d", "density", "a cylinder of high pressure: a round shock, behind it the contact", {},
           {"density": inside(1.0, 0.125, 0.4), "momentum_x": zero, "momentum_y": zero,
            "energy": inside(2.5, 0.25, 0.4)}, (-1.0, -1.0), (1.0, 1.0), 128, method="finite_volume", dt=1.0, end=0.25,
           frames=5, boundary=OPEN),
    Sample("poisson", "u", "the membrane under a constant load", {}, {}, PLANE, (1.0, 1.0), 65, "direct",
           end=None, boundary={"all": dirichlet(0.0)}),
    Sample("darcy", "u", "pressure in a medium of conductivities 3 and 12", {"permeability": steps}, {}, PLANE,
           (1.0, 1.0), 129, "multigrid", end=None, boundary={"all": dirichlet(0.0)}),
    Sample("helmholtz", "u", "a standing wave", {"wavenumber": 20.0, "forcing": bump(0.3, 0.4, width=0.05)}, {}, PLANE,
           (1.0, 1.0), 129, "direct", end=None, boundary={"all": dirichlet(0.0)}),
    Sample("elasticity", "ux", "sideways displacement of a clamped square that is pressed down in the middle",
           {"force_y": bump(0.5, 0.6, width=0.1, height=-1.0)}, {}, PLANE, (1.0, 1.0), 65, "bicgstab", end=None,
           boundary={"all": dirichlet(0.0)}),
)  # fmt: skip
