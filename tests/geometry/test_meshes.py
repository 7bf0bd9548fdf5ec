"""Meshes: shapes made here, gmsh files, and what is wrong with a mesh said in words."""

from __future__ import annotations

import dataclasses
import sys

import numpy as np
import pytest
from comparison import assert_close

from sciml.errors import ConfigError, DataError
from sciml.geometry import Mesh, brick, plate_with_hole, quarter_plate_with_hole, rectangle, ring
from sciml.solvers.finite_element import Elements

CORNERS = np.asarray([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
TWO = np.asarray([[0, 1, 2], [0, 2, 3]])

# the unit square of two triangles in gmsh's format 2.2, point 5 being the center of an arc that no cell uses
SQUARE = """$MeshFormat
2.2 0 8
$EndMeshFormat
$PhysicalNames
2
1 7 "wall"
2 9 "body"
$EndPhysicalNames
$Nodes
5
1 0 0 0
2 1 0 0
3 1 1 0
4 0 1 0
5 3 3 0
$EndNodes
$Elements
4
1 1 2 7 1 1 2
2 1 2 8 2 2 3
3 2 2 9 1 1 2 3
4 2 2 9 1 1 3 4
$EndElements
"""


@pytest.mark.parametrize(
    ("mesh", "size", "parts"),
    [
        (rectangle((0.0, 1.0), (2.0, 4.0), (2, 3)), 6.0, {"x-": 3.0, "x+": 3.0, "y-": 2.0, "y+": 2.0}),
        (brick(cells=(1, 2, 1)), 1.0, {f"{axis}{side}": 1.0 for axis in "xyz" for side in "-+"}),
        (ring(1.0, 2.0, (2, 24)), 3 * np.pi, {"inner": 2 * np.pi, "outer": 4 * np.pi}),
        (plate_with_hole(1.0, 2.0, (2, 24)), 16 - np.pi, {"hole": 2 * np.pi, "x-": 4.0, "y+": 4.0}),
        (quarter_plate_with_hole(1.0, 2.0, (2, 6), grading=3.0), 4 - np.pi / 4, {"hole": np.pi / 2, "x-": 1.0}),
    ],
)
def test_sizes_of_shapes(mesh, size, parts):
    """Curved sides are parabolas: the circle's length is off by (angle of a side)^4/1000."""
    elements = Elements(mesh, 2)
    assert_close(float(elements.cells.weights.sum()), size, rtol=1e-5)
    for name, length in parts.items():
        assert_close(float(elements.facets[name].weights.sum()), length, rtol=1e-5)
    outward = sum((f.normals * f.points * f.weights[..., None]).sum() for f in elements.facets.values())
    assert_close(float(outward), mesh.dim * float(elements.cells.weights.sum()), rtol=1e-12)


def test_a_gmsh_file_with_its_names(tmp_path):
    (tmp_path / "square.msh").write_text(SQUARE)
    mesh = Mesh.from_file(tmp_path / "square.msh")
    assert repr(mesh) == "Mesh(4 points, 2 triangles, parts wall, 8, rest)"
    assert mesh.parts["wall"].tolist() == [[0, 1]] and mesh.parts["8"].tolist() == [[1, 2]]
    assert_close(mesh.points, CORNERS, rtol=0.0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda text: text.replace("3 2 2 9 1 1 2 3\n4 2 2 9 1 1 3 4\n", "").replace("\n4\n1 1", "\n2\n1 1"),
            "no triangles",
        ),
        (lambda text: text.replace("3 1 1 0", "3 1 1 0.5"), "plane"),
        (lambda text: text[: len(text) // 2], "cannot be read"),
        (
            lambda text: text.replace("3 2 2 9 1 1 2 3\n4 2 2 9 1 1 3 4", "3 2 2 9 1 1 2 3\n4 3 2 9 1 1 2 3 4"),
            "neither triangles",
        ),
        (lambda text: text.replace("1 1 2 7 1 1 2", "1 1 2 7 1 1 5"), "not attached"),
    ],
)
def test_files_that_will_not_do(tmp_path, change, words):
    (tmp_path / "mesh.msh").write_text(change(SQUARE))
    with pytest.raises(DataError, match=words):
        Mesh.from_file(tmp_path / "mesh.msh")


def test_a_missing_file_and_a_missing_module(tmp_path, monkeypatch):
    (tmp_path / "other.msh").write_text(SQUARE)
    with pytest.raises(DataError, match="no mesh file") as caught:
        Mesh.from_file(tmp_path / "mesh.msh")
    assert "other.msh" in str(caught.value)
    monkeypatch.setitem(sys.modules, "meshio", None)
    with pytest.raises(ConfigError, match="meshio") as missing:
        Mesh.from_file(tmp_path / "other.msh")
    assert missing.value.fix == "pip install 'sciml[fem]'"
    monkeypatch.setitem(sys.modules, "skfem", None)
    with pytest.raises(ConfigError, match=r"sciml\[fem\]"):
        _ = Elements(rectangle(cells=(2, 2))).nodes


@pytest.mark.parametrize(
    ("points", "cells", "parts", "words"),
    [
        (CORNERS[:, :1], TWO, {}, "triangles in the plane"),
        (CORNERS, TWO + 1, {}, "does not exist"),
        (CORNERS * [[1.0], [np.nan], [1.0], [1.0]], TWO, {}, "not finite"),
        (CORNERS, TWO[:1], {}, "belong to no cell"),
        (CORNERS * [[1.0, 0.0]], TWO, {}, "flat"),
        (CORNERS, np.concatenate([TWO, TWO[:1], TWO[:1]]), {}, "share a facet"),
        (CORNERS, TWO, {"cut": [[0, 2]]}, "does not lie on the boundary"),
        (CORNERS, TWO, {"a": [[0, 1]], "b": [[1, 0]]}, "belongs to the parts"),
    ],
)
def test_meshes_that_will_not_do(points, cells, parts, words):
    with pytest.raises(ConfigError, match=words):
        Mesh(points, cells, parts)


def test_a_curved_cell_that_folds_over():
    fine, folded = ring(1.0, 2.0, (1, 8)), ring(1.0, 2.0, (1, 8))
    middles = fine.cells[:, 3:]
    points = folded.points.copy()
    points[middles[0, 0]] = points[folded.cells[0, 2]] * 1.2
    with pytest.raises(ConfigError, match="fold over"):
        _ = Elements(Mesh(points, folded.cells, folded.parts)).nodes
    assert len(Elements(fine).nodes) == len(fine.points)


def test_clockwise_cells_are_turned_and_equal_meshes_are_equal():
    turned = Mesh(CORNERS, TWO[:, [1, 0, 2]], {"bottom": [[1, 0]]})
    straight = Mesh(CORNERS, TWO, {"bottom": [[0, 1]]})
    assert turned == straight and hash(turned) == hash(straight) and turned != rectangle(cells=(1, 1))
    assert straight.faces == ("bottom", "rest")
    with pytest.raises(dataclasses.FrozenInstanceError):
        straight.unit = "km"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ring(2.0, 1.0), "does not fit"),
        (lambda: plate_with_hole(1.0, 2.0, (2, 12)), "multiple of 8"),
        (lambda: quarter_plate_with_hole(1.0, 2.0, (2, 3)), "even number"),
        (lambda: rectangle(cells=(0, 2)), "at least one cell"),
        (lambda: Elements(rectangle(), 3), "degree 1 or 2"),
        (lambda: Elements(rectangle(), 1).at(np.zeros(81), [[2.0, 2.0]]), "outside"),
    ],
)
def test_impossible_shapes_and_elements(make, words):
    with pytest.raises(ConfigError, match=words):
        make()


def test_arrays_of_a_mesh_cannot_change_behind_its_digest():
    points, cells = np.asarray([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), np.asarray([[0, 1, 2]])
    mesh = Mesh(points, cells, {})
    points *= 2.0
    assert mesh.points.max() == 1.0
    with pytest.raises(ValueError, match="read-only"):
        mesh.points[0] = 1.0
