"""Exponax on the same problems: its default use (physical steps, `repeat`) and the best use that was found."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import exponax as ex  # pyright: ignore[reportMissingImports] -- a peer, installed for the comparison only
import jax
import jax.numpy as jnp
from cases import Case

SIGN = {"vorticity": -1.0}  # its vorticity is u_y - v_x
Stepper = Callable[[bool], Any]
"""best -> stepper: with `best`, the cheaper algebraic form where there is one."""


def stepper_of(key: str, case: Case) -> Stepper:
    """The steppers of one case at order 4, the order of the scheme it is compared with."""
    length, n = case.grid.box.lengths[0], case.grid.shape[0]
    place = (case.grid.dim, length, n, case.dt)
    steppers: dict[str, Stepper] = {
        "burgers": lambda best: ex.stepper.Burgers(*place, diffusivity=0.02, order=4, conservative=best),
        "ks": lambda best: ex.stepper.KuramotoSivashinskyConservative(*place, order=4),
        "heat": lambda best: ex.stepper.Diffusion(*place, diffusivity=0.05),
        "vorticity": lambda best: ex.stepper.NavierStokesVorticity(*place, diffusivity=1e-3, order=4),
    }
    return steppers[key]


def contenders(key: str, case: Case, batch: int) -> dict[str, Callable[[], Any]]:
    """Default use, and with fewer transforms (`RepeatedStepper`), by vmap and for a batch also by lax.map."""
    make = stepper_of(key, case)
    start = jnp.asarray(SIGN.get(key, 1.0) * case.initial(batch))[:, None]
    default, best = ex.repeat(make(False), case.steps), ex.RepeatedStepper(make(True), case.steps)
    if batch == 1:
        return {
            "Exponax default": partial(jax.jit(lambda u: default(u)), start[0]),
            "Exponax repeated": partial(jax.jit(lambda u: best(u)), start[0]),
        }
    return {
        "Exponax default": partial(jax.jit(jax.vmap(default)), start),
        "Exponax repeated": partial(jax.jit(jax.vmap(best)), start),
        "Exponax mapped": partial(jax.jit(lambda u: jax.lax.map(best, u)), start),
    }


def korteweg_de_vries(points: int, length: float, dt: float, steps: int) -> Callable[[Any], Any]:
    """u_t + 6 u u_x + u_xxx = 0 at its order 4, without hyperdiffusion: (points,) to (points,)."""
    stepper = ex.stepper.KortewegDeVries(1, length, points, dt, hyper_diffusivity=0.0, order=4)
    march = jax.jit(lambda u: ex.repeat(stepper, steps)(u))
    return lambda u: march(u[None])[0]


def burgers(points: int, dt: float, steps: int, order: int) -> Callable[[Any], Any]:
    """Burgers in its default form with nu = 0.02 on the 2 pi circle: (points,) to (points,)."""
    stepper = ex.stepper.Burgers(1, 2 * jnp.pi, points, dt, diffusivity=0.02, order=order)
    march = jax.jit(lambda u: ex.repeat(stepper, steps)(u))
    return lambda u: march(u[None])[0]
