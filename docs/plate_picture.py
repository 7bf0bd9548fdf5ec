"""Draws gallery/plate.png, the tension around a hole:   python docs/plate_picture.py"""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np

from sciml.solvers.finite_element import Galerkin
from sciml.solvers.published_mesh import kirsch_plate, nodal_stress
from sciml.solvers.solve import solve

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # after the choice of the backend
from matplotlib.tri import Triangulation


def main() -> None:
    """The tension along x and the mesh, on a quarter of the plate."""
    problem, elements = kirsch_plate(12)
    stress = nodal_stress(problem, elements, solve(problem, elements, Galerkin()).fields)[0]
    cells, corners = elements.mesh.cells, elements.mesh.points
    quarters = np.concatenate([cells[:, part] for part in ([0, 3, 5], [3, 1, 4], [5, 4, 2], [3, 4, 5])])
    values = elements.at(stress, corners)
    figure, axes = plt.subplots(figsize=(4.6, 4.0), layout="constrained")
    (x, y), options = corners.T, {"shading": "gouraud", "cmap": "RdBu_r", "vmin": -1, "vmax": 3}
    shown = axes.tripcolor(Triangulation(x, y, quarters), values, **options)
    axes.triplot(x, y, cells[:, :3], color="black", linewidth=0.2)
    figure.colorbar(shown, ax=axes, label="tension along x")
    axes.set_aspect("equal")
    figure.savefig(Path(__file__).parent / "gallery" / "plate.png", dpi=80, metadata={"Software": None})


if __name__ == "__main__":
    main()
