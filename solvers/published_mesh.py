"""Exact solutions on meshes, with holes and without: orders of the elements, and the plate with a circular hole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from sciml.boundary import dirichlet, inflow, robin
from sciml.equations.elasticity import Elasticity
from sciml.equations.heat import Heat
from sciml.equations.poisson import Poisson
from sciml.geometry import Mesh, brick, quarter_plate_with_hole, rectangle, ring
from sciml.problem import Problem, make_problem, manufactured
from sciml.solvers.finite_element import Elements, Galerkin, TrBdf2
from sciml.solvers.published import Row, limit, published
from sciml.solvers.solve import solve

TENSION_FACTOR = 3.0


def wave(x: Any) -> Any:
    """A smooth function of points, shape (..., dim), which is not harmonic."""
    return jnp.sin(2.0 * x[..., 0] + 0.3) * jnp.cos(x[..., 1]) * jnp.exp(0.5 * x[..., -1])


def errors(problem_on: Callable[[Mesh], Problem], meshes: Sequence[Mesh], degree: int) -> np.ndarray:
    """The L2 errors, all fields together, of steady problems with an exact solution, shape (levels,)."""
    found = []
    for mesh in meshes:
        problem, elements = problem_on(mesh), Elements(mesh, degree)
        fields = solve(problem, elements, Galerkin()).fields
        parts = [elements.error(values, _on_points(problem.exact[name])) for name, values in fields.items()]
        found.append(float(np.linalg.norm(parts)))
    return np.asarray(found)


def _on_points(function: Any) -> Callable[[Any], np.ndarray]:
    return lambda x: np.asarray(jnp.vectorize(function, signature="(d)->()")(jnp.asarray(x)))


def observed_order(sizes: Sequence[float], errors_: np.ndarray) -> float:
    """The slope of log error over log mesh width, by least squares."""
    return float(np.polyfit(np.log(sizes), np.log(errors_), 1)[0])


def poisson_on(mesh: Mesh) -> Problem:
    """-lap u = f with the solution `wave`, given at the boundary."""
    return manufactured(Poisson(0.0), mesh, {"u": wave})


def elasticity_on(mesh: Mesh) -> Problem:
    """A manufactured displacement, given at the boundary."""
    exact = {"ux": lambda x: jnp.sin(2.0 * x[0]) * x[1], "uy": lambda x: jnp.cos(x[0] + 2.0 * x[1])}
    return manufactured(Elasticity(1.3, 0.7, 0.0, 0.0), mesh, exact)


TRIANGLES = (4, 8, 16, 32)
TETRAHEDRA = (2, 3, 4, 6)


def order_of(problem_on: Callable[[Mesh], Problem], dim: int, degree: int) -> float:
    """The observed order in L2 over four uniform meshes of triangles (dim 2) or tetrahedra."""
    counts = {2: TRIANGLES, 3: TETRAHEDRA}[dim]
    meshes = [rectangle(cells=(n, n)) if dim == 2 else brick(cells=(n, n, n)) for n in counts]
    return observed_order([1.0 / n for n in counts], errors(problem_on, meshes, degree))


@published("poisson", long=True)
def orders_of_elements() -> Iterable[Row]:
    """P1 is of order 2 and P2 of order 3 in L2 (Brenner, Scott 2008, theorem 5.7.6); `wave` is the solution."""
    for dim, kind in ((2, "triangles"), (3, "tetrahedra")):
        for degree in (1, 2):
            found = order_of(poisson_on, dim, degree)
            yield Row(f"P{degree} {kind}: order in L2 over four meshes", found, degree + 1.0, 0.2)


@published("elasticity", long=True)
def orders_of_displacements() -> Iterable[Row]:
    """As for the Poisson equation."""
    for degree in (1, 2):
        found = order_of(elasticity_on, 2, degree)
        yield Row(f"P{degree} triangles: order in L2 over four meshes", found, degree + 1.0, 0.2)


@published("poisson", long=True)
def domain_with_a_hole() -> Iterable[Row]:
    """The ring 1 < r < 2 without sources: u = log r, given at the inner circle, with a Robin condition at the outer."""
    counts = (2, 3, 4, 6)
    found = errors(logarithm_on, [ring(1.0, 2.0, (n, 8 * n)) for n in counts], 2)
    yield Row("P2, curved ring: order in L2", observed_order([1.0 / n for n in counts], found), 3.0, 0.25)


def logarithm_on(mesh: Mesh) -> Problem:
    """u = log r: at the radius 2, u + du/dn = log 2 + 1/2."""
    outer = robin(1.0, 1.0, float(np.log(2.0)) + 0.5)
    boundary = {"inner": dirichlet(0.0), "outer": outer}
    return make_problem(Poisson(0.0), mesh, boundary=boundary, exact={"u": lambda x: 0.5 * jnp.log(x @ x)})


def patch_test(mesh: Mesh, degree: int) -> float:
    """The largest error of a linear displacement, by its values on one part and by its traction on the others."""
    equation = Elasticity(1.5, 0.8, 0.0, 0.0)
    slopes = np.asarray([[0.3, -0.2], [0.5, 0.1]])
    trace = slopes.trace() * equation.lame
    stress = trace * np.eye(2) + equation.shear * (slopes + slopes.T)
    exact = {"ux": lambda x: slopes[0] @ x + 0.1, "uy": lambda x: slopes[1] @ x}
    normals = {"x-": (-1.0, 0.0), "x+": (1.0, 0.0), "y-": (0.0, -1.0), "y+": (0.0, 1.0)}
    boundary: dict[str, Any] = {}
    for face, normal in normals.items():
        traction = stress @ np.asarray(normal)
        boundary[face] = {"ux": inflow(float(traction[0])), "uy": inflow(float(traction[1]))}
    boundary["x-"] = {name: dirichlet(f) for name, f in exact.items()}
    elements = Elements(mesh, degree)
    fields = solve(make_problem(equation, mesh, boundary=boundary), elements, Galerkin()).fields
    wanted = {"ux": elements.nodes @ slopes[0] + 0.1, "uy": elements.nodes @ slopes[1]}
    return float(max(np.abs(np.asarray(fields[name]) - wanted[name]).max() for name in wanted))


@limit("elasticity")
def components_apart() -> Iterable[Row]:
    """With l = -m and the displacement given all around, both components fulfill -m lap u = f.

    The integrals of div u div v and of the product of the transposed gradients are the same where v vanishes at the
    boundary, also for elements.
    """
    mesh = uneven_square()
    held = {face: dirichlet(0.2) for face in mesh.faces}
    together = make_problem(Elasticity(-2.0, 2.0, wave, 1.0), mesh, boundary=held)
    apart = make_problem(Poisson(lambda x: wave(x) / 2.0), mesh, boundary=held)
    found = [solve(problem, Elements(mesh, 1), Galerkin()).fields for problem in (together, apart)]
    difference = float(np.abs(np.asarray(found[0]["ux"] - found[1]["u"])).max())
    yield Row("l = -m: difference from the Poisson equation", difference, 0.0, 1e-12)


@published("elasticity")
def patch() -> Iterable[Row]:
    """A constant stress is exact on any straight mesh (B. M. Irons, A. Razzaque, 1972)."""
    yield Row("patch test, P1: error of a linear displacement", patch_test(uneven_square(), 1), 0.0, 1e-12)


def uneven_square() -> Mesh:
    """The unit square with inner points moved, so that no two cells are alike."""
    mesh = rectangle(cells=(4, 4))
    inside = np.all((mesh.points > 0) & (mesh.points < 1), axis=1)
    moved = mesh.points + 0.08 * inside[:, None] * np.sin(9.0 * mesh.points[:, ::-1] + 1.0)
    return Mesh(moved, mesh.cells, mesh.parts)


def kirsch_stress(x: Any, radius: float = 1.0, tension: float = 1.0) -> tuple[Any, Any, Any]:
    """(s_xx, s_yy, s_xy) at points x, shape (..., 2), of an infinite plate with a hole under tension along x.

    G. Kirsch, Z. VDI 42 (1898) 797; S. P. Timoshenko, J. N. Goodier, Theory of Elasticity (1951), eq. (61), here in
    Cartesian components.
    """
    r2 = x[..., 0] ** 2 + x[..., 1] ** 2
    c2, s2 = (x[..., 0] ** 2 - x[..., 1] ** 2) / r2, 2 * x[..., 0] * x[..., 1] / r2
    c4, s4, q = c2**2 - s2**2, 2 * s2 * c2, radius**2 / r2
    xx = 1 - q * (1.5 * c2 + c4) + 1.5 * q**2 * c4
    yy = -q * (0.5 * c2 - c4) - 1.5 * q**2 * c4
    xy = -q * (0.5 * s2 + s4) + 1.5 * q**2 * s4
    return tension * xx, tension * yy, tension * xy


def kirsch_plate(cells: int, degree: int = 2) -> tuple[Problem, Elements]:
    """A quarter of a plate of width 8 with a hole of radius 1: free at the hole, symmetric, and at the outer edges
    loaded with the tractions of the infinite plate, so that its stresses are the exact ones."""
    mesh = quarter_plate_with_hole(1.0, 4.0, (cells, cells), degree=degree, grading=6.0)
    traction = [lambda x, i=i: kirsch_stress(x)[i] for i in range(3)]
    boundary = {
        "hole": inflow(0.0),
        "x-": {"ux": dirichlet(0.0), "uy": inflow(0.0)},
        "y-": {"ux": inflow(0.0), "uy": dirichlet(0.0)},
        "x+": {"ux": inflow(traction[0]), "uy": inflow(traction[2])},
        "y+": {"ux": inflow(traction[2]), "uy": inflow(traction[1])},
    }
    return make_problem(Elasticity.plane_stress(1.0, 0.3), mesh, boundary=boundary), Elements(mesh, degree)


def nodal_stress(problem: Problem, elements: Elements, fields: Any) -> np.ndarray:
    """(s_xx, s_yy, s_xy) at the nodes, shape (3, n), for constant coefficients."""
    lame, shear = problem.equation.lame, problem.equation.shear
    x, y = elements.nodal_slopes(fields["ux"]), elements.nodal_slopes(fields["uy"])
    trace = lame * (x[:, 0] + y[:, 1])
    return np.stack([trace + 2 * shear * x[:, 0], trace + 2 * shear * y[:, 1], shear * (x[:, 1] + y[:, 0])])


def stress_concentration(cells: int, degree: int = 2) -> float:
    """The stress at the side of the hole over the tension far away: 3 in an infinite plate."""
    problem, elements = kirsch_plate(cells, degree)
    stress = nodal_stress(problem, elements, solve(problem, elements, Galerkin()).fields)
    return float(stress[0][np.argmin(np.linalg.norm(elements.nodes - [0.0, 1.0], axis=1))])


@published("elasticity")
def plate_with_a_hole() -> Iterable[Row]:
    """Kirsch's stress concentration with P2 elements on 16 x 16 curved cells."""
    found = stress_concentration(16)
    yield Row("stress concentration at a circular hole (Kirsch 1898)", found, TENSION_FACTOR, 0.015)


@published("elasticity", long=True)
def convergence_at_the_hole() -> Iterable[Row]:
    """The error of the stress concentration falls with order 2, that of slopes of P2 elements."""
    counts = (6, 10, 16, 26)
    found = np.abs(np.asarray([stress_concentration(n) for n in counts]) - TENSION_FACTOR)
    order = observed_order([1.0 / n for n in counts], found)
    yield Row("order of the stress concentration, P2", order, 2.0, 0.2)
    yield Row("stress concentration on 26 x 26 cells", TENSION_FACTOR - float(found[-1]), TENSION_FACTOR, 0.006)


RATE_ON_RING = 3.1230309195957
"""The first root k of J0(k) Y0(2 k) - J0(2 k) Y0(k)."""


def cooling_ring(cells: int) -> tuple[Problem, Elements, Callable[[Any], np.ndarray]]:
    """Heat leaves a ring 1 < r < 2 through cold circles: u = exp(-D k^2 t) (J0(k r) Y0(k) - J0(k) Y0(k r)).

    The last entry gives the start at points (..., 2).
    """
    from scipy.special import j0, y0

    def start(x: Any) -> np.ndarray:
        r = RATE_ON_RING * np.linalg.norm(np.asarray(x), axis=-1)
        return j0(r) * y0(RATE_ON_RING) - j0(RATE_ON_RING) * y0(r)

    mesh = ring(1.0, 2.0, (cells, 8 * cells))
    elements = Elements(mesh, 2)
    cold = {"inner": dirichlet(0.0), "outer": dirichlet(0.0)}
    at_nodes: Any = start(elements.nodes)
    return make_problem(Heat(0.1), mesh, boundary=cold, initial={"u": at_nodes}, horizon=0.5), elements, start


def ring_error(cells: int, dt: float) -> float:
    """The relative L2 error of the cooling ring at t = 0.5."""
    problem, elements, start = cooling_ring(cells)
    decay = np.exp(-0.1 * RATE_ON_RING**2 * 0.5)
    found = solve(problem, elements, TrBdf2(dt=dt), times=[0.5]).fields["u"][0]
    size = elements.error(np.zeros(elements.shape), lambda x: decay * start(x))
    return elements.error(found, lambda x: decay * start(x)) / size


@published("heat", long=True)
def cooling_of_a_ring() -> Iterable[Row]:
    """A Bessel function on a ring decays at the rate of the first eigenvalue (Carslaw, Jaeger 1959, 13.5)."""
    errors_ = np.asarray([ring_error(n, 0.05 / n**1.5) for n in (2, 3, 4, 6)])
    order = observed_order([0.5, 1 / 3, 0.25, 1 / 6], errors_)
    yield Row("ring, P2 and steps of h^(3/2): order in L2", order, 3.0, 0.3)
    yield Row("ring with 6 cells across: relative error", float(errors_[-1]), 0.0, 1e-3)
