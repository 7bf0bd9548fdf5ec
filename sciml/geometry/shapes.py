"""Meshes made without a mesh generator: rectangles, bricks, rings and plates with a hole."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from sciml.errors import ConfigError
from sciml.geometry.mesh import Mesh

Map = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


def rectangle(
    lower: Sequence[float] = (0.0, 0.0), upper: Sequence[float] = (1.0, 1.0), cells: Sequence[int] = (8, 8)
) -> Mesh:
    """[lower, upper] in the plane, each of the cells (n_x, n_y) cut into two triangles; parts x-, x+, y-, y+."""

    def place(u: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return lower[0] + (upper[0] - lower[0]) * u, lower[1] + (upper[1] - lower[1]) * v

    return mapped(place, cells, sides=("x-", "x+", "y-", "y+"))


def ring(inner: float, outer: float, cells: Sequence[int] = (4, 24), *, degree: int = 2) -> Mesh:
    """The ring inner < r < outer with (radial, around) cells; parts `inner` and `outer`, curved sides if degree 2."""
    _check_radii(inner, outer)

    def place(u: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        radius = inner + (outer - inner) * u
        return radius * np.cos(2 * np.pi * v), radius * np.sin(2 * np.pi * v)

    return mapped(place, cells, sides=("inner", "outer", "", ""), closed=True, degree=degree)


def plate_with_hole(
    radius: float, half_width: float, cells: Sequence[int] = (8, 32), *, degree: int = 2, grading: float = 1.0
) -> Mesh:
    """The square |x|, |y| < half_width without the disc r < radius; parts hole, x-, x+, y-, y+.

    `cells`: (from the hole outwards, around in multiples of 8); `grading`: how many times larger the outermost cells
    are than those at the hole, in the direction away from it. Sides on the circle are curved if degree 2.
    """
    _check_radii(radius, half_width)
    if cells[1] % 8:
        raise ConfigError("the corners of the plate need points", expected="a multiple of 8 cells around", got=cells[1])
    place = _from_circle_to_square(radius, half_width, grading, 2 * np.pi)
    whole = mapped(place, cells, sides=("hole", "outside", "", ""), closed=True, degree=degree)
    return Mesh(whole.points, whole.cells, {"hole": whole.parts["hole"], **_sides(whole, half_width)})


def quarter_plate_with_hole(
    radius: float, half_width: float, cells: Sequence[int] = (8, 8), *, degree: int = 2, grading: float = 1.0
) -> Mesh:
    """The quarter x, y > 0 of `plate_with_hole`: `cells` (outwards, around in multiples of 2); parts hole, x- and y-
    (the planes of symmetry), x+, y+."""
    _check_radii(radius, half_width)
    if cells[1] % 2:
        raise ConfigError("the corner of the plate needs a point", expected="an even number around", got=cells[1])
    place = _from_circle_to_square(radius, half_width, grading, np.pi / 2)
    whole = mapped(place, cells, sides=("hole", "outside", "y-", "x-"), degree=degree)
    outside = {name: f for name, f in _sides(whole, half_width).items() if name[1] == "+"}
    own = {name: whole.parts[name] for name in ("hole", "x-", "y-")}
    return Mesh(whole.points, whole.cells, own | outside)


def _check_radii(inner: float, outer: float) -> None:
    if not 0 < inner < outer:
        raise ConfigError("the hole does not fit into the domain", expected="0 < inner < outer", got=(inner, outer))


def _from_circle_to_square(radius: float, half: float, grading: float, angle: float) -> Map:
    def place(u: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        along = u if grading == 1 else (grading**u - 1) / (grading - 1)
        x, y = np.cos(angle * v), np.sin(angle * v)
        far = half / np.maximum(np.abs(x), np.abs(y))
        distance = radius + (far - radius) * along
        return distance * x, distance * y

    return place


def _sides(mesh: Mesh, half: float) -> dict[str, np.ndarray]:
    """The part `outside` of a square, divided among its sides."""
    facets = mesh.parts["outside"]
    middles = mesh.points[facets].mean(axis=1) / half
    found = {}
    for (axis, name), (sign, side) in itertools.product(enumerate("xy"), ((-1, "-"), (1, "+"))):
        found[name + side] = facets[np.abs(middles[:, axis] - sign) < 1e-9]
    return {name: rows for name, rows in found.items() if len(rows)}


def mapped(
    place: Map, cells: Sequence[int], *, sides: tuple[str, str, str, str], closed: bool = False, degree: int = 1
) -> Mesh:
    """The image of the unit square under `place`, arrays (u, v) -> (x, y), cut into 2 n_u n_v triangles.

    `sides` names the images of u = 0, u = 1, v = 0, v = 1; with `closed` the last two coincide. With degree 2 the
    middles of the edges lie on the image, too.
    """
    n, m = cells
    if min(n, m) < 1 or (closed and m < 3):
        raise ConfigError("a mesh needs at least one cell each way, three around", got=tuple(cells))
    across, around = degree * n + 1, degree * m + (not closed)
    grid = np.meshgrid(np.arange(across) / (degree * n), np.arange(around) / (degree * m), indexing="ij")
    points = np.stack([np.ravel(c) for c in place(*grid)], axis=-1)
    number = np.arange(across * around).reshape(across, around)
    if closed:
        number = np.concatenate([number, number[:, :1]], axis=1)
    triangles = []
    for i, j in itertools.product(range(n), range(m)):
        block = number[degree * i : degree * (i + 1) + 1, degree * j : degree * (j + 1) + 1]
        triangles += _two_triangles(block, falling=bool((i + j) % 2))
    corner = number[::degree, ::degree]
    borders = (corner[0], corner[-1], corner[:, 0], corner[:, -1])
    parts = {s: np.stack([b[:-1], b[1:]], axis=1) for s, b in zip(sides, borders, strict=True) if s}
    return Mesh(points, np.asarray(triangles), parts)


def _two_triangles(block: np.ndarray, *, falling: bool) -> list[list[int]]:
    """Corners, then for a 3 x 3 block the middles of the edges 01, 12, 02."""
    last = len(block) - 1
    lower, upper = [(0, 0), (last, 0), (last, last)], [(0, 0), (last, last), (0, last)]
    if falling:
        lower, upper = [(0, 0), (last, 0), (0, last)], [(last, 0), (last, last), (0, last)]
    found = []
    for corners in (lower, upper):
        pairs = [(0, 1), (1, 2), (0, 2)] if last == 2 else []
        middles = [tuple((corners[a][k] + corners[b][k]) // 2 for k in (0, 1)) for a, b in pairs]
        found.append([int(block[place]) for place in (*corners, *middles)])
    return found


def brick(
    lower: Sequence[float] = (0.0, 0.0, 0.0), upper: Sequence[float] = (1.0, 1.0, 1.0), cells: Sequence[int] = (4, 4, 4)
) -> Mesh:
    """[lower, upper] in space, each of the cells cut into six tetrahedra (Kuhn); parts x-, x+, y-, y+, z-, z+."""
    axes = [np.linspace(a, b, n + 1) for a, b, n in zip(lower, upper, cells, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    shape = tuple(len(axis) for axis in axes)
    starts = np.stack(np.meshgrid(*(np.arange(n) for n in cells), indexing="ij"), axis=-1).reshape(-1, 3)
    tetrahedra = []
    for order in itertools.permutations(range(3)):
        corners = np.concatenate([np.zeros((1, 3), int), np.cumsum(np.eye(3, dtype=int)[list(order)], axis=0)])
        tetrahedra.append(np.ravel_multi_index(tuple((starts[:, None] + corners).transpose(2, 0, 1)), shape))
    mesh = Mesh(points, np.concatenate(tetrahedra), {})
    facets, parts = mesh.boundary_facets, {}
    for axis, name in enumerate("xyz"):
        for side, bound in (("-", lower[axis]), ("+", upper[axis])):
            parts[name + side] = facets[np.all(points[facets][:, :, axis] == bound, axis=1)]
    return Mesh(mesh.points, mesh.cells, parts)
