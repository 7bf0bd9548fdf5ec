"""One sample over simulated devices equals the one of `solve`; what cannot be shared is refused with a reason."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from decomposed_samples import CASES, SAME, TIMES, alone, difference, together

from sciml.boundary import dirichlet
from sciml.domain import Box, Grid
from sciml.equations import Burgers, CahnHilliard, Heat, KortewegDeVries
from sciml.errors import ConfigError, NumericalError
from sciml.problem import make_problem
from sciml.solvers import Direct, Etdrk4, Rk4
from sciml.solvers.decomposed import JaxDevices, Serial, solve_over_ranks
from sciml.solvers.decomposed.reach import reach_of
from sciml.solvers.decomposed.shared import halo_width

SERIAL = Serial()
BOX = Box((0.0, 0.0), (1.0, 1.0), (True, True))
WALLS = Box((0.0,), (1.0,), (False,))


@pytest.mark.parametrize("name", ["kolmogorov", "burgers"])
def test_four_devices_give_what_one_gives(name):
    assert difference(together(name, JaxDevices(4)), name) <= SAME


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(CASES))
def test_any_number_of_devices_gives_the_same(name):
    """Four are enough where one program takes long to compile; the MPI ranks take the other numbers."""
    reference = alone(name)
    small = (JaxDevices(1), JaxDevices(2)) if name in ("burgers", "heat", "kolmogorov") else ()
    for over in (SERIAL, *small, JaxDevices(4)):
        assert difference(together(name, over), name, reference) <= SAME, over


def test_a_device_holds_its_rows_and_another_coefficient_does_not_compile_again(no_recompilation):
    problem, grid, method = CASES["heat"]()
    over = JaxDevices(2)
    solve_over_ranks(problem, grid, method, times=TIMES, over=over)
    other = make_problem(Heat(diffusivity=0.2), grid.box, initial=problem.initial, horizon=1.0)
    with no_recompilation():
        solution = solve_over_ranks(other, grid, method, times=TIMES, over=over)
    assert solution.first == 0 and solution.fields["u"].shape == (len(TIMES), *grid.shape)
    squares = (solution.fields["u"] ** 2).sum(axis=(1, 2, 3))
    assert np.all(np.diff(squares) < 0), "heat spreads"


def test_an_explicit_step_that_is_too_long_is_divided_alike():
    """The estimate of the largest step is one sum over all rows: all ranks take as many steps as `solve`."""
    problem, grid, _ = CASES["burgers"]()
    with pytest.raises(NumericalError, match="the time step is unstable"):
        solve_over_ranks(problem, grid, Rk4(0.25, unstable="refuse"), times=[0.25], over=SERIAL)


def heat_on(box, shape):
    faces = {face: dirichlet(0.0) for face in box.faces}
    problem = make_problem(Heat(), box, initial={"u": lambda x: 0.0 * x[0]}, boundary=faces, horizon=1.0)
    return problem, Grid(box, shape)


@pytest.mark.parametrize(
    ("box", "shape", "method", "over", "words"),
    [
        (BOX, (10, 8), Etdrk4(), JaxDevices(4), r"4 ranks cannot share 10 points along x evenly.*one of 1, 2, 5, 10"),
        (BOX, (4, 8), Etdrk4(), JaxDevices(8), r"8 ranks cannot share 4 points along x: some would have no points"),
        (WALLS, (32,), Etdrk4(), JaxDevices(2), "only explicit methods can be shared.*kind: rk4"),
        (WALLS, (8,), Rk4(difference_order=4), JaxDevices(8), "too thin.*at least 6 rows.*at most 1 ranks"),
        (WALLS, (16,), Rk4(difference_order=4), JaxDevices(4), "too thin.*at least 6 rows.*at most 2 ranks"),
        (Box((0.0,), (1.0,), (True,)), (32,), Etdrk4(), JaxDevices(2), "in one dimension cannot be shared"),
        (BOX, (8, 8), Etdrk4(), JaxDevices(64), "there are not as many devices.*at most 8"),
    ],
)
def test_what_cannot_be_shared_is_refused(box, shape, method, over, words):
    problem, grid = heat_on(box, shape)
    with pytest.raises(ConfigError, match=f"(?s){words}"):
        solve_over_ranks(problem, grid, method, times=[0.1], over=over)


def test_in_space_both_axes_have_to_divide():
    box = Box((0.0,) * 3, (1.0,) * 3, (True,) * 3)
    problem, grid = heat_on(box, (8, 6, 4))
    with pytest.raises(ConfigError, match=r"(?s)8 points along x and 6 points along y evenly.*one of 1, 2 ranks"):
        solve_over_ranks(problem, grid, Etdrk4(), times=[0.1], over=JaxDevices(4))


def test_a_method_of_its_own_kind_is_refused():
    problem, grid = heat_on(BOX, (8, 8))
    with pytest.raises(ConfigError, match="does not solve"):
        solve_over_ranks(problem, grid, Direct(), times=[0.1], over=SERIAL)


@pytest.mark.parametrize(
    ("equation", "order", "rows"),
    [(Burgers(), 2, 1), (Burgers(), 4, 2), (KortewegDeVries(), 2, 2), (CahnHilliard(), 2, 2), (CahnHilliard(), 4, 4)],
)
def test_how_far_derivatives_reach(equation, order, rows):
    problem = make_problem(
        equation,
        WALLS,
        initial={field.name: lambda x: 0.0 * x[0] for field in equation.fields},
        boundary={face: dirichlet(0.0) for face in WALLS.faces},
        horizon=1.0,
    )
    assert halo_width(problem, order) == rows


@pytest.mark.parametrize(
    ("text", "order", "rows"),
    [
        (lambda u, d: d.divergence(tuple(u * g for g in d.gradient(u))), 2, 1),
        (lambda u, d: d.divergence(tuple(u * g for g in d.gradient(u))), 4, 3),
        (lambda u, d: d.gradient(u)[0] * d.gradient(u)[1], 2, 1),
        (lambda u, d: d.gradient(u)[0] * d.gradient(u)[1], 4, 3),
        (lambda u, d: d.partial(d.map(jax.numpy.sin, u), 0) + 1.0, 4, 2),
        (lambda u, d: u * u, 2, 1),
    ],
)
def test_how_far_a_text_reaches(text, order, rows):
    """Interpolation between points and midpoints counts; one row is exchanged at least."""
    assert reach_of(lambda u, d: {"u": text(u["u"], d)}, ("u",), 2, order) == rows
