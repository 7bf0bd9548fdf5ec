"""The example simulation runs with a surrogate given on its command line, and with a good one it is right."""

import re
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
from flax import nnx

from sciml.spec import Spec
from sciml.surrogate import export

from .conftest import tiny_spec


class ExactHeat(nnx.Module):
    """The exact solution of the heat equation in the place of a trained operator."""

    def __init__(self, spec: Spec) -> None:
        self.times = spec.coordinates["time"]
        self.scale = nnx.Param(np.ones(()))

    def __call__(self, sample):
        u0, points = sample["u0"], sample["u0"].shape[0]
        phase = 2 * np.pi * np.outer(np.arange(points), np.arange(points)) / points
        waves = 2 * np.pi * np.minimum(np.arange(points), points - np.arange(points))
        modes = (np.cos(phase) - 1j * np.sin(phase)) / points @ u0
        decay = jnp.exp(-sample["diffusivity"] * jnp.asarray(waves) ** 2 * jnp.asarray(self.times)[:, None])
        return {"u": self.scale[...] * (jnp.asarray(np.exp(1j * phase)) @ (decay * modes).T).T.real}


def run(repository, path, *options):
    command = [sys.executable, "-W", "error", str(repository / "examples" / "coupled_heat.py"), str(path), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_tiny_untrained_operator_runs(artifact, repository):
    result = run(repository, artifact[1], "--steps", "2")
    assert result.returncode == 0, result.stderr
    assert "2 steps of 0.5 s" in result.stdout


def test_with_an_exact_operator_the_simulation_is_exact(tmp_path, repository):
    spec = tiny_spec()
    inputs = {"u0": np.ones((1, 8)), "diffusivity": np.full(1, 0.03)}
    path = export(
        ExactHeat(spec), spec, tmp_path / "exact", config={"model": "none"}, provenance={}, selftest_inputs=inputs
    )
    result = run(repository, path, "--steps", "3")
    assert result.returncode == 0, result.stderr
    found = re.search(r"exact diffusion (\S+);", result.stdout)
    assert found and float(found[1]) < 1e-10
