"""How a solve ended, as numbers inside jit, and as an explained error outside."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from sciml.errors import NumericalError
from sciml.types import Array


class Code(enum.IntEnum):
    """Why a solve failed, or OK."""

    OK = 0
    UNSTABLE = 1
    BLOWN_UP = 2
    NOT_CONVERGED = 3
    SINGULAR = 4
    INCOMPATIBLE = 5
    NOT_SYMMETRIC = 6
    BAD_START = 7


class Status(NamedTuple):
    """How one solve ended; every entry has shape ().

    `time`: of the first bad step; `measure` and `limit`: the quantity the code is about and what it may be;
    `steps`: time steps taken per saved time, or iterations of a steady solve.
    """

    code: Array
    time: Array
    measure: Array
    limit: Array
    steps: Array


def status(code: Any, *, time: Any = jnp.nan, measure: Any = jnp.nan, limit: Any = jnp.nan, steps: Any = 0) -> Status:
    """A `Status` of arrays."""
    numbers = [jnp.asarray(value, float) for value in (time, measure, limit)]
    return Status(jnp.asarray(code, jnp.int32), numbers[0], numbers[1], numbers[2], jnp.asarray(steps, jnp.int32))


def failure(outcome: Status, method: Any, who: str) -> NumericalError | None:
    """The error that explains a status, None if all went well; `who` names the sample."""
    code = Code(int(np.asarray(outcome.code)))
    return None if code is Code.OK else _EXPLANATIONS[code](outcome, method, who)


def _unstable(s: Status, method: Any, who: str) -> NumericalError:
    used, limit = float(s.measure), float(s.limit)
    fix = f"dt: {_rounded_down(0.9 * limit)}, or unstable: substep"
    return NumericalError(
        f"the time step is unstable for {who}",
        expected=f"dt <= {limit:.3g}",
        got=f"dt = {used:.3g}",
        reason=f"eigenvalues of the part that {type(method).__name__.lower()} treats explicitly, times dt, "
        "leave its region of stability (transport speed / grid spacing, or diffusivity / spacing^2)",
        fix=fix,
    )


def _blown_up(s: Status, method: Any, who: str) -> NumericalError:
    return NumericalError(
        f"{who} blew up at t = {float(s.time):.6g}",
        expected=f"finite values, growing by less than {float(s.limit):.0e} in total",
        got=f"{float(s.measure):.3g} times the initial norm",
        reason="the step is too large or the grid too coarse for what developed, or the solution itself blows up",
        fix=f"dt: {_rounded_down(method.dt / 4)}, or more grid points",
    )


def _not_converged(s: Status, method: Any, who: str) -> NumericalError:
    return NumericalError(
        f"the linear solver did not converge for {who}",
        expected=f"a relative residual of at most {float(s.limit):.1e}",
        got=f"{float(s.measure):.2e} after {int(s.steps)} iterations",
        reason="too few iterations, coefficients of very different size, or a tolerance below rounding",
        fix="max_iterations: 5000, or method: {kind: direct}",
    )


def _singular(s: Status, method: Any, who: str) -> NumericalError:
    return NumericalError(
        f"the system of {who} is singular: adding a constant changes nothing",
        expected="a condition that fixes the level of u, such as a Dirichlet value on one face",
        got="Neumann conditions on every bounded face and no term without derivatives (null space: the constants)",
        fix="boundary: {x-: {kind: dirichlet, value: 0.0}, ...} or a Robin condition",
    )


def _incompatible(s: Status, method: Any, who: str) -> NumericalError:
    return NumericalError(
        f"{who} has no periodic solution",
        expected="sources whose mean over the domain vanishes (the operator removes the mean)",
        got=f"a mean of {float(s.measure):.3g}",
        fix="subtract the mean from the source, or bound one axis with a Dirichlet condition",
    )


def _not_symmetric(s: Status, method: Any, who: str) -> NumericalError:
    return NumericalError(
        f"the operator of {who} is not symmetric, which conjugate gradients need",
        expected=f"a relative asymmetry below {float(s.limit):.0e}",
        got=f"{float(s.measure):.2e}",
        reason="first derivatives, Neumann or Robin faces, or differences of order 4",
        fix="method: {kind: bicgstab}",
    )


def _bad_start(s: Status, method: Any, who: str) -> NumericalError:
    return NumericalError(
        f"{who} starts with values that are not finite",
        expected="finite initial fields and coefficients",
        got="NaN or infinity at t = 0",
        reason="an initial function or coefficient that is undefined at a grid point (0/0, log 0)",
    )


def _rounded_down(value: float) -> str:
    digits = int(np.floor(np.log10(value))) if value > 0 and np.isfinite(value) else 0
    return f"{np.floor(value / 10.0 ** (digits - 1)) * 10.0 ** (digits - 1):.2g}"


_EXPLANATIONS: dict[Code, Callable[[Status, Any, str], NumericalError]] = {
    Code.UNSTABLE: _unstable,
    Code.BLOWN_UP: _blown_up,
    Code.NOT_CONVERGED: _not_converged,
    Code.SINGULAR: _singular,
    Code.INCOMPATIBLE: _incompatible,
    Code.NOT_SYMMETRIC: _not_symmetric,
    Code.BAD_START: _bad_start,
}
