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
    RESONANT = 20
    INDEFINITE = 21
    NOT_POSITIVE = 8
    STUCK = 9


class Status(NamedTuple):
    """How one solve ended; every entry has shape ().

    `time`: of the first bad step; `measure` and `limit`: the quantity the code is about and what it may be;
    `steps`: time steps taken per saved time, or iterations of a steady solve; `place`: where in space, as a number
    that the method can explain, -1 if it does not know.
    """

    code: Array
    time: Array
    measure: Array
    limit: Array
    steps: Array
    place: Array


def status(
    code: Any,
    *,
    time: Any = jnp.nan,
    measure: Any = jnp.nan,
    limit: Any = jnp.nan,
    steps: Any = 0,
    place: Any = -1,
) -> Status:
    """A `Status` of arrays."""
    numbers = [jnp.asarray(value, float) for value in (time, measure, limit)]
    counts = [jnp.asarray(value, jnp.int32) for value in (steps, place)]
    return Status(jnp.asarray(code, jnp.int32), *numbers, *counts)


def failure(outcome: Status, method: Any, who: str, where: str = "") -> NumericalError | None:
    """The error that explains a status, None if all went well; `who` names the sample, `where` the place."""
    code = Code(int(np.asarray(outcome.code)))
    if code is Code.OK:
        return None
    error = _EXPLANATIONS[code](outcome, method, who)
    if where:
        error = NumericalError(
            f"{error.what} {where}", expected=error.expected, got=error.got, reason=error.reason, fix=error.fix
        )
    return error


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
        expected=f"finite values, growing by less than {float(s.limit):.0e} in total" if s.limit else "finite values",
        got=f"{float(s.measure):.3g} times the initial norm" if s.limit else "NaN or infinity",
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
        expected="a condition that fixes the level of u, or an operator whose cells balance on the grid",
        got="no Dirichlet or Robin face, no term without derivatives (null space: the constants), no balance of cells",
        reason="differences of order 4, conditions that differ between the fields of a face, or expanded divergences",
        fix="difference_order: 2 (which then fixes the mean of u at zero), or {kind: dirichlet, value: 0} on one face",
    )


def _incompatible(s: Status, method: Any, who: str) -> NumericalError:
    return NumericalError(
        f"{who} has no solution: what its sources and faces bring in does not balance",
        expected=f"sources and fluxes through the faces that add up to zero, to {float(s.limit):.1e} of their size",
        got=f"a mean of {float(s.measure):.3g} of their size",
        reason="periodic boxes, and Neumann conditions on every face, let nothing out: a steady state needs zero mean",
        fix="subtract the mean from the source, or fix u on one face with a Dirichlet or Robin condition",
    )


def _resonant(s: Status, method: Any, who: str) -> NumericalError:
    return NumericalError(
        f"{who} is at a resonance, as far as this grid can tell",
        expected=f"an undifferentiated term (k^2) at least {float(s.limit):.2g} of it away from every eigenvalue",
        got=f"a distance of {float(s.measure):.2g}",
        reason="at an eigenvalue of the Laplacian there is no solution or no unique one; on this grid the eigenvalues "
        "themselves are uncertain by more than the distance",
        fix="a finer grid or difference_order: 4 if the wave number is right, else another wave number",
    )


def _indefinite(s: Status, method: Any, who: str) -> NumericalError:
    return NumericalError(
        f"the operator of {who} has eigenvalues of both signs, which {type(method).__name__} cannot treat",
        expected="a definite operator",
        got="an indefinite one",
        reason="a wave number above the first resonance, or a coefficient that changes sign",
        fix="method: {kind: direct}, or {kind: bicgstab}",
    )


def _not_symmetric(s: Status, method: Any, who: str) -> NumericalError:
    return NumericalError(
        f"the operator of {who} is not symmetric, which conjugate gradients need",
        expected=f"a relative asymmetry below {float(s.limit):.0e}",
        got=f"{float(s.measure):.2e}",
        reason="first derivatives, differences of order 4, or fields whose conditions on a face differ in kind",
        fix="method: {kind: bicgstab}",
    )


def _bad_start(s: Status, method: Any, who: str) -> NumericalError:
    return NumericalError(
        f"{who} starts with values that are not finite",
        expected="finite initial fields and coefficients",
        got="NaN or infinity at t = 0",
        reason="an initial function or coefficient that is undefined at a grid point (0/0, log 0)",
    )


def _not_positive(s: Status, method: Any, who: str) -> NumericalError:
    at_start = float(s.time) == 0
    return NumericalError(
        f"{who} {'starts with' if at_start else f'reaches at t = {float(s.time):.6g}'} a negative value",
        expected="density, pressure or depth >= 0 in every cell",
        got=f"{float(s.measure):.6g}",
        reason="an initial field that is not physical (pressure is what the energy leaves after the kinetic part)"
        if at_start
        else "sources or conditions on the faces that take more than there is, or speeds that grow within a step",
        fix="initial fields with positive density, pressure, depth" if at_start else "cfl: 0.2, reconstruction: muscl",
    )


def _stuck(s: Status, method: Any, who: str) -> NumericalError:
    return NumericalError(
        f"{who} would need more than a million steps to the next saved time at t = {float(s.time):.6g}",
        expected="speeds (or a diffusivity) that the saved times and the grid can follow",
        reason="speeds grow without bound: an empty region, an almost singular state, or units that do not fit",
        fix="reconstruction: muscl, riemann: rusanov, or saved times nearer to each other",
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
    Code.RESONANT: _resonant,
    Code.INDEFINITE: _indefinite,
    Code.NOT_POSITIVE: _not_positive,
    Code.STUCK: _stuck,
}
