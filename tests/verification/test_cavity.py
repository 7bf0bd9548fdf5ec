"""The lid-driven cavity against published values and its own refinement."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from comparison import assert_close

from sciml.errors import ConfigError
from sciml.solvers.cavity import lid_driven_cavity
from sciml.solvers.published_elliptic import CAVITY_AT_100, center_lines, extrapolated


@cache
def flow(n):
    return lid_driven_cavity(100.0, n)


def test_reynolds_100_by_refinement():
    """Extrapolated from 17 and 33 points; the least v has its error of order 4 from the boundary layer."""
    found = extrapolated(flow(17), flow(33))
    for name, expected in CAVITY_AT_100.items():
        assert_close(found[name], expected, rtol=6e-3, dtype=False)


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
