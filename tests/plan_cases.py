"""Small models with their batches, and plans over eight devices: what the proofs of parallelism run over."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from sciml.domain import Box
from sciml.equations.heat import Heat
from sciml.operators.traffic import activation_traffic, has_formulas
from sciml.parallel.cost import gradient_traffic, held, ring_share
from sciml.parallel.layout import Layout, Leaf
from sciml.parallel.plan import Plan
from sciml.parallel.step import Step, build_step
from sciml.parallel.traffic import collectives
from sciml.pinn.model import PINNConfig
from sciml.pinn.objectives import PointResidual
from sciml.pinn.traffic import tensor_traffic
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


DEEP = {"width": 16, "heads": 8, "layers": 8, "patch": (2, 2), "waves": 2, "projection": 16}
ROW_AXES = {"data", "fsdp", "domain"}
MAKERS = {
    "fno": (lambda: _fields("fno", width=8, modes=(3,), layers=2), ROW_AXES | {"tensor"}),
    "deeponet": (lambda: _fields("deeponet", basis=8, width=16), ROW_AXES | {"tensor"}),
    "mlp": (_numbers, ROW_AXES | {"tensor"}),
    "pinn": (_points, ROW_AXES | {"tensor"}),
    "transformer": (lambda: _fields("transformer", **DEEP), ROW_AXES | {"tensor", "pipeline"}),
    "experts": (
        lambda: _fields("transformer", experts=8, groups=8, **DEEP),
        ROW_AXES | {"tensor", "pipeline", "expert"},
    ),
}


@cache
def case(name: str) -> Case:
    """One of `MAKERS`, made once."""
    make, splits = MAKERS[name]
    return Case(*make(), frozenset(splits))


def plans(name: str, count: int) -> dict[str, dict[str, Any]]:
    """Ways to spread eight devices over `count` of the axes that a case can split, with every ZeRO stage.

    A pipeline alone gets both schedules, and a split grid both transforms. Deep models take all pairs and triples
    with stage 3 only.
    """
    found = {}
    order = ("data", "fsdp", "expert", "domain", "tensor", "pipeline")
    deep = "pipeline" in case(name).splits
    for names in itertools.combinations([axis for axis in order if axis in case(name).splits], count):
        sizes = {1: (8,), 2: (2, 4), 3: (2, 2, 2)}[count]
        base: dict[str, Any] = dict(zip(names, sizes, strict=True))
        for more in _choices(names, every_stage=count == 1 or not deep):
            title = " ".join([f"{n} {s}" for n, s in base.items()] + [_word(k, v) for k, v in more.items()])
            found[title] = {**base, **more}
    return found


def _choices(names: tuple[str, ...], every_stage: bool) -> list[dict[str, Any]]:
    more: list[dict[str, Any]] = [{}]
    if "fsdp" in names:
        more = [{"zero": stage} for stage in ((1, 2, 3) if every_stage else (3,))]
    if "pipeline" in names:
        schedules = ({"microbatches": 2}, {"microbatches": 2, "schedule": "1f1b"})
        more = [{**m, **s} for m in more for s in (schedules if len(names) == 1 else schedules[1:])]
    if names == ("domain",):
        more = [{}, {"transform": "pencil", "attention": "all_to_all"}]
    return more


def _word(name: str, value: Any) -> str:
    return value if isinstance(value, str) else f"{name} {value}"


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


def difference(name: str, state: TrainState, history: list[dict[str, Any]]) -> float:
    """Largest relative difference of losses, gradient norms and parameters from those of one device."""
    params, expected = alone(name)
    pairs = list(zip(jax.tree.leaves(jax.device_get(state.params)), jax.tree.leaves(params), strict=True))
    pairs += list(zip(jax.tree.leaves(history), jax.tree.leaves(expected), strict=True))
    scale = max(float(jnp.max(jnp.abs(leaf))) for leaf in jax.tree.leaves(params))
    return float(np.max([np.max(np.abs(np.asarray(a, float) - np.asarray(b, float))) for a, b in pairs])) / scale


@dataclass(frozen=True)
class Measured:
    """One training under a plan: difference from one device; bytes sent in a step, and stored before it, by a device;
    kinds of communication.
    """

    difference: float
    sent: float
    arguments: float
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class Predicted:
    """The same bytes by formula."""

    sent: float
    arguments: float


def measured(name: str, plan: Plan, steps: int = 3) -> Measured:
    """Compile a step, count what it sends and stores, train with it."""
    known = case(name)
    optimizer = load("optimizer", "adam")().build(steps)
    step = build_step(known.model, known.objective, optimizer, plan)
    state, history = step.place(known.state(optimizer)), []
    compiled = step.function.lower(state, known.batch).compile()
    for _ in range(steps):
        state, metrics = jax.block_until_ready(compiled(state, known.batch))
        history.append(jax.device_get(metrics))
    found = collectives(compiled.as_text())
    return Measured(
        difference(name, state, history),
        sum(c.sent * c.times for c in found),
        compiled.memory_analysis().argument_size_in_bytes,
        tuple(sorted({c.kind for c in found})),
    )


def predicted(name: str, plan: Plan) -> Predicted:
    """What the formulas say of the same step."""
    known = case(name)
    state = jax.eval_shape(lambda: known.state(load("optimizer", "adam")().build(1)))
    layout = Layout.of(known.model, plan)
    stored = held(layout, state.params, state.opt_state, batch_on_devices(known))
    return Predicted(predicted_traffic(known, layout, state), stored.total)


def batch_on_devices(known: Case) -> Batch:
    """Shapes of what a step takes: collocation points are drawn inside it."""
    return {name: np.asarray(value) for name, value in known.batch.items()}


def predicted_traffic(known: Case, layout: Layout, state: TrainState) -> float:
    """Bytes that a device sends in a step, by formula: gradients, activations where layers are split, few numbers."""
    plan = layout.plan
    rows = ROWS // math.prod(plan.sizes[name] for name in layout.rows)
    batch = jax.eval_shape(known.objective.prepare, known.batch, jax.random.key(0))
    if has_formulas(known.model):
        activations = activation_traffic(known.model, plan, rows)
    else:
        activations = tensor_traffic(known.model, known.objective, batch, plan)
    terms = len(jax.eval_shape(known.objective.residuals, known.model, batch))
    gradients = gradient_traffic(layout, state.params)
    return sum(gradients.values()) + sum(activations.values()) + 8 * _single_numbers(layout, rows, terms)


def _single_numbers(layout: Layout, rows: int, terms: int) -> float:
    """Single numbers that are added, as a ring sends them: terms of the loss, norms of gradients and of fields."""
    plan = layout.plan

    def ring(*names: str) -> float:
        return 2 * ring_share(math.prod(plan.sizes[name] for name in names))

    parts = {(*own, "fsdp") if plan.zero == 1 and leaf.storage is not None else own for leaf, own in _owned(layout)}
    found = terms * ring(*layout.sums) + sum(ring(*names) for names in parts)
    interleaved = plan.schedule == "1f1b"
    ticks = (plan.microbatches + 2 * plan.pipeline - 2) / plan.microbatches if interleaved else 1.0
    if layout.space is not None:
        found += ticks * rows * ring("domain")
    return found + terms * interleaved * ring("pipeline")


def _owned(layout: Layout) -> list[tuple[Leaf, tuple[str, ...]]]:
    return [(leaf, layout.own(leaf)) for leaf in layout.leaves]
