"""Small models with their batches, and plans over eight devices: what the proofs of parallelism run over."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from sciml.domain import Box
from sciml.equations.heat import Heat
from sciml.parallel.plan import Plan
from sciml.parallel.step import Step, build_step
from sciml.pinn.model import PINNConfig
from sciml.pinn.objectives import PointResidual
from sciml.problem import make_problem
from sciml.registry import load
from sciml.sampling.fields import RandomFourierSeries
from sciml.spec import Spec, Statistics, Variable
from sciml.training.objective import Batch, Data, Objective, Weighted
from sciml.training.state import TrainState

ROWS, SHAPE = 16, (16, 8)


@dataclass(frozen=True)
class Case:
    """A model, its objective and one batch; float64."""

    model: nnx.Module
    objective: Objective
    batch: Batch
    splits: frozenset[str]

    def state(self, optimizer: Any) -> TrainState:
        """Before the first step."""
        return TrainState.start(self.model, optimizer, jax.random.key(1))


def _fields(kind: str, **options: Any) -> tuple[nnx.Module, Objective, Batch]:
    """Two-dimensional fields and one coefficient to one field."""
    axes = ("x", "y")
    spec = Spec(
        inputs=(Variable("u0", shape=SHAPE, axes=axes), Variable("nu", role="scalar", low=0.5, high=1.0)),
        outputs=(Variable("u", shape=SHAPE, axes=axes),),
        coordinates={name: tuple(np.arange(n) / n) for name, n in zip(axes, SHAPE, strict=True)},
        periodic=axes,
    )
    known = {"u0": Statistics(0.0, 1.0, -3.0, 3.0), "u": Statistics(0.0, 1.0, -3.0, 3.0)}
    known["nu"] = Statistics(0.75, 0.2, 0.5, 1.0)
    model = load("model", kind)(dtype="float64", **options).build(spec, known, seed=0)
    random = np.random.default_rng(0)
    u0, nu = random.normal(size=(ROWS, *SHAPE)), random.uniform(0.5, 1.0, ROWS)
    return model, Data(("u",)), {"u0": u0, "nu": nu, "u": nu[:, None, None] * np.roll(u0, 1, axis=1)}


def _numbers() -> tuple[nnx.Module, Objective, Batch]:
    names = ("a", "b", "c")
    spec = Spec(tuple(Variable(name, role="scalar") for name in names), (Variable("q", role="scalar"),))
    known = {name: Statistics(0.0, 1.0, -3.0, 3.0) for name in (*names, "q")}
    model = load("model", "mlp")(width=16, layers=2, gate="silu", dtype="float64").build(spec, known, seed=0)
    values = np.random.default_rng(0).normal(size=(3, ROWS))
    return model, Data(("q",), relative=False), {**dict(zip(names, values, strict=True)), "q": np.prod(values, 0)}


def _points() -> tuple[nnx.Module, Objective, Batch]:
    box = Box((0.0,), (1.0,), (True,))
    initial = RandomFourierSeries(modes=2, decay=1.0).draw(jax.random.key(3), box)
    problem = make_problem(Heat(0.04), box, initial={"u": initial}, horizon=1.0)
    config = PINNConfig(width=8, layers=3, harmonics=2, unknown=("diffusivity",))
    model = config.build(problem, {"u": (0.0, 0.7)}, {"diffusivity": 0.03}, seed=0)
    x, t = np.random.default_rng(0).uniform(size=(2, ROWS))
    readings = Data(("u",), relative=False, inputs=("x", "t"), scales=(0.7,))
    residual = PointResidual(problem, 64, {"u": 0.7}, early=20.0)
    return model, Weighted({"data": (readings, 1.0), "residual": (residual, 10.0)}), {"x": x, "t": t, "u": np.sin(x)}


ROW_AXES = {"data", "fsdp", "domain"}
MAKERS = {
    "fno": (lambda: _fields("fno", width=8, modes=(3,), layers=2), ROW_AXES | {"tensor"}),
    "deeponet": (lambda: _fields("deeponet", basis=8, width=16), ROW_AXES | {"tensor"}),
    "mlp": (_numbers, ROW_AXES | {"tensor"}),
    "pinn": (_points, ROW_AXES | {"tensor"}),
}


@cache
def case(name: str) -> Case:
    """One of `MAKERS`, made once."""
    make, splits = MAKERS[name]
    return Case(*make(), frozenset(splits))


def plans(count: int) -> dict[str, dict[str, Any]]:
    """All ways to spread eight devices over exactly `count` axes that every ZeRO stage and transform allows."""
    sizes = {1: [(8,)], 2: [(2, 4), (4, 2)], 3: [(2, 2, 2)]}[count]
    found = {}
    for names in itertools.combinations(("data", "fsdp", "expert", "domain", "tensor", "pipeline"), count):
        for chosen in sizes:
            base: dict[str, Any] = dict(zip(names, chosen, strict=True))
            for stage in (1, 2, 3) if "fsdp" in names else (0,):
                title = " ".join(f"{n}{s}" for n, s in base.items()) + (f" zero{stage}" if stage else "")
                found[title] = {**base, "zero": stage}
    return found


def suits(name: str, plan: dict[str, Any]) -> bool:
    """Whether the model of a case has something to split for every axis of a plan."""
    axes = {axis for axis in ("data", "fsdp", "tensor", "pipeline", "expert", "domain") if plan.get(axis, 1) > 1}
    return axes <= case(name).splits


def training(name: str, plan: Plan, steps: int = 3, **options: Any) -> tuple[TrainState, list[dict[str, Any]], Step]:
    """State and metrics after a few steps of Adam, and the step."""
    known = case(name)
    optimizer = load("optimizer", "adam")(**options).build(steps)
    step = build_step(known.model, known.objective, optimizer, plan)
    state, history = known.state(optimizer), []
    for _ in range(steps):
        state, metrics = step(state, known.batch)
        history.append(jax.device_get(metrics))
    return state, history, step


@cache
def alone(name: str) -> tuple[Any, list[dict[str, Any]]]:
    """The same training on one device."""
    state, history, _ = training(name, Plan())
    return jax.device_get(state.params), history


def gradient_difference(name: str, state: TrainState, history: list[dict[str, Any]]) -> float:
    """Largest relative difference of losses, gradient norms and parameters from those of one device."""
    params, expected = alone(name)
    pairs = list(zip(jax.tree.leaves(jax.device_get(state.params)), jax.tree.leaves(params), strict=True))
    pairs += list(zip(jax.tree.leaves(history), jax.tree.leaves(expected), strict=True))
    scale = max(float(jnp.max(jnp.abs(leaf))) for leaf in jax.tree.leaves(params))
    return max(float(np.max(np.abs(np.asarray(a, float) - np.asarray(b, float)))) for a, b in pairs) / scale
