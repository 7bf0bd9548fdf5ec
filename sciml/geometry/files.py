"""Meshes from files that meshio reads, such as gmsh's .msh with its physical groups."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from sciml.errors import ConfigError, DataError

CELLS = {"tetra10": 3, "tetra": 3, "triangle6": 2, "triangle": 2}
"""Cell types to the dimension of a mesh made of them; the first type in a file is taken."""
OTHERS = ("quad", "hexahedron", "wedge", "pyramid")
FACETS = {3: ("triangle", "triangle6"), 2: ("line", "line3")}
INSTALL = "pip install 'sciml[fem]'"


def need(module: str) -> ModuleType:
    """An optional module of the extra `fem`; raises `ConfigError` that names the extra if it is missing."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ConfigError(f"meshes need the module {module}", got=f"{error}", fix=INSTALL) from error


def read_mesh(path: Path | str) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Points, cells and named boundary facets of the file, as `Mesh` takes them.

    Physical groups of lines (of triangles in space) become the parts; groups without a name are called by their
    number. The z coordinate of a plane mesh is left out. Points that no cell uses, such as the centers of arcs, are
    left out. Raises `DataError` for a missing or unreadable file or one without triangles and tetrahedra,
    `ConfigError` where meshio is missing.
    """
    path = Path(path)
    if not path.is_file():
        nearby = sorted(p.name for p in path.parent.glob("*.msh")) if path.parent.is_dir() else []
        raise DataError(
            f"there is no mesh file {path}", expected=", ".join(nearby) or "a file written by gmsh", got=path
        )
    meshio = need("meshio")
    try:
        content = meshio.read(path)
    except (Exception, SystemExit) as error:  # meshio ends the process for some unreadable files
        raise DataError(
            f"the mesh file {path} cannot be read", got=f"{type(error).__name__}: {error}", fix="gmsh -2 shape.geo"
        ) from error
    kind = next((kind for kind in CELLS if kind in content.cells_dict), None)
    if kind is None:
        raise DataError(
            f"the mesh file {path} has no triangles and no tetrahedra",
            expected=", ".join(CELLS),
            got=", ".join(content.cells_dict) or "no cells",
            reason="gmsh saves only what belongs to a physical group, if there is any; or only lines were meshed",
            fix='Physical Surface("body") = {1};  and  gmsh -2 shape.geo',
        )
    others = {name for name in content.cells_dict if name.startswith(OTHERS)}
    if others:
        raise DataError(
            f"the mesh file {path} has cells that are neither triangles nor tetrahedra",
            expected=", ".join(CELLS),
            got=", ".join(sorted(others)),
            fix="mesh again without recombination (gmsh: no `Recombine Surface`)",
        )
    return _taken(content, kind, path)


def _taken(content: Any, kind: str, path: Path) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    dim, cells = CELLS[kind], content.cells_dict[kind]
    points = np.asarray(content.points, float)
    if dim == 2 and points.shape[1] == 3:
        if np.ptp(points[:, 2]) > 1e-12 * np.ptp(points):
            raise DataError(f"the triangles of {path} do not lie in a plane z = constant", got="a curved surface")
        points = points[:, :2]
    used, cells = np.unique(cells, return_inverse=True)
    renumbered = np.full(len(points), -1)
    renumbered[used] = np.arange(len(used))
    shape = content.cells_dict[kind].shape
    parts = {name: renumbered[facets] for name, facets in _groups(content, dim).items()}
    for name, facets in parts.items():
        if facets.min() < 0:
            raise DataError(f"the part {name!r} of {path} is not attached to any cell", fix="mesh again")
    return points[used], cells.reshape(shape), parts


def _groups(content: Any, dim: int) -> dict[str, np.ndarray]:
    """Name to corner indices of the facets in each physical group."""
    numbers = content.cell_data_dict.get("gmsh:physical", {})
    names = {int(number): name for name, (number, of_dim) in content.field_data.items() if int(of_dim) == dim - 1}
    found: dict[str, list[np.ndarray]] = {}
    for kind in FACETS[dim]:
        if kind in content.cells_dict and kind in numbers:
            for number in np.unique(numbers[kind]):
                rows = content.cells_dict[kind][numbers[kind] == number][:, :dim]
                found.setdefault(names.get(int(number), str(number)), []).append(rows)
    return {name: np.concatenate(rows) for name, rows in found.items() if name != "0"}
