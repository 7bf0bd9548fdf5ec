"""Burgers by Cole-Hopf, and gas and water in two dimensions: parts of certificates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from sciml.boundary import neumann
from sciml.calculus.base import Calculus
from sciml.domain import Box, Grid
from sciml.equations.base import Field, equation, parameter
from sciml.equations.burgers import Burgers
from sciml.equations.conservation import ConservationLaw
from sciml.equations.euler import Euler1D, Euler2D
from sciml.equations.shallow_water import ShallowWater1D, ShallowWater2D
from sciml.problem import Problem, make_problem
from sciml.solvers.etdrk4 import Etdrk4
from sciml.solvers.exact import exact_solution
from sciml.solvers.finite_volume.cells import cell_averages, wall
from sciml.solvers.finite_volume.method import FiniteVolume
from sciml.solvers.published import Row, limit, published
from sciml.solvers.solve import solve

STEEPEST = 152.00516
ALONG, ACROSS = 40, 6


@published("burgers")
def cole_hopf() -> Iterator[Row]:
    """-sin(pi x) with nu = 0.01/pi at the time of its steepest slope: C. Basdevant et al., Comput. Fluids 14 (1986) 23.

    The poles of the front lie 0.01 off the real axis, so that the last of 2 * 683 modes is exp(-21) of the first.
    """
    box, time = Box((-1.0,), (1.0,), (True,)), 1.6037 / np.pi
    grid = Grid(box, (2048,))
    problem = make_problem(
        Burgers(0.01 / np.pi), box, initial={"u": lambda x: -jnp.sin(jnp.pi * x[0])}, horizon=time
    )  # fmt: skip
    found = np.asarray(solve(problem, grid, Etdrk4(dt=2.5e-4), times=[time]).fields["u"][0])
    exact = exact_solution(problem, grid, [time])
    assert exact is not None
    yield Row("error of Cole-Hopf itself, on half the points of its quadrature", exact.error, 0.0, 1e-11)
    apart = float(np.linalg.norm(found - exact.fields["u"][0]) / np.linalg.norm(found))
    yield Row("difference from Cole-Hopf, nu = 0.01/pi, 2048 points", apart, 0.0, 1e-8)
    waves = np.pi * np.arange(1025) * (np.arange(1025) < 1024)
    slope = np.abs(np.fft.irfft(1j * waves * np.fft.rfft(found), n=2048)).max()
    yield Row("steepest slope (Basdevant et al. 1986)", float(slope), STEEPEST, 1e-5)


@published("euler_2d")
def entropy_wave() -> Iterator[Row]:
    """Density 1 + 0.99 sin(x + y) carried along by gas of one velocity and pressure, on 16 to 32 cells per axis.

    X. Zhang, C.-W. Shu, J. Comput. Phys. 229 (2010) 8918, sec. 6. The steps are so short that space counts alone.
    """
    law, time = Euler2D(1.4), 0.2
    box = Box((0.0, 0.0), (2 * np.pi, 2 * np.pi), (True, True))

    def density(x: Any, t: float = 0.0) -> Any:
        return 1 + 0.99 * jnp.sin(x[0] + x[1] - 2 * t)

    problem = make_problem(law, box, initial=law.state(density, 1.0, 1.0, 1.0), horizon=time)
    errors = []
    for n in (16, 32):
        grid = Grid(box, (n, n))
        found = solve(problem, grid, FiniteVolume(dt=0.01), times=[time]).fields["density"][0]
        exact = cell_averages(lambda x: density(x, time), grid)
        errors.append(float(jnp.abs(found - exact).mean()))
    yield _at_least("order of the density of an entropy wave", float(np.log2(errors[0] / errors[1])), 4.8)


@limit("euler_2d")
def gas_along_one_axis() -> Iterator[Row]:
    """Sod's states along the second axis make the flow of euler_1d."""

    def state(law: Any, axis: int) -> Any:
        def sides(left: float, right: float) -> Any:
            return lambda x: jnp.where(x[axis] < 0.5, left, right)

        return law.state(sides(1.0, 0.125), *(0.0,) * min(law.dims), sides(1.0, 0.1))

    yield from _along_one_axis(Euler1D(1.4), Euler2D(1.4), state, ("density", "energy"))


@limit("shallow_water_2d")
def water_along_one_axis() -> Iterator[Row]:
    """A dam across the second axis breaks as in shallow_water_1d."""

    def state(law: Any, axis: int) -> Any:
        still = {f.name: lambda x: 0.0 * x[0] for f in law.fields}
        return still | {"depth": lambda x: jnp.where(x[axis] < 0.5, 1.0, 0.1)}

    yield from _along_one_axis(ShallowWater1D(9.81), ShallowWater2D(9.81), state, ("depth",))


def _along_one_axis(one: Any, two: Any, state: Any, names: tuple[str, ...]) -> Iterator[Row]:
    time, found = 0.03, []
    for law, axis, shape in ((one, 0, (ALONG,)), (two, 1, (ACROSS, ALONG))):
        box = Box((0.0,) * len(shape), (1.0,) * len(shape), tuple(a != axis for a in range(len(shape))))
        faces = {face: neumann() for face in box.faces}
        problem = make_problem(law, box, initial=state(law, axis), boundary=faces, horizon=time)
        method = FiniteVolume(dt=1e-3)  # the same in both: shorter than what cfl allows in two dimensions
        fields = solve(problem, Grid(box, shape, cells=True), method, times=[time]).fields
        values = np.stack([np.asarray(fields[name][0]) for name in names])
        found.append(np.moveaxis(values, axis + 1, 1).reshape(len(names), ALONG, -1))
    apart = float(np.abs(found[1] - found[0]).max())
    yield Row("uniform but along y: difference from one dimension", apart, 0.0, 1e-11)


@equation
class RadialShallowWater(ConservationLaw):
    """h_t + (h u)_r = -h u/r, (h u)_t + (h u^2 + g h^2/2)_r = -h u^2/r: water that moves along the radius r."""

    fields: ClassVar[tuple[Field, ...]] = (Field("depth", unit="m"), Field("discharge_x", unit="m^2/s"))
    dims: ClassVar[tuple[int, ...]] = (1,)
    gravity: float = parameter(1.0)

    def _plane(self) -> ShallowWater1D:
        return ShallowWater1D(self.gravity)

    def flux(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """That of water in one dimension."""
        return self._plane().flux(u, d)

    def nonstiff(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """What the growing circumference takes."""
        rate = -u.discharge_x / d.coordinates[0]
        return {"depth": rate, "discharge_x": rate * u.discharge_x / u.depth}

    def max_speed(self, u: Any, axis: int, d: Calculus[Any]) -> Any:
        """|u| + sqrt(g h)."""
        return self._plane().max_speed(u, axis, d)

    def contact(self, u: Any, axis: int, d: Calculus[Any]) -> Any:
        """None but the water itself."""
        return self._plane().contact(u, axis, d)

    def positive(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """The depth."""
        return self._plane().positive(u, d)

    def reflect(self, axis: int) -> Any:
        """The discharge."""
        return self._plane().reflect(axis)


@published("shallow_water_2d")
def radial_dam_break() -> Iterator[Row]:
    """A column of water, as in PDEBench (M. Takamoto et al., 2022, sec. 3.1), against 800 cells along the radius.

    The bore makes the mean error one of first order.
    """
    law, time = RadialShallowWater(1.0), 0.6
    line = Box((0.0,), (2.5,), (False,))
    radial = _column(law, line, {"x-": wall(law, 0), "x+": neumann()}, time)
    fine = Grid(line, (800,), cells=True)
    reference = solve(radial, fine, FiniteVolume(reconstruction="muscl"), times=[time]).fields["depth"][0]
    box = Box((-2.0, -2.0), (2.0, 2.0), (False, False))
    problem = _column(ShallowWater2D(1.0), box, {face: neumann() for face in box.faces}, time)
    errors = []
    for n in (32, 64):
        grid = Grid(box, (n, n), cells=True)
        found = np.asarray(solve(problem, grid, FiniteVolume(), times=[time]).fields["depth"][0])
        averages = cell_averages(lambda x: jnp.interp(jnp.hypot(*x), fine.axes[0], reference), grid)
        errors.append(float(np.abs(found - np.asarray(averages)).mean()))
    yield _at_least("order of a radial dam break, 32 and 64 cells", float(np.log2(errors[0] / errors[1])), 0.8)
    yield Row("its mean error on 64 cells, in parts of one cell of the bore's jump", errors[1] / _one_cell(), 0.0, 1.0)


def _one_cell() -> float:
    """Mean over the box of an error of 1 m (the largest jump) in a ring one cell wide, where the bore is."""
    return 2 * np.pi * 1.1 * (4.0 / 64) / 4.0**2


def _column(law: Any, box: Box, faces: Any, time: float) -> Problem:
    still = {f.name: lambda x: 0.0 * x[0] for f in law.fields}
    initial = still | {"depth": lambda x: jnp.where(x @ x < 0.25, 2.0, 1.0)}
    return make_problem(law, box, initial=initial, boundary=faces, horizon=time)


def _at_least(what: str, found: float, least: float) -> Row:
    return Row(f"{what} is {found:.2f}; below {least:g} by", max(0.0, least - found), 0.0, 0.0)
