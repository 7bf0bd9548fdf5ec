"""The lid-driven cavity against published values and its own refinement."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from comparison import assert_close

from sciml.errors import ConfigError
from sciml.solvers.cavity import lid_driven_cavity
from sciml.solvers.published_elliptic import center_lines, extrapolated

REFINED = {"u in the center": -0.2091, "least u": -0.2140, "least v": -0.2538, "largest v": 0.1796}
"""Reynolds number 100, C. H. Marchi, R. Suero, L. K. Araki, J. Braz. Soc. Mech. Sci. Eng. 31 (2009) 186, to four
digits; 33 and 65 points extrapolate to -0.2090, -0.2138, -0.2534, 0.1791. The table of Ghia et al. (1982) has -0.20581,
-0.21090, -0.24533: up to 3.4 percent less."""


@cache
def flow(n):
    return lid_driven_cavity(100.0, n)


def test_reynolds_100_by_refinement():
    """Extrapolated from 17 and 33 points; the least v has its error of order 4 from the boundary layer."""
    found = extrapolated(flow(17), flow(33))
    for name, expected in REFINED.items():
        assert_close(found[name], expected, rtol=6e-3, dtype=False)
    ghia = {"u in the center": -0.20581, "least u": -0.21090, "least v": -0.24533}
    for name, expected in ghia.items():
        assert_close(found[name], expected, rtol=0.045, dtype=False)


def test_the_flow_is_what_it_should_be():
    """The walls hold the fluid, the lid drags it along, and what goes up the walls comes down: no net flow."""
    cavity = flow(33)
    u, v = cavity.velocity
    assert_close(u[:, -1], np.ones(33), rtol=0, atol=1e-12)
    assert np.abs(v[0]).max() < 1e-12 and np.abs(u[:, 0]).max() < 1e-12
    assert cavity.stream.min() < -0.1 and cavity.stream[16, 24] < -0.09  # one clockwise vortex, above the center
    net = np.trapezoid(u[16], cavity.grid.axes[1])
    assert abs(net) < 2e-3  # trapezoidal rule, h^2 = 1e-3


def test_bad_sizes_are_refused():
    with pytest.raises(ConfigError, match="9 points"):
        lid_driven_cavity(100.0, 5)


@pytest.mark.long
def test_order_at_reynolds_100():
    """Order 2: each halving divides the change of u in the center by four."""
    values = [center_lines(flow(n))["u in the center"] for n in (17, 33, 65)]
    changes = np.abs(np.diff(values))
    assert 1.8 < np.log2(changes[0] / changes[1]) < 2.3
