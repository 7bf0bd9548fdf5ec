"""Linear systems in one exact step: functions of small matrices, waves and light on periodic and bounded boxes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from comparison import assert_close

from sciml.boundary import dirichlet, neumann
from sciml.domain import Box, Grid
from sciml.equations import FitzHughNagumo, Heat, MaxwellTE, MaxwellTM, Schroedinger, Wave
from sciml.problem import make_problem
from sciml.solvers import Etdrk4, Imex, Rk4, exact_solution, integrate, solve
from sciml.solvers.blocks import Blocks
from sciml.solvers.trial import harmonics


def augmented(matrix, step):
    """phi_0 ... phi_3 of one matrix by SciPy, as blocks of one large exponential."""
    n = matrix.shape[0]
    chain = np.zeros((4 * n, 4 * n))
    chain[:n, :n] = step * matrix
    for k in range(3):
        chain[k * n : (k + 1) * n, (k + 1) * n : (k + 2) * n] = np.eye(n)
    row = scipy.linalg.expm(chain)[:n]
    return [row[:, k * n : (k + 1) * n] for k in range(4)]


def test_functions_of_blocks_equal_dense_exponentials():
    """Random matrices whose fields have units six decades apart."""
    scale = np.diag([1.0, 1e3, 1e-3])
    random = np.random.default_rng(0).standard_normal((8, 3, 3))
    matrices = np.stack([scale @ m @ np.linalg.inv(scale) for m in random])
    blocks = Blocks(jnp.asarray(np.moveaxis(matrices, 0, -1)))
    found = [np.asarray(f) for f in jax.jit(blocks.phi)(0.7)]
    for mode, matrix in enumerate(matrices):
        for k, expected in enumerate(augmented(np.linalg.inv(scale) @ matrix @ scale, 0.7)):
            assert_close(np.linalg.inv(scale) @ found[k][..., mode] @ scale, expected, rtol=0, atol=1e-13)
    plain = Blocks(jnp.asarray(np.moveaxis(random, 0, -1)))
    y = jnp.asarray(np.random.default_rng(1).standard_normal((3, 8)))
    assert_close(plain.act(plain.shifted_inverse(0.2), y - 0.2 * plain.apply(y)), y, rtol=0, atol=1e-12)


def test_slow_modes_keep_all_digits_beside_fast_ones():
    """The block of the wave equation: [[cos, sin/k], [-k sin, cos]], and phi_1 its mean over the step."""
    k, t = np.asarray([0.0, 1e-3, 1.0, 300.0, 1e4]), 2.0
    matrix = np.zeros((2, 2, 5))
    matrix[0, 1], matrix[1, 0] = 1.0, -(k**2)
    blocks = Blocks(jnp.asarray(matrix))
    full, mean, *_ = (np.asarray(f) for f in blocks.phi(t))
    rounding = 1e-15 * np.maximum(1.0, k * t)
    assert np.all(np.abs(full[0, 0] - np.cos(k * t)) < rounding)
    assert np.all(np.abs(full[0, 1] - t * np.sinc(k * t / np.pi)) < rounding * t)
    assert np.all(np.abs(mean[0, 0] - np.sinc(k * t / np.pi)) < rounding)


def test_functions_of_blocks_are_differentiable():
    matrix = jnp.asarray(np.random.default_rng(2).standard_normal((2, 2, 4)))
    total = jax.jit(lambda step: sum(jnp.sum(f) for f in Blocks(matrix).phi(step)))
    slope = (total(0.3 + 1e-5) - total(0.3 - 1e-5)) / 2e-5
    assert_close(jax.jit(jax.grad(total))(0.3), slope, rtol=1e-8)
    assert_close(jax.jit(jax.jacfwd(total))(0.3), slope, rtol=1e-8)


SYSTEMS = [
    (Wave(1.7), 1),
    (Wave(1.7), 2),
    (MaxwellTM(2.0, 0.7), 2),
    (MaxwellTE(2.0, 0.7), 2),
    (Heat(0.1), 2),
]


@pytest.mark.parametrize(("equation", "dim"), SYSTEMS, ids=[f"{type(e).__name__}{dim}" for e, dim in SYSTEMS])
def test_one_step_equals_the_solution_by_modes(equation, dim):
    """The solver knows only the text; the exact solution is written down per equation. 2000 s is 500 periods."""
    box = Box((0.0,) * dim, (2 * np.pi,) * dim, (True,) * dim)
    grid = Grid(box, (12,) * dim)
    start = {f.name: harmonics(dim, seed=i).at_start for i, f in enumerate(equation.fields)}
    problem = make_problem(equation, box, initial=start, horizon=2000.0)
    found = solve(problem, grid, Etdrk4(dt=0.01), times=[0.3, 2000.0])
    exact = exact_solution(problem, grid, [0.3, 2000.0])
    assert exact is not None and found.steps == 1
    for name, values in exact.fields.items():
        assert_close(found.fields[name], values, rtol=0, atol=3e-11)


def test_light_keeps_energy_and_divergence_through_imex_steps():
    """An implicit method damps a little, with its order; the divergence of H stays to rounding."""
    box = Box((0.0, 0.0), (2 * np.pi, 2 * np.pi), (True, True))
    grid = Grid(box, (12, 12))
    start = {f.name: harmonics(2, seed=i).at_start for i, f in enumerate(MaxwellTM.fields)}
    problem = make_problem(MaxwellTM(), box, initial=start, horizon=1.0)
    changes = []
    for dt in (0.05, 0.025):
        fields = solve(problem, grid, Imex(dt=dt), times=[0.0, 1.0]).fields
        ez, hx, hy = (np.asarray(fields[name]) for name in ("ez", "hx", "hy"))
        energy = (ez**2 + hx**2 + hy**2).mean(axis=(1, 2))
        changes.append(abs(energy[1] / energy[0] - 1))
        k = np.fft.fftfreq(12, 1 / 12)
        divergence = k[:, None] * np.fft.fft2(hx) + k[None, :] * np.fft.fft2(hy)
        assert_close(divergence[1], divergence[0], rtol=0, atol=1e-11)
    assert changes[1] < changes[0] / 12 and changes[1] < 1e-4


SQUARE = Box((0.0, 0.0), (1.0, 1.0), (False, False))


@pytest.mark.parametrize("wall", ["clamped", "free"])
def test_drum_with_walls_in_one_step(wall):
    """The mode (1, 2) of a square: the only error is that of the differences, of order 2 over four grids."""
    profile, condition = {"clamped": (jnp.sin, dirichlet), "free": (jnp.cos, neumann)}[wall]
    start = {"u": lambda x: profile(np.pi * x[0]) * profile(2 * np.pi * x[1]), "v": lambda x: 0.0 * x[0]}
    boundary = {face: condition() for face in SQUARE.faces}
    problem = make_problem(Wave(1.0), SQUARE, initial=start, boundary=boundary, horizon=0.2)
    counts, errors = (8, 12, 16, 24), []
    for n in counts:
        grid = Grid(SQUARE, (n + 1, n + 1))
        u = np.asarray(jax.jit(lambda grid=grid: integrate(problem, grid, Etdrk4(dt=0.2), [0.2])["u"][0])())
        exact = np.cos(np.pi * np.sqrt(5) * 0.2) * np.asarray(problem.initial_values(grid)["u"])
        errors.append(np.abs(u - exact).max())
    order = -np.polyfit(np.log(counts), np.log(errors), 1)[0]
    assert abs(order - 2) < 0.2, errors


def test_fields_with_different_walls_take_dense_or_separate_bases():
    """Coupled fields of different conditions share no basis: one dense matrix; uncoupled ones get a basis each."""
    line = Box((0.0,), (1.0,), (False,))
    grid = Grid(line, (25,))
    start = {"u": lambda x: jnp.sin(np.pi * x[0]) ** 2, "v": lambda x: jnp.cos(np.pi * x[0])}
    for equation in (Wave(0.5), FitzHughNagumo(0.01, 0.02)):
        boundary = {face: {"u": dirichlet(), "v": neumann()} for face in line.faces}
        problem = make_problem(equation, line, initial=start, boundary=boundary, horizon=0.4)
        exponential = solve(problem, grid, Etdrk4(dt=0.01), times=[0.4]).fields
        explicit = solve(problem, grid, Rk4(dt=0.0025), times=[0.4]).fields
        for name in start:
            assert_close(exponential[name], explicit[name], rtol=0, atol=1e-6)


def test_a_source_does_not_disturb_the_exact_part():
    """A constant force on v: u gains f t^2/2, exactly."""
    box = Box((0.0,), (1.0,), (True,))
    start = {"u": lambda x: jnp.sin(2 * np.pi * x[0]), "v": lambda x: 0.0 * x[0]}
    problem = make_problem(Wave(1.0), box, initial=start, source={"v": lambda x: 3.0 + 0.0 * x[0]}, horizon=1.0)
    grid = Grid(box, (16,))
    found = solve(problem, grid, Etdrk4(dt=0.5), times=[1.0]).fields["u"][0]
    expected = np.cos(2 * np.pi) * np.sin(2 * np.pi * grid.axes[0]) + 1.5
    assert_close(found, expected, rtol=0, atol=1e-12)


def test_free_schroedinger_is_a_rotation_of_two_fields():
    box = Box((0.0, 0.0), (2 * np.pi, 2 * np.pi), (True, True))
    grid = Grid(box, (12, 12))
    start = {"real": lambda x: jnp.cos(x[0] + 2 * x[1]), "imaginary": lambda x: jnp.sin(x[0] + 2 * x[1])}
    problem = make_problem(Schroedinger(0.5, 0.0), box, initial=start, horizon=1.0)
    fields = solve(problem, grid, Etdrk4(dt=0.5), times=[1.0]).fields
    phase = grid.points[..., 0] + 2 * grid.points[..., 1] - 2.5
    assert_close(fields["real"][0], np.cos(phase), rtol=0, atol=1e-13)
    assert_close(fields["imaginary"][0], np.sin(phase), rtol=0, atol=1e-13)
