"""Marching a discretized evolution from one saved time to the next, watched or plain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciml.domain import Grid
from sciml.errors import ConfigError
from sciml.solvers.evolution import Discretized
from sciml.solvers.method import TimeStepper
from sciml.solvers.stability import MOST_DOUBLINGS, estimate, norm, rough_on
from sciml.solvers.status import Code, Status, status
from sciml.types import Array

LARGEST_GROWTH = 1e8  # in norm, over the state at the start and after one step


@dataclass(frozen=True)
class Schedule:
    """The saved times as segments: from `starts` over `gaps`, both shape (T,), in at least `steps` steps each.

    `times[0] == 0` makes an empty first segment. With `uniform` gaps the coefficients of a method are computed once.
    """

    times: tuple[float, ...]
    steps: int
    uniform: bool

    @property
    def gaps(self) -> np.ndarray:
        """Lengths of the segments, without the empty one."""
        return np.diff(np.asarray((0.0, *self._later)))

    @property
    def starts(self) -> np.ndarray:
        """Where the segments begin."""
        return np.asarray((0.0, *self._later))[:-1]

    @property
    def saves_start(self) -> bool:
        """Whether the first saved time is zero."""
        return self.times[0] == 0.0

    @property
    def _later(self) -> tuple[float, ...]:
        return self.times[1:] if self.saves_start else self.times


def schedule(times: Any, dt: float) -> Schedule:
    """Segments whose steps are at most dt; raises `ConfigError` unless 0 <= t_1 < t_2 < ... and some t > 0."""
    values = tuple(float(t) for t in np.atleast_1d(np.asarray(times, float)))
    increasing = all(a < b for a, b in zip(values, values[1:], strict=False))
    if not values or values[0] < 0 or values[-1] <= 0 or not increasing or not np.all(np.isfinite(values)):
        raise ConfigError(
            "the saved times have to increase and be finite, not before 0",
            expected="0 <= t_1 < t_2 < ..., the last one > 0",
            got=values,
            fix="times=[0.1, 0.2, 0.3]",
        )
    gaps = Schedule(values, 1, False).gaps
    steps = max(1, int(np.ceil(gaps.max() / dt * (1 - 1e-12))))
    return Schedule(values, steps, bool(np.ptp(gaps) <= 1e-9 * gaps.max()))


def march_plainly(system: Discretized, method: TimeStepper, plan: Schedule) -> Array:
    """The saved states as grid values, shape (T, fields, *grid.shape); differentiable in both modes."""
    steps = 1 if _jumps(system, method) else plan.steps
    advance = _Advance(system, method, plan, steps)

    def segment(y: Array, span: tuple[Array, Array]) -> tuple[Array, Array]:
        start, gap = span
        y = jax.lax.fori_loop(0, steps, lambda i, v: advance(v, start, gap, i), y)
        return y, system.space.decode(y, start + gap)

    _, saved = jax.lax.scan(segment, system.initial, (jnp.asarray(plan.starts), jnp.asarray(plan.gaps)))
    return _with_start(system, plan, saved)


def march_watched(
    system: Discretized, method: TimeStepper, plan: Schedule, steps: Array, checked: bool
) -> tuple[Array, Status]:
    """As `march_plainly`, with a step count (shape ()) that may be traced, a stability check, and a watch for blow-up.

    What comes after the first bad step is NaN. Without `checked` the step is taken as it is.
    """
    count = jnp.asarray(1 if _jumps(system, method) else steps)
    stability = _stability(system, method, plan, count) if checked else None
    doublings = stability.doublings if stability else jnp.asarray(0, jnp.int32)
    refused = doublings > (0 if method.unstable == "refuse" else MOST_DOUBLINGS)
    count = count * 2 ** jnp.where(refused, 0, doublings)
    advance = _Advance(system, method, plan, count)
    space = system.space
    start_norm = norm(system.initial, space.total)

    def segment(carry: tuple[Any, ...], span: tuple[Array, Array]) -> tuple[tuple[Any, ...], Array]:
        start, gap = span
        y, alive, bad_time, place, scale = carry

        def one(state: tuple[Any, ...]) -> tuple[Any, ...]:
            i, v, _, when, reference = state
            v = advance(v, start, gap, i)
            size = norm(v, space.total)
            reference = jnp.where(reference < 0, jnp.maximum(start_norm, size), reference)
            good = jnp.isfinite(size) & (size <= LARGEST_GROWTH * reference)
            return i + 1, v, good, jnp.where(good, when, start + (i + 1) * gap / count), reference

        inside = (jnp.zeros_like(count), y, alive, bad_time, scale)
        _, y, good, bad_time, scale = jax.lax.while_loop(lambda s: (s[0] < count) & s[2], one, inside)
        values = system.space.decode(y, start + gap)
        if isinstance(space.grid, Grid):  # not a part of one
            place = jnp.where(alive & ~good, _place_of_largest(values), place)
        return (y, good, bad_time, place, scale), jnp.where(good, values, jnp.nan)

    alive = jnp.isfinite(start_norm) & ~refused
    carry = (system.initial, alive, jnp.asarray(jnp.nan), jnp.asarray(-1), jnp.asarray(-1.0))
    spans = (jnp.asarray(plan.starts), jnp.asarray(plan.gaps))
    (y, finished, bad_time, place, _), saved = jax.lax.scan(segment, carry, spans)
    code = jnp.where(alive & ~finished, Code.BLOWN_UP, Code.OK)
    code = jnp.where(refused, Code.UNSTABLE, code)
    code = jnp.where(jnp.isfinite(start_norm), code, Code.BAD_START)
    used = plan.gaps.max() / count
    largest = used / (stability.ratio if stability else 1.0)
    growth = norm(y, space.total) / jnp.where(start_norm > 0, start_norm, 1.0)
    outcome = status(
        code,
        time=bad_time,
        measure=jnp.where(refused, used, growth),
        limit=jnp.where(refused, largest, LARGEST_GROWTH),
        steps=count,
        place=place,
    )
    return _with_start(system, plan, saved), outcome


def _place_of_largest(values: Array) -> Array:
    """Number of the point where the largest value, or one that is not finite, is; -1 if none is finite."""
    sizes = jnp.where(jnp.isfinite(values), jnp.abs(values), jnp.inf).max(axis=0)
    return jnp.where(jnp.all(jnp.isinf(sizes)), -1, jnp.argmax(sizes))


class _Advance:
    """One step of a method; coefficients that depend on the step size only are computed once if it never changes."""

    def __init__(self, system: Discretized, method: TimeStepper, plan: Schedule, steps: Any) -> None:
        self.system, self.method, self.steps, self.uniform = system, method, steps, plan.uniform
        self.jumps = _jumps(system, method)
        self.prepared: Any = self._prepare(plan.gaps[0] / steps) if plan.uniform else None

    def __call__(self, y: Array, start: Array, gap: Array, index: Any) -> Array:
        h = gap / self.steps
        linear, prepared = self.system.linear, self.prepared if self.uniform else self._prepare(h)
        if self.jumps and linear is not None:
            return self.system.space.settled(linear.act(prepared, y))
        return self.system.space.settled(self.method.step(prepared, linear, self.system.rate, y, start + index * h, h))

    def _prepare(self, h: Any) -> Any:
        linear = self.system.linear
        return linear.exponential(h) if self.jumps and linear is not None else self.method.prepare(linear, h)


def _jumps(system: Discretized, method: TimeStepper) -> bool:
    return method.exact_without_remainder and not system.has_rate


def _with_start(system: Discretized, plan: Schedule, saved: Array) -> Array:
    if not plan.saves_start:
        return saved
    first = system.space.decode(system.initial, 0.0)
    return jnp.concatenate([first[None], saved])


def _stability(system: Discretized, method: TimeStepper, plan: Schedule, steps: Array) -> Any:
    if not system.has_rate:
        return None
    jacobian: Callable[[Array], Array] = jax.linearize(lambda y: system.rate(y, 0.0), system.initial)[1]
    space, step, duration = system.space, plan.gaps.max() / steps, plan.gaps.sum()
    start = space.encode(rough_on(space.grid, system.initial.shape[0]))
    return estimate(method, system.linear, jacobian, start, step, duration, space.total)
