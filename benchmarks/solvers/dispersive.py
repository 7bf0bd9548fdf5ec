"""A KdV soliton: error over the time step, at order 4, and CPU time per step, against Exponax.

    python benchmarks/solvers/dispersive.py [--repeats 5]

u = c/2 sech^2(sqrt(c)/2 (x - 16 - c t)) with c = 2 solves u_t + 6 u u_x + u_xxx = 0; 256 points, length 40, T = 2.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import against_exponax
import cases
import jax
import jax.numpy as jnp
import numpy as np
from timing import interleaved, one_core

from sciml.domain import Box, Grid
from sciml.equations import KortewegDeVries

GRID = Grid(Box((0.0,), (40.0,), (True,)), (256,))
HORIZON = 2.0
STEPS = (50, 100, 200, 400, 800)


def soliton(t: float) -> Any:
    """The exact field on the grid."""
    return 1 / np.cosh(np.sqrt(0.5) * (GRID.axes[0] - 16 - 2 * t)) ** 2


def sciml(steps: int) -> Callable[[], Any]:
    """`integrate` with ETDRK4."""
    case = cases.Case("KdV", KortewegDeVries(6.0, 1.0), GRID, HORIZON / steps, steps)
    march = jax.jit(lambda u: cases.integrate(case.problem(u), GRID, case.method, case.times)["u"][0])
    start = jnp.asarray(soliton(0.0))
    return lambda: march(start)


def exponax(steps: int) -> Callable[[], Any]:
    """Its KdV stepper at order 4, without hyperdiffusion; its solitons are holes."""
    march = against_exponax.korteweg_de_vries(GRID.shape[0], GRID.box.lengths[0], HORIZON / steps, steps)
    start = -jnp.asarray(soliton(0.0))
    return lambda: march(start)


def main() -> None:
    """Print errors per step size, observed orders, and the time of the finest runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    one_core()
    exact = soliton(HORIZON)
    print("| code | " + " | ".join(f"dt = {HORIZON / n:g}" for n in STEPS) + " | observed order |")
    print("|---|" + "---|" * (len(STEPS) + 1))
    for name, make, sign in (("sciml", sciml, 1), ("Exponax", exponax, -1)):
        errors = np.asarray([np.abs(sign * np.asarray(make(n)()) - exact).max() / exact.max() for n in STEPS])
        order = -np.polyfit(np.log(STEPS), np.log(errors), 1)[0]
        print(f"| {name} | " + " | ".join(f"{e:.1e}" for e in errors) + f" | {order:.2f} |")
    spent = interleaved({"sciml": sciml(STEPS[-1]), "Exponax": exponax(STEPS[-1])}, repeats)
    print("\nCPU us per step: " + ", ".join(f"{n} {1e6 * t / STEPS[-1]:.1f}" for n, t in spent.items()))


if __name__ == "__main__":
    main()
