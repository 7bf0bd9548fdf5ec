"""A simulation with its own time loop that leaves diffusion to a surrogate.

    python examples/coupled_heat.py runs/heat/fno.sciml --steps 5

Flame front u_t = D u_xx + r u (1 - u) on a periodic line, by operator splitting (Strang): half a step of the
reaction, exactly and in NumPy; one step of diffusion by the surrogate, which was trained on the heat equation;
half a step of the reaction. The same loop with exact diffusion (by FFT) shows what the surrogate costs in
accuracy. No JAX, no recipe, no training code here: the surrogate is a function of NumPy arrays.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from sciml.surrogate import load

RATE = 2.0  # of the reaction, 1/s


def react(u: np.ndarray, rate: float, step: float) -> np.ndarray:
    """Exact logistic growth over `step` seconds, u in [0, 1] per point."""
    return u / (u + (1 - u) * np.exp(-rate * step))


def diffuse_exactly(u: np.ndarray, diffusivity: float, step: float, length: float) -> np.ndarray:
    """Heat equation on a periodic line by Fourier series."""
    k = 2 * np.pi * np.fft.rfftfreq(len(u), length / len(u))
    return np.fft.irfft(np.exp(-diffusivity * k**2 * step) * np.fft.rfft(u), len(u))


def simulate(u: np.ndarray, steps: int, step: float, diffuse: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Strang splitting from the field `u` over `steps` steps."""
    for _ in range(steps):
        u = react(u, RATE, step / 2)
        u = diffuse(u)
        u = react(u, RATE, step / 2)
    return u


def main() -> None:
    """Run with surrogate and with exact diffusion, print the difference and the time per step."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("artifact", help="surrogate of the 1D heat equation: (u0, diffusivity) -> u(time, x)")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--diffusivity", type=float, default=0.03, help="m^2/s")
    options = parser.parse_args()

    surrogate = load(options.artifact)
    field, number = surrogate.inputs[0].name, surrogate.inputs[1].name
    x = np.asarray(surrogate.spec.coordinates["x"])
    step = surrogate.spec.coordinates["time"][0]  # the first saved time is the step that it can take
    length = len(x) * (x[1] - x[0])

    def diffuse_by_surrogate(u: np.ndarray) -> np.ndarray:
        mean = u.mean()  # the heat equation shifts with its mean, and the training fields had none
        answer = surrogate(**{field: u - mean, number: options.diffusivity})[0].astype(float)
        return np.clip(mean + answer - answer.mean(), 0.0, 1.0)

    start = 0.5 + 0.4 * np.cos(2 * np.pi * x / length)
    diffuse_by_surrogate(start)  # compiles
    begin = time.perf_counter()
    coupled = simulate(start, options.steps, step, diffuse_by_surrogate)
    seconds = (time.perf_counter() - begin) / max(options.steps, 1)
    exact = simulate(start, options.steps, step, lambda u: diffuse_exactly(u, options.diffusivity, step, length))
    error = np.linalg.norm(coupled - exact) / np.linalg.norm(exact)
    print(f"{options.steps} steps of {step:g} s: mean {coupled.mean():.4f}, exact {exact.mean():.4f}")
    print(f"relative difference to exact diffusion {error:.2e}; {1e3 * seconds:.2f} ms per step")


if __name__ == "__main__":
    main()
