"""An FNO trained with whole and with compressed gradients over eight devices: held-out error and bytes per step.

    python benchmarks/compression/errors_and_bytes.py [--steps 1500] [--seeds 3] [--methods "powersgd rank 2"]

Burgers' equation on 64 points, solved by the recipe below; float32; Adam with a cosine schedule. Devices are simulated
on the CPU, so that bytes are counted and errors are real, and times mean nothing. What was found is kept in a file
(`--kept`), so that an interrupted run continues.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

os.environ["XLA_FLAGS"] = (
    "--xla_force_host_platform_device_count=8 --xla_cpu_collective_call_terminate_timeout_seconds=600"
)
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import numpy as np
from flax import nnx

from sciml.data import Dataset, statistics
from sciml.parallel.compression import compressed
from sciml.parallel.plan import Plan
from sciml.parallel.step import Step, build_step
from sciml.parallel.traffic import bytes_sent
from sciml.pipeline import generate
from sciml.pipeline.generation import open_data
from sciml.pipeline.tasks import held_out_errors, predict
from sciml.recipe.reading import read_text
from sciml.registry import load
from sciml.training.objective import Data
from sciml.training.state import TrainState, with_parameters

RECIPE = """
name: compression
seed: 0
problem:
  equation: {kind: burgers, viscosity: {kind: log_uniform, low: 0.02, high: 0.06}}
  domain: {x: {lower: 0.0, upper: 1.0, periodic: true}}
  initial: {u: {kind: fourier_series, modes: 2, decay: 1.0}}
  horizon: 0.5
data:
  grid: {x: 64}
  times: 4
  method: {kind: etdrk4, dt: 0.0025}
  samples: {train: 1024, test: 128}
models:
  fno: {kind: fno, width: 24, modes: [8], layers: 2}
"""
METHODS: Mapping[str, Mapping[str, Any]] = {
    "whole": {},
    "powersgd rank 2": {"compress": "powersgd", "rank": 2},
    "powersgd rank 4": {"compress": "powersgd", "rank": 4},
    "powersgd rank 8": {"compress": "powersgd", "rank": 8},
    "one_bit warmup 150": {"compress": "one_bit", "warmup": 150},
    "one_bit warmup 750": {"compress": "one_bit", "warmup": 750},
}
CHUNK = 25
"""Steps per call."""


@dataclass(frozen=True)
class Task:
    """The recipe's data, and the training that is compared."""

    folder: Path
    steps: int
    batch: int

    @cached_property
    def data(self) -> Dataset:
        """Solved where it is not there yet."""
        recipe = read_text(RECIPE)
        generate(recipe, self.folder)
        return open_data(recipe, self.folder)

    @cached_property
    def spec(self) -> Any:
        """Initial field and viscosity to the field at four times."""
        return self.data.layout.spec(("u0", "viscosity"), ("u",), statistics(self.data))

    def step(self, seed: int, plan: Plan, repeat: int = 1) -> tuple[nnx.Module, Any, Step]:
        """Model, optimizer and the step of one training."""
        build = load("model", "fno")(width=24, modes=(8,), layers=2).build
        model = build(self.spec, statistics(self.data), seed=seed)
        adam = load("optimizer", "adam")(learning_rate=2e-3).build(self.steps)
        optimizer = compressed(adam, model, plan)
        objective = Data(("u",), inputs=("u0", "viscosity"))
        return model, optimizer, build_step(model, objective, optimizer, plan, repeat=repeat)

    def batches(self, seed: int, repeat: int) -> Iterator[dict[str, np.ndarray]]:
        """Rows in a random order, anew in each epoch, `repeat` batches at a time."""
        rows = {name: value.astype("float32") for name, value in self._rows("train").items()}
        random, size = np.random.default_rng(seed), repeat * self.batch
        epochs = -(-self.steps * self.batch // len(rows["u"]))
        order = np.concatenate([random.permutation(len(rows["u"])) for _ in range(epochs)])
        for start in range(0, self.steps * self.batch - size + 1, size):
            chosen = order[start : start + size].reshape(repeat, self.batch)
            yield {name: value[chosen] for name, value in rows.items()}

    def error(self, seed: int, plan: Plan) -> float:
        """Mean relative L2 error of the test samples after the training."""
        model, optimizer, step = self.step(seed, plan, CHUNK)
        state = TrainState.start(model, optimizer, jax.random.key(seed), plan.precision)
        for batch in self.batches(seed, CHUNK):
            state, _ = step(state, batch)
        trained = with_parameters(model, jax.device_get(state.params))
        test = {name: value.astype("float32") for name, value in self._rows("test").items()}
        guess = predict(*nnx.split(trained), {name: test[name] for name in ("u0", "viscosity")})
        return float(np.mean(held_out_errors(self.spec.outputs, guess, test)))

    def sent(self, plan: Plan) -> float:
        """Bytes that a device sends in one step; of both branches where the program has a warm-up."""
        model, optimizer, step = self.step(0, plan)
        state = step.place(TrainState.start(model, optimizer, jax.random.key(0), plan.precision))
        batch = {name: value[0] for name, value in next(self.batches(0, 1)).items()}
        return bytes_sent(step.function.lower(state, batch).compile().as_text())

    def _rows(self, split: str) -> dict[str, np.ndarray]:
        return self.data.read(("u0", "viscosity", "u"), split=split)


def main() -> None:
    """Print one table of errors and one of bytes."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--steps", type=int, default=1500)
    options.add_argument("--batch", type=int, default=64)
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    options.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "sciml-compression")
    chosen = options.parse_args()
    task = Task(chosen.folder / "data", chosen.steps, chosen.batch)
    kept = chosen.folder / f"found-{chosen.steps}-{chosen.batch}.json"
    _errors(task, chosen.methods, chosen.seeds, kept)
    _bytes(task, chosen.methods)


def _errors(task: Task, methods: list[str], seeds: int, kept: Path) -> None:
    print("| gradients | held-out error | spread | to whole |\n|---|---|---|---|", flush=True)
    known: dict[str, float] = json.loads(kept.read_text()) if kept.exists() else {}
    means: dict[str, float] = {}
    for name in methods:
        found = []
        for seed in range(seeds):
            key = f"{name}: {seed}"
            if key not in known:
                known[key] = task.error(seed, Plan(data=8, precision="float32", **METHODS[name]))
                kept.write_text(json.dumps(known))
            found.append(known[key])
        means[name] = float(np.mean(found))
        ratio = f"{means[name] / means['whole']:.3f}" if "whole" in means else "-"
        spread = f"{np.std(found, ddof=1):.1e}" if seeds > 1 else "-"
        print(f"| {name} | {means[name]:.3e} | {spread} | {ratio} |", flush=True)


def _bytes(task: Task, methods: list[str]) -> None:
    print("\n| gradients | ranks | bytes per step and rank | less |\n|---|---|---|---|", flush=True)
    for ranks in (2, 4, 8):
        whole = task.sent(Plan(data=ranks, precision="float32"))
        print(f"| whole | {ranks} | {whole:.0f} | 1 |", flush=True)
        for method in {kind: None for name in methods for kind in _kind(METHODS[name])}:
            few = task.sent(Plan(data=ranks, precision="float32", **dict(method)))
            few -= whole if ("compress", "one_bit") in method else 0.0
            print(f"| {' '.join(str(v) for _, v in method)} | {ranks} | {few:.0f} | {whole / few:.1f} |", flush=True)


def _kind(options: Mapping[str, Any]) -> list[tuple[tuple[str, Any], ...]]:
    """What decides the bytes: the length of a warm-up does not."""
    kept = tuple((name, value) for name, value in options.items() if name != "warmup")
    return [kept] if kept else []


if __name__ == "__main__":
    main()
