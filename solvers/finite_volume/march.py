"""Marching averages over cells through time: adaptive and watched, or with a fixed number of steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from sciml.solvers.finite_volume.system import CellSystem, Fault
from sciml.solvers.march import Schedule
from sciml.solvers.ssprk3 import STAGES, Ssprk3
from sciml.solvers.status import Code, Status, status
from sciml.types import Array

LARGEST_COURANT = 0.5  # half a cell per step: what is left of a cell stays positive, and no new extremum appears
LARGEST_DECAY = 0.8 * Ssprk3.real_limit  # decay rate of diffusion times the step
MOST_STEPS = 1e6  # per saved time
ROUNDING = 1e-9


def march_plainly(system: CellSystem, plan: Schedule) -> Array:
    """`plan.steps` equal steps per saved time; NaN from the first one on that is too large or leaves a state that is
    not positive. Each step is computed again backward."""
    step = jax.checkpoint(_step_of(system))

    def segment(carry: tuple[Array, Array], span: tuple[Array, Array]) -> tuple[tuple[Array, Array], Array]:
        start, gap = span
        h = gap / plan.steps

        def one(i: Any, state: tuple[Array, Array]) -> tuple[Array, Array]:
            u, good = state
            t = start + i * h
            speeds = jax.lax.stop_gradient(system.speeds(u, t))
            good = good & (speeds.transport * h <= LARGEST_COURANT) & (speeds.diffusion * h <= LARGEST_DECAY)
            u = step(u, t, h)
            return u, good & _is_fit(system, u, t + h)

        u, good = jax.lax.fori_loop(0, plan.steps, one, carry)
        return (u, good), jnp.where(good, u, jnp.nan)

    begin = system.initial()
    first = (begin, _is_fit(system, begin, 0.0))
    _, saved = jax.lax.scan(segment, first, (jnp.asarray(plan.starts), jnp.asarray(plan.gaps)))
    return _with_start(first[0], plan, saved)


def march_watched(system: CellSystem, plan: Schedule, least_steps: Any, courant: float) -> tuple[Array, Status]:
    """Steps as long as the speeds allow, shortened evenly to land on the saved times; NaN from the first fault on."""
    step = _step_of(system)
    begin = system.initial()
    nothing = (Fault(jnp.asarray(-1, jnp.int32), jnp.asarray(jnp.nan)), jnp.asarray(jnp.nan), jnp.asarray(False))

    def segment(carry: tuple[Any, ...], span: tuple[Array, Array]) -> tuple[tuple[Any, ...], Array]:
        start, gap = span

        def one(state: tuple[Any, ...]) -> tuple[Any, ...]:
            u, elapsed, taken, _ = state
            t, rest = start + elapsed, gap - elapsed
            speeds = system.speeds(u, t)
            rate = speeds.transport / courant + speeds.diffusion / LARGEST_DECAY
            wanted = jnp.maximum(rest * rate, rest / gap * least_steps)
            count = jnp.maximum(jnp.ceil(wanted * (1 - ROUNDING)), 1.0)
            h = rest / count
            u = step(u, t, h)
            fault = system.fault(u, t + h)
            stuck = ~(gap * rate < MOST_STEPS) & (fault.place < 0)
            fault = Fault(jnp.where(stuck, system.fastest_cell(u, t), fault.place), fault.measure)
            return u, jnp.where(count == 1, gap, elapsed + h), taken + 1, (fault, t + h, stuck)

        u, most, record = carry
        inside = (u, jnp.zeros_like(gap), jnp.asarray(0, jnp.int32), record)
        u, _, taken, record = jax.lax.while_loop(lambda s: (s[1] < gap) & (s[3][0].place < 0), one, inside)
        saved = jnp.where(record[0].place < 0, u, jnp.nan)
        return (u, jnp.maximum(most, taken), record), saved

    bad_start = system.fault(begin, 0.0)
    first = (begin, jnp.asarray(0, jnp.int32), (bad_start, *nothing[1:]))
    (_, most, (fault, when, stuck)), saved = jax.lax.scan(
        segment, first, (jnp.asarray(plan.starts), jnp.asarray(plan.gaps))
    )
    undefined = fault.place < system.cells
    code = jnp.where(undefined, Code.BLOWN_UP, Code.NOT_POSITIVE)
    code = jnp.where(stuck, Code.STUCK, jnp.where(fault.place < 0, Code.OK, code))
    code = jnp.where((bad_start.place >= 0) & undefined, Code.BAD_START, code)
    when = jnp.where(bad_start.place >= 0, 0.0, when)
    outcome = status(code, time=when, measure=fault.measure, limit=0.0, steps=most, place=fault.place)
    return _with_start(begin, plan, saved), outcome


def _is_fit(system: CellSystem, u: Array, t: Any) -> Array:
    return system.fault(jax.lax.stop_gradient(u), t).place < 0


def _step_of(system: CellSystem) -> Callable[[Array, Any, Any], Array]:
    """One step of SSP-RK3, its stages in a loop: the rate is compiled once."""

    def step(u: Array, t: Any, h: Any) -> Array:
        def stage(v: Array, coefficients: Array) -> tuple[Array, None]:
            begin, euler, when = coefficients
            return begin * u + euler * (v + h * system.rate(v, t + when * h, h)), None

        return jax.lax.scan(stage, u, jnp.asarray(STAGES))[0]

    return step


def _with_start(begin: Array, plan: Schedule, saved: Array) -> Array:
    return jnp.concatenate([begin[None], saved]) if plan.saves_start else saved
