"""Solutions on meshes: what `sciml.solvers.solve` does for a problem whose domain is a mesh."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciml.errors import ConfigError, NumericalError
from sciml.functions import is_sampled
from sciml.problem import Problem
from sciml.solvers.admissible import check_coefficients
from sciml.solvers.finite_element.elements import Elements
from sciml.solvers.finite_element.march import march
from sciml.solvers.finite_element.methods import Galerkin, TrBdf2
from sciml.solvers.finite_element.root import Equations, find_root
from sciml.solvers.finite_element.space import Space, lift, space_for
from sciml.solvers.march import Schedule, schedule
from sciml.types import Array


def solve_on_mesh(problem: Problem, elements: Any, method: Any, times: Any) -> tuple[dict[str, Array], int]:
    """The fields at the nodes, shape (nodes,) or (T, nodes), and the number of Newton steps, or steps per saved time.

    Raises `ConfigError` for elements, method or times that do not fit, `NumericalError` for a singular system, values
    that are not finite, or iterations that do not converge.
    """
    check_on_mesh(problem, elements, method, times)
    plan = None if times is None else schedule(times, method.dt)
    count, static = 0, method
    if plan is not None:  # neither the step nor the number of steps is compiled in
        count, static = plan.steps, dataclasses.replace(method, dt=1.0)
        plan = dataclasses.replace(plan, steps=1)
    values, reached, steps = _solve_compiled(problem, space_for(problem, elements), count, method=static, plan=plan)
    _explain(problem, method, values, float(reached))
    return _by_name(problem, values), int(steps)


def integrate_on_mesh(problem: Problem, elements: Elements, method: Any, times: Any) -> dict[str, Array]:
    """The fields without any check, for use inside jit, vmap and grad; a failure shows as NaN."""
    plan = None if times is None else schedule(times, method.dt)
    count = 0 if plan is None else plan.steps
    return _by_name(problem, _solve(problem, space_for(problem, elements), count, method, plan)[0])


def check_on_mesh(problem: Problem, elements: Any, method: Any, times: Any) -> None:
    """Raises `ConfigError` when problem, elements, method and times do not belong together."""
    name = type(problem.equation).__name__
    if not isinstance(elements, Elements) or elements.mesh != problem.domain:
        raise ConfigError(
            "a problem on a mesh is solved with elements on the same mesh",
            expected=f"Elements({problem.domain!r}, degree)",
            got=repr(elements),
            fix="solve(problem, Elements(problem.domain, degree=2), method)",
        )
    wanted, kind = (TrBdf2, "evolution") if problem.is_evolution else (Galerkin, "steady")
    if not isinstance(method, wanted):
        raise ConfigError(
            f"{name} on a mesh is an equation of kind {kind}, which this method does not solve",
            expected=wanted.__name__,
            got=type(method).__name__,
        )
    if getattr(problem.equation, "auxiliary", ()):
        raise ConfigError(
            f"{name} has fields that follow from others by an inverse Laplacian, which elements do not supply",
            got=", ".join(field.name for field in problem.equation.auxiliary),
            fix="a periodic Box",
        )
    _check_lengths(problem, elements)
    check_coefficients(problem, elements)
    if (times is None) == problem.is_evolution:
        raise ConfigError("an evolution needs the times to save, a steady problem has none", got=times)


def _check_lengths(problem: Problem, elements: Elements) -> None:
    count = len(elements.nodes)
    for field in dataclasses.fields(problem.equation):
        shape = np.shape(values) if is_sampled(values := getattr(problem.equation, field.name)) else (count,)
        if shape != (count,):
            raise ConfigError(
                f"the coefficient {field.name!r} does not have one value per node",
                expected=f"shape ({count},), at elements.nodes",
                got=shape,
                reason="elements of degree 2 have nodes on the edges, too, not at the corners only",
                fix=f"{field.name}=function(elements.nodes)",
            )


def _by_name(problem: Problem, values: Array) -> dict[str, Array]:
    return {name: values[..., i, :] for i, name in enumerate(problem.field_names)}


@partial(jax.jit, static_argnames=("method", "plan"))
def _solve_compiled(
    problem: Problem, space: Space, count: Any, *, method: Any, plan: Schedule | None
) -> tuple[Array, Array, Array]:
    return _solve(problem, space, count, method, plan)


def _solve(
    problem: Problem, space: Space, count: Any, method: Any, plan: Schedule | None
) -> tuple[Array, Array, Array]:
    if plan is not None:
        values, worst = march(space, problem, method, plan, count)
        return values, worst, jnp.asarray(count)
    known = lift(space, problem, None)
    root = find_root(space, Equations(problem, known, 0.0, None, None, 1.0, 0.0), known, method)
    return root.y, root.reached, root.steps


def _explain(problem: Problem, method: Any, values: Array, reached: float) -> None:
    name = type(problem.equation).__name__
    if not np.all(np.isfinite(values)):
        raise NumericalError(
            f"the system of {name} on the mesh is singular, or its values are not finite",
            expected="conditions that fix the level of every field, and coefficients that are finite",
            got="a matrix without inverse",
            reason="Neumann or inflow conditions on all parts leave a constant (in elasticity a rigid motion) open, or "
            "a wave number is at a resonance, or a coefficient or a source is NaN or infinite",
            fix='boundary={..., "x-": dirichlet(0.0)}, or robin(alpha, beta, value) on one part',
        )
    if not reached <= method.tolerance:
        raise NumericalError(
            f"the solver did not converge for {name} on the mesh",
            expected=f"a residual of at most {method.tolerance:.1e} of its terms",
            got=f"{reached:.2e}",
            reason="Newton's method from zero is too far from the solution, or conjugate gradients were given a "
            "matrix that is not symmetric and positive definite",
            fix='linear_solver="direct"; for a nonlinear problem, smaller data first',
        )
