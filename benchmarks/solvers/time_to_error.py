"""CPU time to an error: viscous Burgers (nu = 0.02, T = 1) from sin x + 0.5 cos 2x on the 2 pi circle.

    python benchmarks/solvers/time_to_error.py [--error 1e-5] [--repeats 5] [--py-pde-points 1024 2048]

Every code gets the cheapest of its own grids and step counts that reaches the error against a reference on 2048
points, 8000 steps of ETDRK4 (checked by Cole-Hopf); the winners then run in turn. py-pde, of second order in space,
runs at the finest grid given, and its time counts as it is, whatever error it reached.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import against_exponax
import cases
import jax
import jax.numpy as jnp
import numpy as np
from timing import interleaved, one_core

from sciml.domain import Grid
from sciml.solvers.exact import exact_solution

POINTS = (448, 512, 540, 576, 640)
STEPS = (50, 75, 100, 150, 200, 300, 500, 1000, 1400, 2000)
REFERENCE = 2048
HORIZON = 1.0


def start(x: Any) -> Any:
    """The initial field at points x of any shape."""
    return jnp.sin(x) + 0.5 * jnp.cos(2 * x)


def sciml(points: int, steps: int) -> Callable[[], Any]:
    """`integrate` with ETDRK4."""
    case = cases.burgers()
    case = replace(case, grid=Grid(case.grid.box, (points,)), dt=HORIZON / steps, steps=steps)
    return given(lambda u: cases.integrate(case.problem(u), case.grid, case.method, case.times)["u"][0], points)


def exponax(order: int) -> Callable[[int, int], Callable[[], Any]]:
    """Its Burgers stepper in the default form, repeated."""
    return lambda points, steps: given(against_exponax.burgers(points, HORIZON / steps, steps, order), points)


def given(march: Callable[[Any], Any], points: int) -> Callable[[], Any]:
    """A march compiled and bound to the initial values."""
    compiled, u = jax.jit(march), start(jnp.asarray(2 * np.pi / points * np.arange(points)))
    return lambda: compiled(u)


def reference() -> tuple[Any, float]:
    """Fourier coefficients of the reference, and its relative L2 distance from Cole-Hopf."""
    values = np.asarray(sciml(REFERENCE, 8000)())
    case = cases.burgers()
    grid = Grid(case.grid.box, (REFERENCE,))
    problem = replace(case.problem(np.zeros(1)), initial={"u": lambda x: start(x[0])})
    exact = exact_solution(problem, grid, (HORIZON,))
    assert exact is not None
    return np.fft.rfft(values), float(np.linalg.norm(values - exact.fields["u"][0]) / np.linalg.norm(values))


def error(values: Any, coefficients: Any, offset: float = 0.0) -> float:
    """Relative L2 error of point values at (i + offset) h against the reference evaluated there."""
    n = len(values)
    k = np.arange(len(coefficients))
    shifted = coefficients * np.exp(2j * np.pi * k * offset / n)
    size = max(n, REFERENCE)
    fine = np.fft.irfft(shifted, n=size * n // np.gcd(size, n)) * (size * n // np.gcd(size, n)) / REFERENCE
    truth = fine[:: len(fine) // n]
    return float(np.linalg.norm(np.asarray(values) - truth) / np.linalg.norm(truth))


def cheapest(make: Callable[[int, int], Callable[[], Any]], goal: float, coefficients: Any) -> tuple[str, Any]:
    """The run with the least points x steps whose error is at most `goal`."""
    for points, steps in sorted(((n, s) for n in POINTS for s in STEPS), key=lambda c: c[0] * c[1]):
        run = make(points, steps)
        reached = error(run(), coefficients)
        if reached <= goal:
            return f"{points} points, {steps} steps, error {reached:.1e}", run
    raise SystemExit(f"no grid reaches {goal:g}")


def py_pde(points: int, coefficients: Any) -> str:
    """One timed run of py-pde's compiled Runge-Kutta stepper, without its compilation."""
    import pde  # pyright: ignore[reportMissingImports] -- a peer, installed for the comparison only

    h = 2 * np.pi / points
    grid = pde.CartesianGrid([[0, 2 * np.pi]], points, periodic=True)
    equation = pde.PDE({"u": "0.02 * laplace(u) - 0.5 * d_dx(u**2)"})
    state = pde.ScalarField(grid, np.asarray(start(jnp.asarray(h * (np.arange(points) + 0.5)))))
    solver = pde.RungeKuttaSolver(equation, backend="numba")
    step = min(2e-3, 0.6 * h**2 / (2 * 0.02))
    advance = solver.make_stepper(state, dt=step)
    advance(state.copy(), 0.0, 10 * step)
    copy, begun = state.copy(), time.process_time()
    advance(copy, 0.0, HORIZON)
    spent = time.process_time() - begun
    return f"| py-pde | {points} points, error {error(copy.data, coefficients, 0.5):.1e} | {1e3 * spent:.1f} | |"


def main() -> None:
    """Print one row per code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--error", type=float, default=1e-5)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--py-pde-points", type=int, nargs="*", default=[1024, 2048])
    chosen = parser.parse_args()
    one_core()
    coefficients, own = reference()
    print(f"reference: {own:.1e} from Cole-Hopf\n\n| code | setting | ms CPU | ratio to sciml |\n|---|---|---|---|")
    makers = {"sciml": sciml, "Exponax, order 4": exponax(4), "Exponax, default order 2": exponax(2)}
    found = {name: cheapest(make, chosen.error, coefficients) for name, make in makers.items()}
    spent = interleaved({name: run for name, (_, run) in found.items()}, chosen.repeats)
    for name, (setting, _) in found.items():
        print(f"| {name} | {setting} | {1e3 * spent[name]:.2f} | {spent[name] / spent['sciml']:.2f} |")
    for points in chosen.py_pde_points:
        print(py_pde(points, coefficients), flush=True)


if __name__ == "__main__":
    main()
