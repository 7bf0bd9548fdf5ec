"""Elliptic problems: jumping coefficients, every solver with every condition it accepts, what has no solution."""

from __future__ import annotations

import dataclasses
from contextlib import nullcontext
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_close

from sciml.boundary import dirichlet, natural_faces, neumann, robin
from sciml.calculus import FiniteDifference
from sciml.domain import Box, Grid
from sciml.equations.darcy import Darcy
from sciml.equations.helmholtz import Helmholtz
from sciml.equations.poisson import Poisson
from sciml.errors import ConfigError, NumericalError
from sciml.problem import make_problem, manufactured
from sciml.solvers import Bicgstab, ConjugateGradient, Direct, Multigrid, solve
from sciml.solvers.modes import conditions_of
from sciml.solvers.spaces import GridSpace
from sciml.solvers.transforms import transform_for

LINE = Box((0.0,), (1.0,), (False,))
SQUARE = Box((0.0, 0.0), (1.0, 1.0), (False, False))
LEFT, RIGHT = 12.0, 3.0


def layers(x):
    """Two materials that meet in the middle."""
    return jnp.where(x[0] < 0.5, LEFT, RIGHT)


def through_layers(x):
    """u = 1 at x = 0, 0 at x = 1 without sources: the flux is one over the sum of the resistances."""
    flux = 1.0 / (0.5 / LEFT + 0.5 / RIGHT)
    return np.where(x < 0.5, 1.0 - flux * x / LEFT, flux * (1.0 - x) / RIGHT)


def test_flow_through_layers_is_exact():
    """Jump midway between two points: the harmonic mean gives the exact pressures, to rounding."""
    problem = make_problem(Darcy(layers, 0.0), LINE, boundary={"x-": dirichlet(1.0), "x+": dirichlet(0.0)})
    grid = Grid(LINE, (16,))
    found = solve(problem, grid, Direct()).fields["u"]
    assert_close(found, through_layers(grid.axes[0]), rtol=0, atol=1e-13)
    d = FiniteDifference(grid, problem.boundary)  # control: with plain means between the points it is not
    plain = d.stencils.apply(layers(grid.points.T), 0, 0, "to_face")
    fluxes = plain * d.gradient(d.field(found))[0].raw
    assert np.ptp(np.asarray(fluxes[1:-1])) > 0.1


def test_flow_through_layers_between_walls_is_exact():
    """The same in two dimensions between insulating walls, by conjugate gradients with a tolerance of 1e-12."""
    boundary = {"x-": dirichlet(1.0), "x+": dirichlet(0.0), "y-": neumann(0.0), "y+": neumann(0.0)}
    grid = Grid(SQUARE, (16, 9))
    found = solve(make_problem(Darcy(layers, 0.0), SQUARE, boundary=boundary), grid, Direct()).fields["u"]
    assert_close(found, np.tile(through_layers(grid.axes[0])[:, None], (1, 9)), rtol=0, atol=1e-10)


def smooth(x):
    return jnp.sin(2.0 * x[0] + 0.3) * jnp.cos(3.0 * x[1])


def slope(axis, sign):
    """The outward derivative of `smooth` on a face."""
    return lambda x: sign * jax.grad(smooth)(x)[axis]


def level(axis, sign):
    """2 u + 0.5 du/dn."""
    return lambda x: 2.0 * smooth(x) + 0.5 * slope(axis, sign)(x)


MAKE = {
    "dirichlet": lambda axis, sign: dirichlet(smooth),
    "neumann": lambda axis, sign: neumann(slope(axis, sign)),
    "robin": lambda axis, sign: robin(2.0, 0.5, level(axis, sign)),
}
FACES = {
    "dirichlet": ("dirichlet",) * 4,
    "neumann": ("neumann",) * 4,
    "robin": ("robin",) * 4,
    "mixed": ("dirichlet", "neumann", "robin", "neumann"),
}
SOLVERS = {
    "direct": Direct(),
    "conjugate_gradient": ConjugateGradient(),
    "bicgstab": Bicgstab(),
    "multigrid": Multigrid(),
}
SIDES = {"x-": (0, -1.0), "x+": (0, 1.0), "y-": (1, -1.0), "y+": (1, 1.0)}


def varying(x):
    return 1.0 + 0.5 * jnp.sin(3.0 * x[0]) * x[1]


QUICK = {("direct", "robin"), ("conjugate_gradient", "mixed"), ("bicgstab", "neumann"), ("multigrid", "mixed")}
PAIRS = [
    (name, kind) if (name, kind) in QUICK else pytest.param(name, kind, marks=pytest.mark.slow)
    for name in SOLVERS
    for kind in FACES
]


@pytest.mark.parametrize(("name", "kind"), PAIRS)
def test_every_solver_with_every_condition(name, kind):
    """Darcy flow with a smooth coefficient, manufactured: order 2, from 8 to 16 intervals."""
    chosen = dict(zip(SIDES, FACES[kind], strict=True))
    problem = manufactured(
        Darcy(varying), SQUARE, {"u": smooth}, condition=lambda f, axis, sign: _on(chosen, axis, sign)
    )
    errors = []
    for n in (9, 17):
        grid = Grid(SQUARE, (n, n))
        difference = np.asarray(solve(problem, grid, SOLVERS[name]).fields["u"] - problem.exact_values(grid)["u"])
        if kind == "neumann":
            difference = difference - difference.mean()
        errors.append(np.abs(difference).max())
    assert 1.8 < np.log2(errors[0] / errors[1]) < 2.3, errors


def _on(chosen, axis, sign):
    return MAKE[chosen["xy"[axis] + ("+" if sign > 0 else "-")]](axis, sign)


ENDS = {"d": dirichlet(0.0), "n": neumann(0.0)}


@pytest.mark.parametrize("ends", ["dd", "nn", "nd", "dn", "periodic"])
def test_fast_transforms_are_the_eigenvectors_of_the_differences(ends):
    """Against the matrix of the second difference itself, and there and back."""
    line = Box((0.0,), (1.3,), (ends == "periodic",))
    boundary = {} if ends == "periodic" else {"x-": ENDS[ends[0]], "x+": ENDS[ends[1]]}
    grid = Grid(line, (14,))
    conditions = conditions_of(boundary)
    transform = transform_for(grid, conditions, natural_faces(boundary, 2))
    assert transform is not None
    values = jnp.asarray(np.random.default_rng(1).standard_normal((3, transform.eigenvalues.size)))
    coefficients = transform.forward(values, -1)
    assert_close(transform.backward(coefficients, -1), values, rtol=0, atol=1e-13)
    space = GridSpace(grid, ("u",), boundary, 2, differences=True)
    applied = [space.read(lambda u, d: {"u": d.laplacian(u["u"])}, row[None], None)[0] for row in values]
    told = transform.backward(coefficients * transform.eigenvalues, -1)
    assert_close(told, jnp.stack(applied), rtol=0, atol=1e-10)  # entries of 4/h^2 = 400


def steep(x):
    """Of mean zero."""
    return jnp.exp(10 * x[0]) - jnp.expm1(10.0) / 10


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Layer:
    """One between two places, less its mean over the unit interval."""

    first: Any
    last: Any

    def __call__(self, x):
        return jnp.where((x[0] > self.first) & (x[0] < self.last), 1.0, 0.0) - (self.last - self.first)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Cosine:
    """cos(pi x) and a constant."""

    excess: Any

    def __call__(self, x):
        return jnp.cos(jnp.pi * x[0]) + self.excess


class TestNeumannOnly:
    walls = {face: neumann(0.0) for face in SQUARE.faces}
    grid = Grid(SQUARE, (17, 33))

    def test_compatible_data_give_the_solution_of_mean_zero(self):
        """cos(pi x) is an eigenvector of the differences, so only its eigenvalue is off; rounding 1e-12."""
        problem = make_problem(Poisson(lambda x: jnp.pi**2 * jnp.cos(jnp.pi * x[0])), SQUARE, boundary=self.walls)
        found = np.asarray(solve(problem, self.grid, Direct()).fields["u"])
        factor = (np.pi / 16) ** 2 / (4 * np.sin(np.pi / 32) ** 2)
        assert_close(found, factor * np.cos(np.pi * self.grid.points[..., 0]), rtol=0, atol=1e-11)

    def test_a_source_that_does_not_balance_is_refused(self):
        with pytest.raises(NumericalError, match="does not balance") as caught:
            solve(make_problem(Poisson(1.0), SQUARE, boundary=self.walls), self.grid, Direct())
        assert "mean of 1" in str(caught.value) and "subtract the mean" in caught.value.fix

    @pytest.mark.parametrize("source", [steep, Layer(jnp.asarray(0.3), jnp.asarray(0.8))])
    def test_data_that_balance_are_taken_however_rough(self, source):
        """The trapezoidal rule sees a mean of 2 % of the size of exp(10 x) less its mean, and of h/2 per jump."""
        walls = {face: neumann(0.0) for face in LINE.faces}
        ends = np.random.default_rng(3).uniform((0.15, 0.65), (0.5, 0.85), (10, 2))
        others = [Layer(*map(jnp.asarray, pair)) for pair in ends] if isinstance(source, Layer) else []
        for forcing in (source, *others):
            problem = make_problem(Poisson(forcing), LINE, boundary=walls)
            assert jnp.isfinite(solve(problem, Grid(LINE, (17,)), Direct()).fields["u"]).all()

    def test_a_small_imbalance_of_smooth_data_is_refused(self):
        for excess, is_refused in ((0.0, False), (0.008, True)):
            source = Cosine(jnp.asarray(excess))
            problem = make_problem(Poisson(source), SQUARE, boundary=self.walls)
            with pytest.raises(NumericalError, match="does not balance") if is_refused else nullcontext():
                solve(problem, Grid(SQUARE, (33, 17)), Direct())

    def test_outflow_balances_the_source(self):
        """-lap u = 1 with du/dn = -1 at x = 1 alone: what comes in leaves there; u = -(x^2 - 1/3)/2 exactly."""
        problem = make_problem(Poisson(1.0), SQUARE, boundary=self.walls | {"x+": neumann(-1.0)})
        found = np.asarray(solve(problem, self.grid, Direct()).fields["u"])
        x = self.grid.points[..., 0]
        assert_close(found - found[0, 0], -0.5 * x**2, rtol=0, atol=1e-11)


class TestHelmholtz:
    wave = staticmethod(lambda x: jnp.sin(4.0 * x[0] + 1.0) * jnp.cos(3.0 * x[1]))  # lap = -25
    grid = Grid(SQUARE, (33, 33))

    def problem(self, wavenumber, forcing=0.0):
        boundary = {face: dirichlet(self.wave) for face in SQUARE.faces}
        return make_problem(Helmholtz(wavenumber, forcing), SQUARE, boundary=boundary)

    @pytest.mark.parametrize("method", [Direct(), Direct(difference_order=4), Bicgstab()])
    def test_above_the_first_resonance(self, method):
        """k = 5 is above sqrt(2) pi: indefinite; u solves it exactly, the differences to their order."""
        found = np.asarray(solve(self.problem(5.0), self.grid, method).fields["u"])
        error = np.abs(found - jax.vmap(self.wave)(jnp.asarray(self.grid.points.reshape(-1, 2))).reshape(33, 33)).max()
        assert error < (1e-2 if method.difference_order == 2 else 1e-4)

    @pytest.mark.parametrize("method", [ConjugateGradient(), Multigrid()])
    def test_indefinite_is_refused_by_methods_that_need_one_sign(self, method):
        with pytest.raises(NumericalError, match="both signs") as caught:
            solve(self.problem(5.0), self.grid, method)
        assert "direct" in caught.value.fix
        assert np.isfinite(solve(self.problem(3.0), self.grid, method).fields["u"]).all()

    @pytest.mark.parametrize("method", [Direct(), Bicgstab()])
    def test_a_resonance_is_refused_by_name(self, method):
        """k^2 = 5 pi^2 is the second eigenvalue of the square; 4 % beside it the answer is large, but is one."""
        with pytest.raises(NumericalError, match="at a resonance") as caught:
            solve(self.problem(np.sqrt(5) * np.pi), self.grid, method)
        assert "wave number" in caught.value.fix
        assert np.isfinite(solve(self.problem(1.02 * np.sqrt(5) * np.pi), self.grid, method).fields["u"]).all()


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_coefficient_that_changes_sign_is_refused(sign):
    boundary = {"x-": dirichlet(1.0), "x+": dirichlet(0.0)}
    problem = make_problem(Darcy(lambda x: x[0] + 0.5 * sign), LINE, boundary=boundary)
    if sign > 0:
        assert np.isfinite(solve(problem, Grid(LINE, (16,)), Direct()).fields["u"]).all()
        return
    with pytest.raises(ConfigError, match="'permeability' changes sign") as caught:
        solve(problem, Grid(LINE, (16,)), Direct())
    assert "-0.5 at x = 0" in str(caught.value)
