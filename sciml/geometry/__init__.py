"""Domains that are not boxes: meshes of triangles and tetrahedra."""

from sciml.geometry.mesh import Mesh
from sciml.geometry.shapes import brick, mapped, plate_with_hole, quarter_plate_with_hole, rectangle, ring

__all__ = ["Mesh", "brick", "mapped", "plate_with_hole", "quarter_plate_with_hole", "rectangle", "ring"]
