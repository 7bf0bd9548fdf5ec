"""Self-scaled Broyden: quasi-Newton with a dense inverse Hessian, for the last digits of small networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, final

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sciml.errors import ConfigError
from sciml.registry import option, register
from sciml.training.line_search import Point, search_along
from sciml.training.optimizer import LossFunctions, Optimizer, Update, global_norm
from sciml.types import Array, PyTree, Scalar


class _Place(NamedTuple):
    """Where the iteration stands: flat parameters with log loss and its gradient, and the inverse Hessian."""

    point: Point
    inverse: Array
    stale: Array
    length: Scalar


@final
@register("optimizer", "broyden")
@dataclass(frozen=True)
class Broyden(Optimizer):
    """Self-scaled Broyden: dense quasi-Newton on the log of the loss; the last digits of a small PINN.

    Each step makes `iterations` updates on one batch, each with a line search. The inverse Hessian starts, and starts
    again where a line search fails, from the damped Gauss-Newton matrix.

    Points that change too often spoil the Hessian: 10 iterations per batch end at 6 times the error of 50.
    Good for 100 to 2000 parameters in float64, after Levenberg-Marquardt or alone; thousands of iterations, each
    about two gradients and O(parameters²).
    Source: Urbán, Stefanou & Pons, arXiv:2405.04230, equations for SSBroyden after Al-Baali (1993).
    """

    iterations: int = option(50, minimum=1, doc="updates made in one step, on the same batch")
    damping: float = option(1e-6, above=0.0, doc="damping of the first Hessian, relative to its mean diagonal")
    search_steps: int = option(20, minimum=1, doc="most gradients in one line search")

    def build(self, steps: int) -> Broyden:
        """Itself: nothing depends on the number of steps."""
        del steps
        return self

    def init(self, params: PyTree) -> PyTree:
        """An empty inverse Hessian, to be filled in the first step. ConfigError unless all are float64."""
        wrong = sorted({str(leaf.dtype) for leaf in jax.tree.leaves(params)} - {"float64"})
        if wrong:
            raise ConfigError(
                "broyden needs double precision",
                expected="parameters in float64",
                got=wrong,
                reason="differences of gradients lose most of their digits",
                fix="precision: float64, real parameters",
            )
        size = ravel_pytree(params)[0].size
        return {"inverse": jnp.zeros((size, size)), "stale": jnp.asarray(True)}

    def update(self, functions: LossFunctions, params: PyTree, state: PyTree) -> Update:
        """Several updates on this batch."""
        flat, unravel = ravel_pytree(params)
        (loss, parts), gradient = functions.value_and_grad(params)
        start = Point(flat, jnp.log(loss), ravel_pytree(gradient)[0] / loss)

        def log_loss(vector: Array) -> Scalar:
            return jnp.log(functions.value(unravel(vector))[0])

        def begin(place: _Place) -> Array:
            system = functions.normal_equations(unravel(place.point.params))
            return _damped_inverse(2.0 * system.matrix / system.loss, self.damping)

        def iterate(_: int, place: _Place) -> _Place:
            inverse = jax.lax.cond(place.stale, begin, lambda p: p.inverse, place)
            direction = -inverse @ place.point.gradient
            point, length = search_along(log_loss, place.point, direction, self.search_steps)
            step, change = point.params - place.point.params, point.gradient - place.point.gradient
            fresh = _self_scaled(inverse, step, change, -length * (step @ place.point.gradient))
            useful = (length > 0.0) & (step @ change > 0.0) & jnp.isfinite(fresh).all()
            return _Place(point, jnp.where(useful, fresh, inverse), length == 0.0, length)

        place = _Place(start, state["inverse"], state["stale"], jnp.zeros_like(loss))
        end = jax.lax.fori_loop(0, self.iterations, iterate, place)
        info = {"loss": loss, "grad_norm": global_norm(gradient), "learning_rate": end.length}
        return Update(unravel(end.point.params), {"inverse": end.inverse, "stale": end.stale}, info, parts)


def _damped_inverse(matrix: Array, damping: float) -> Array:
    """Inverse of a positive matrix after damping."""
    identity = jnp.eye(matrix.shape[0], dtype=matrix.dtype)
    factor = jax.scipy.linalg.cho_factor(matrix + damping * jnp.mean(jnp.diag(matrix)) * identity)
    return jax.scipy.linalg.cho_solve(factor, identity)


def _self_scaled(inverse: Array, step: Array, change: Array, bending: Scalar) -> Array:
    """The next inverse Hessian; `bending` is sᵀBs, with B the present Hessian and s the step."""
    moved = inverse @ change
    slope = change @ step
    b, h = bending / slope, (change @ moved) / slope
    theta, scale = _parameters(b, h, step.size)
    phi = (1.0 - theta) / (1.0 + (h * b - 1.0) * theta)
    v = jnp.sqrt(change @ moved) * (step / slope - moved / (change @ moved))
    inner = inverse - jnp.outer(moved, moved) / (change @ moved) + phi * jnp.outer(v, v)
    return inner / scale + jnp.outer(step, step) / slope


def _parameters(b: Scalar, h: Scalar, size: int) -> tuple[Scalar, Scalar]:
    """Member of the Broyden family (theta: 0 is BFGS, 1 is DFP) and scale of the old matrix."""
    a = jnp.maximum(h * b - 1.0, 1e-14)
    below = jnp.minimum(1.0, h * (1.0 - jnp.sqrt(a / (a + 1.0))))
    theta = jnp.maximum((below - 1.0) / a, jnp.minimum(1.0 / below, (1.0 - b) / b))
    sigma = 1.0 + a * theta
    root = sigma ** (-1.0 / (size - 1))
    above = jnp.minimum(1.0, 1.0 / b)
    scale = jnp.where(theta <= 0.0, jnp.minimum(above * root, sigma), above * jnp.minimum(root, 1.0 / theta))
    return theta, scale
