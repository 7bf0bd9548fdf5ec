"""Steps compiled for simulated devices, next to what was predicted for them."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import plan_cases
from tiny_transformers import rows, transformer

from sciml.operators.traffic import activation_traffic, has_formulas, space_limits
from sciml.parallel.cost import held
from sciml.parallel.layout import Layout
from sciml.parallel.plan import Plan
from sciml.parallel.prediction import sent_bytes
from sciml.parallel.profile import Profile, profile
from sciml.parallel.step import build_step
from sciml.parallel.subject import Subject
from sciml.parallel.traffic import bytes_sent
from sciml.registry import load
from sciml.training.objective import Data

MIXTURE = {"experts": 4, "chosen": 2, "groups": 2, "capacity": 0.75, "hidden": 4}


@dataclass(frozen=True)
class Compared:
    """Predicted and compiled: bytes of arguments, of temporaries, and sent."""

    arguments: tuple[float, float]
    temporary: tuple[float, float]
    sent: tuple[float, float]

    def assert_close(self, factor: float) -> None:
        """1 % for what is exact but for single numbers, a factor for temporaries."""
        assert abs(self.arguments[0] / self.arguments[1] - 1) < 0.01, self
        assert abs(self.sent[0] - self.sent[1]) <= 0.01 * self.sent[1] + 32, self
        assert 1 / factor < self.temporary[0] / self.temporary[1] < factor, self


def subject(name: str) -> Subject:
    """One of the cases of `plan_cases`, or a transformer with or without experts, as a subject of predictions."""
    optimizer = load("optimizer", "adam")().build(3)
    if name in plan_cases.MAKERS:
        case = plan_cases.case(name)
        model, objective, batch = case.model, case.objective, case.batch
    else:
        model, objective, batch = transformer(**{"mixture": MIXTURE, "plain": {}}[name]), Data(("u",)), rows(16)
    known = has_formulas(model)
    limits = space_limits(model, Plan()) if known else {}
    traffic = (lambda plan, count: activation_traffic(model, plan, count)) if known else None
    return Subject(model, objective, optimizer, batch, "float64", traffic, limits)


def compare(about: Subject, plan: Plan, known: Profile | None = None) -> Compared:
    """Predict, compile, count."""
    layout = Layout.abstract(about.model, plan, about.state.params)
    known = known or profile(about, plan, plan.remat)
    stored = held(layout, about.state.params, about.state.opt_state, about.rows)
    step = build_step(about.model, about.objective, about.optimizer, plan)
    shapes = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), about.rows)
    compiled = step.function.lower(about.state, shapes).compile()
    memory = compiled.memory_analysis()
    return Compared(
        (stored.total, memory.argument_size_in_bytes),
        (known.work(layout, about.state.params).peak, memory.temp_size_in_bytes),
        (sum(sent_bytes(about, layout).values()), bytes_sent(compiled.as_text())),
    )
