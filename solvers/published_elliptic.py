"""Values from the literature for problems between walls, and limits of the elliptic equations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import jax.numpy as jnp
import numpy as np

from sciml.boundary import dirichlet
from sciml.domain import Box, Grid
from sciml.equations.darcy import Darcy
from sciml.equations.helmholtz import Helmholtz
from sciml.equations.poisson import Poisson
from sciml.problem import make_problem
from sciml.solvers.cavity import Cavity, lid_driven_cavity
from sciml.solvers.conjugate_gradient import ConjugateGradient
from sciml.solvers.direct import Direct
from sciml.solvers.multigrid import Multigrid
from sciml.solvers.published import Row, limit, published
from sciml.solvers.solve import solve

LINE = Box((0.0,), (1.0,), (False,))
SQUARE = Box((0.0, 0.0), (1.0, 1.0), (False, False))


@published("darcy")
def flow_through_layers() -> Iterable[Row]:
    """Two layers of permeability 12 and 3 in series, which meet midway between two of 17 points: nothing but rounding.

    The flux is one over the sum of the resistances, and the pressure falls in proportion to them.
    """
    ends, meet = {"x-": dirichlet(1.0), "x+": dirichlet(0.0)}, 7.5 / 16
    layers = make_problem(Darcy(lambda x: jnp.where(x[0] < meet, 12.0, 3.0), 0.0), LINE, boundary=ends)
    x = np.linspace(0.0, 1.0, 17)
    resistance = np.where(x < meet, x / 12.0, meet / 12.0 + (x - meet) / 3.0)
    for method in (Direct(), ConjugateGradient(tolerance=1e-13), Multigrid(tolerance=1e-13)):
        found = np.asarray(solve(layers, Grid(LINE, (17,)), method).fields["u"])
        name, flux = type(method).__name__, 12.0 * (found[0] - found[1]) * 16
        yield Row(f"flux through two layers (harmonic mean), {name}", float(flux), 1 / float(resistance[-1]), 1e-10)
        apart = np.abs(found - (1 - resistance / resistance[-1])).max()
        yield Row(f"pressure in two layers: error, {name}", float(apart), 0.0, 1e-11)


@limit("darcy")
def constant_permeability() -> Iterable[Row]:
    """With a constant permeability a, Darcy's equation is Poisson's with f/a."""
    found = _difference(Darcy(4.0, 2.0), Poisson(0.5))
    yield Row("constant permeability 4: difference from -lap u = f/4", found, 0.0, 1e-12)


@limit("helmholtz")
def wavenumber_zero() -> Iterable[Row]:
    """With k = 0 the Helmholtz equation is Poisson's."""
    yield Row("k = 0: difference from the Poisson equation", _difference(Helmholtz(0.0, 1.0), Poisson(1.0)), 0.0, 1e-12)


@published("helmholtz")
def dispersion_of_differences() -> Iterable[Row]:
    """On a line the answer of the differences is a wave of a slightly larger wave number, cos(k' h) = 1 - (k h)^2/2.

    F. Ihlenburg, I. Babuska, Comput. Math. Appl. 30 (1995) 9, show the same for finite elements.
    """
    k, n = 20.0, 100
    ends = {"x-": dirichlet(0.0), "x+": dirichlet(float(np.sin(k)))}
    problem = make_problem(Helmholtz(k, 0.0), LINE, boundary=ends)
    found = np.asarray(solve(problem, Grid(LINE, (n + 1,)), Direct()).fields["u"])
    slower = np.arccos(1 - (k / n) ** 2 / 2) * n
    predicted = np.sin(slower * np.linspace(0, 1, n + 1)) * np.sin(k) / np.sin(slower)
    yield Row("k = 20, 100 intervals: error of the predicted wave", float(np.abs(found - predicted).max()), 0.0, 1e-10)
    small = (slower / k - 1) / (k**2 / n**2 / 24)
    yield Row("excess of its wave number over k^3 h^2/24 (leading term)", float(small), 1.0, (k / n) ** 2 / 4)


@published("helmholtz")
def two_media() -> Iterable[Row]:
    """Wave numbers 2 and 6 meet midway between two points: u and its slope are continuous, and order 2 stays."""
    ends = {"x-": dirichlet(0.0), "x+": dirichlet(1.0)}
    problem = make_problem(Helmholtz(lambda x: jnp.where(x[0] < 0.5, 2.0, 6.0), 0.0), LINE, boundary=ends)
    errors = []
    for n in (17, 33, 65, 129):
        x = np.linspace(0.0, 1.0, n + 1)
        left, right = np.sin(2 * x), np.sin(1.0) * np.cos(6 * x - 3) + np.cos(1.0) / 3 * np.sin(6 * x - 3)
        found = np.asarray(solve(problem, Grid(LINE, (n + 1,)), Direct()).fields["u"])
        errors.append(float(np.abs(found - np.where(x < 0.5, left, right) / right[-1]).max()))
    order = -float(np.polyfit(np.log([17, 33, 65, 129]), np.log(errors), 1)[0])
    yield Row("order of the error where two media meet, 17 to 129 intervals", order, 2.0, 0.2)


@published("poisson")
def square_under_a_constant_load() -> Iterable[Row]:
    """-lap u = 1 on the unit square, u = 0 around: u = 0.0736713533 in the center.

    S. P. Timoshenko, J. N. Goodier, Theory of Elasticity (1951), sec. 94 (torsion of a square bar), summed here.
    """
    problem = make_problem(Poisson(1.0), SQUARE, boundary={face: dirichlet(0.0) for face in SQUARE.faces})
    values = []
    for n in (33, 65):
        values.append(float(solve(problem, Grid(SQUARE, (n, n)), Direct()).fields["u"][n // 2, n // 2]))
    yield Row("center of a loaded square (series)", values[1] + (values[1] - values[0]) / 3, _center_of_square(), 1e-7)


def _center_of_square() -> float:
    odd = np.arange(1, 40, 2)
    signs = np.where(odd % 4 == 1, 1.0, -1.0)
    return float(0.125 - 4 / np.pi**3 * np.sum(signs / (odd**3 * np.cosh(odd * np.pi / 2))))


def _difference(first: Any, second: Any) -> float:
    grid = Grid(SQUARE, (9, 9))
    fields = []
    for equation in (first, second):
        problem = make_problem(equation, SQUARE, boundary={face: dirichlet(0.3) for face in SQUARE.faces})
        fields.append(np.asarray(solve(problem, grid, Direct()).fields["u"]))
    return float(np.abs(fields[0] - fields[1]).max())


CAVITY_AT_100 = {"u in the center": -0.2091, "least u": -0.2140, "least v": -0.2538, "largest v": 0.1796}
"""C. H. Marchi, R. Suero, L. K. Araki, J. Braz. Soc. Mech. Sci. Eng. 31 (2009) 186, to four digits."""


@published("navier_stokes_vorticity", long=True)
def cavity_at_100() -> Iterable[Row]:
    """Lid-driven cavity, Reynolds number 100, 17 and 33 points extrapolated, whose fourth order is 0.5 % at the walls.

    33 and 65 points extrapolate to -0.2090, -0.2138, -0.2534, 0.1791. The older table of U. Ghia, K. N. Ghia,
    C. T. Shin, J. Comput. Phys. 48 (1982) 387 has -0.20581, -0.21090, -0.24533, up to 3.4 % less.
    """
    found = extrapolated(lid_driven_cavity(100.0, 17), lid_driven_cavity(100.0, 33))
    for name, value in CAVITY_AT_100.items():
        yield Row(f"cavity, Re = 100: {name} (Marchi et al. 2009)", found[name], value, 6e-3 * abs(value))


@published("navier_stokes_vorticity", long=True)
def cavity_at_1000() -> Iterable[Row]:
    """Lid-driven cavity, Reynolds number 1000, 65 and 129 points extrapolated (about two minutes).

    O. Botella, R. Peyret, Comput. Fluids 27 (1998) 421, table 5.
    """
    found = extrapolated(lid_driven_cavity(1000.0, 65), lid_driven_cavity(1000.0, 129))
    yield Row(
        "cavity, Re = 1000: psi of the main vortex (Botella, Peyret 1998)", found["least psi"], -0.118936603, 3e-4
    )


def center_lines(flow: Cavity) -> dict[str, float]:
    """u in the center of the cavity, the extreme velocities on its center lines, the least stream function."""
    middle = flow.grid.shape[0] // 2
    u, v = flow.velocity[0][middle, :], flow.velocity[1][:, middle]
    return {
        "u in the center": float(u[middle]),
        "least u": _extreme(u, np.argmin(u)),
        "least v": _extreme(v, np.argmin(v)),
        "largest v": _extreme(v, np.argmax(v)),
        "least psi": float(flow.stream.min()),
    }


def _extreme(values: np.ndarray, at: np.intp) -> float:
    """Of the parabola through the extreme value and its neighbors."""
    before, here, after = values[at - 1 : at + 2]
    return float(here - (after - before) ** 2 / (8 * (before - 2 * here + after)))


def extrapolated(coarse: Cavity, fine: Cavity) -> dict[str, float]:
    """`center_lines` on two grids, the second twice as fine, without the error of order 2 (Richardson)."""
    first, second = center_lines(coarse), center_lines(fine)
    return {name: second[name] + (second[name] - first[name]) / 3 for name in second}
