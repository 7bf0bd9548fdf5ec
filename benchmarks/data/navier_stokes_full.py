"""One sample of Li's Navier-Stokes data at the published size, stored as `sciml generate` does, and its figures.

    python benchmarks/data/navier_stokes_full.py FOLDER [--viscosity 1e-5] [--horizon 20] [--points 256] [--dt 0.001]

Prints seconds per sample, kinetic energy and enstrophy over time, the tail of the energy spectrum at the last time,
and the difference to a run of twice the step, which shows what the step costs in accuracy.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import h5py
import numpy as np

from sciml.data import generate
from sciml.pipeline.generation import Simulation
from sciml.recipe import read
from sciml.solvers import solve

PRESET = Path(__file__).parents[2] / "experiments" / "datasets" / "li_navier_stokes.yaml"


def simulation(viscosity: float, horizon: float, points: int, dt: float) -> Simulation:
    """The preset with another viscosity, horizon, grid and step; a frame per unit of time."""
    changes = [
        f"problem.equation.viscosity={viscosity}",
        f"problem.horizon={horizon}",
        f"data.times={round(horizon)}",
        f"data.grid={{x: {points}, y: {points}}}",
        f"data.method.dt={dt}",
    ]
    return Simulation.of(read(PRESET, changes))


def spectra(omega: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Kinetic energy |omega_k|^2/(2 |2 pi k|^2) and enstrophy |omega_k|^2/2 by shell of |k|, of a field (n, n)."""
    n = len(omega)
    numbers = np.fft.fftfreq(n, 1 / n)
    squares = numbers[:, None] ** 2 + numbers**2
    enstrophy = np.abs(np.fft.fft2(omega) / n**2) ** 2 / 2
    energy = enstrophy / np.where(squares == 0, np.inf, 4 * np.pi**2 * squares)
    shells = np.rint(np.sqrt(squares)).astype(int).ravel()
    return np.bincount(shells, energy.ravel()), np.bincount(shells, enstrophy.ravel())


def main() -> None:
    """Generate, read back, measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--viscosity", type=float, default=1e-5)
    parser.add_argument("--horizon", type=float, default=20.0)
    parser.add_argument("--points", type=int, default=256)
    parser.add_argument("--dt", type=float, default=0.001)
    given = parser.parse_args()
    made = simulation(given.viscosity, given.horizon, given.points, given.dt)
    started = time.perf_counter()
    generate(given.folder, made.layout, made.simulate, chunk=made.chunk, samples=1, provenance={"preset": PRESET.name})
    seconds = time.perf_counter() - started
    with h5py.File(min(given.folder.glob("shard-*.h5"))) as file:
        start, frames = np.asarray(file["inputs/omega0"])[0], np.asarray(file["outputs/omega"])[0]
    print(f"nu {given.viscosity:g}, T {given.horizon:g}, {given.points}^2, dt {given.dt:g}: {seconds:.0f} s, ", end="")
    print(
        f"{1e3 * seconds * given.dt / given.horizon:.1f} ms per step, {seconds / given.horizon:.1f} s per unit of time"
    )
    print("    t  energy      enstrophy   share of enstrophy beyond 2/3 of the waves")
    for t, frame in [(0.0, start), *zip(made.times, frames, strict=True)]:
        energy, enstrophy = spectra(frame)
        tail = enstrophy[given.points // 3 :].sum() / enstrophy.sum()
        print(f"{t:5g}  {energy.sum():.4e}  {enstrophy.sum():.4e}  {tail:.1e}")
    energy, _ = spectra(frames[-1])
    shells = [k for k in (1, 2, 4, 8, 16, 32, 64, 85, 100, 127) if k < given.points // 2]
    print("energy by |k| at the end:", ", ".join(f"{k}: {energy[k]:.1e}" for k in shells))
    longer = simulation(given.viscosity, given.horizon, given.points, 2 * given.dt)
    started = time.perf_counter()
    other = np.asarray(solve(made.family.problem(0), longer.grid, longer.method, times=made.times).fields["omega"])
    error = np.sqrt(np.sum((other - frames) ** 2, axis=(1, 2)) / np.sum(frames**2, axis=(1, 2)))
    told = ", ".join(f"{made.times[i]:g}: {error[i]:.1e}" for i in sorted({0, len(error) // 2, len(error) - 1}))
    print(f"difference to twice the step ({time.perf_counter() - started:.0f} s), by time: {told}")


if __name__ == "__main__":
    main()
