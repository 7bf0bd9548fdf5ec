"""Cases in which an equation for waves or reactions becomes another one: their texts give the same numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from sciml.calculus import Spectral
from sciml.domain import Grid
from sciml.equations.allen_cahn import AllenCahn
from sciml.equations.base import add, remainder, stiff_part
from sciml.equations.fisher_kpp import FisherKpp
from sciml.equations.fitzhugh_nagumo import FitzHughNagumo
from sciml.equations.ginzburg_landau import GinzburgLandau
from sciml.equations.gray_scott import GrayScott
from sciml.equations.heat import Heat
from sciml.equations.inviscid_burgers import InviscidBurgers
from sciml.equations.korteweg_de_vries import KortewegDeVries
from sciml.equations.maxwell import MaxwellTE, MaxwellTM
from sciml.equations.schroedinger import Schroedinger
from sciml.equations.wave import Wave
from sciml.functions import evaluate_on
from sciml.solvers.published import Row, limit
from sciml.solvers.trial import box, harmonics

POINTS = 24
EXACT = 1e-12
NEARLY = 1e-6  # where the limit is approached, not reached


def right_hand_side(equation: Any, names: Mapping[str, int], dim: int) -> dict[str, np.ndarray]:
    """u_t by field on a grid, for the fields numbered in `names` (equal numbers are equal fields)."""
    grid = Grid(box(dim), (POINTS,) * dim)
    d = Spectral(grid, time=0.0)
    fields = {
        name: d.field(evaluate_on(harmonics(dim, seed=31 + seed).at_start, jnp.asarray(grid.points)))
        for name, seed in names.items()
    }
    terms = add(stiff_part(equation, fields, d), remainder(equation, fields, d))
    return {name: np.asarray(d.values(term)) for name, term in terms.items()}


def difference(first: Any, second: Any, pairs: Mapping[str, str], *, dim: int = 1) -> float:
    """Between u_t of two equations on the same state, over its largest value; `pairs` are fields of both."""
    left = right_hand_side(first, {a: i for i, a in enumerate(pairs)}, dim)
    right = right_hand_side(second, {b: i for i, b in enumerate(pairs.values())}, dim)
    size = max(np.abs(right[b]).max() for b in pairs.values())
    return float(max(np.abs(left[a] - right[b]).max() for a, b in pairs.items()) / size)


def _heat_of_each(equation: Any, diffusivities: Mapping[str, float]) -> float:
    found = right_hand_side(equation, {name: 0 for name in diffusivities}, 1)
    expected = {name: right_hand_side(Heat(value), {"u": 0}, 1)["u"] for name, value in diffusivities.items()}
    return float(max(np.abs(found[n] - expected[n]).max() / np.abs(expected[n]).max() for n in expected))


@limit("allen_cahn")
def allen_cahn() -> Iterator[Row]:
    """Without reaction."""
    yield Row("r = 0 is heat, difference", difference(AllenCahn(0.2, 0.0), Heat(0.2), {"u": "u"}), 0.0, EXACT)


@limit("fisher_kpp")
def fisher_kpp() -> Iterator[Row]:
    """Without growth."""
    yield Row("r = 0 is heat, difference", difference(FisherKpp(0.2, 0.0), Heat(0.2), {"u": "u"}), 0.0, EXACT)


@limit("fitzhugh_nagumo")
def fitzhugh_nagumo() -> Iterator[Row]:
    """Without reactions."""
    found = _heat_of_each(FitzHughNagumo(0.2, 0.3, 0.1, 0.0), {"u": 0.2, "v": 0.3})
    yield Row("r = 0 is heat for each field, difference", found, 0.0, EXACT)


@limit("gray_scott")
def gray_scott() -> Iterator[Row]:
    """Without catalyst nothing but diffusion and refilling is left for u."""
    grid = Grid(box(1), (POINTS,))
    d = Spectral(grid, time=0.0)
    u = d.field(evaluate_on(harmonics(1, seed=31).at_start, jnp.asarray(grid.points)))
    equation, fields = GrayScott(0.2, 0.1, 0.03, 0.06), {"u": u, "v": d.field(jnp.zeros(POINTS))}
    terms = add(stiff_part(equation, fields, d), remainder(equation, fields, d))
    expected = d.values(0.2 * d.laplacian(u)) + equation.feed * (1 - d.values(u))
    found = float(jnp.abs(d.values(terms["u"]) - expected).max() + jnp.abs(d.values(terms["v"])).max())
    yield Row("v = 0 is heat with refilling, difference", found, 0.0, EXACT)


@limit("korteweg_de_vries")
def korteweg_de_vries() -> Iterator[Row]:
    """Without dispersion."""
    found = difference(KortewegDeVries(1.0, 0.0), InviscidBurgers(1.0), {"u": "u"})
    yield Row("b = 0, a = 1 is inviscid Burgers, difference", found, 0.0, EXACT)


@limit("wave")
def wave() -> Iterator[Row]:
    """Light in two dimensions, with the magnetic field eliminated."""
    yield Row("c = 1/sqrt(e m) is E of maxwell_tm, difference", _light_as_wave(), 0.0, EXACT)


def _light_as_wave() -> float:
    """E_tt of Maxwell's equations for H = 0 against v_t of the wave equation, over its largest value."""
    grid = Grid(box(2), (POINTS,) * 2)
    d = Spectral(grid, time=0.0)
    field = d.field(evaluate_on(harmonics(2, seed=31).at_start, jnp.asarray(grid.points)))
    light, zero = MaxwellTM(2.0, 0.125), d.field(jnp.zeros(grid.shape))
    rates = stiff_part(light, {"ez": field, "hx": zero, "hy": zero}, d)
    twice = np.asarray(d.values(stiff_part(light, rates, d)["ez"]))
    expected = np.asarray(d.values(stiff_part(Wave(2.0), {"u": field, "v": zero}, d)["v"]))
    return float(np.abs(twice - expected).max() / np.abs(expected).max())


@limit("schroedinger")
def schroedinger() -> Iterator[Row]:
    """Dispersion alone."""
    yield Row("is ginzburg_landau for D, g -> 0 with D b and -g c fixed, difference", _dispersion_alone(), 0.0, NEARLY)


def _dispersion_alone() -> float:
    small = 1e-9
    turning = GinzburgLandau(0.0, small, small, 0.5 / small, -1.0 / small)
    return difference(turning, Schroedinger(0.5, 1.0), {"real": "real", "imaginary": "imaginary"})


@limit("ginzburg_landau")
def ginzburg_landau() -> Iterator[Row]:
    """Diffusion alone, and dispersion alone."""
    plain = GinzburgLandau(0.0, 0.2, 0.0, 0.0, 0.0)
    found = _heat_of_each(plain, {"real": 0.2, "imaginary": 0.2})
    yield Row("m = g = b = 0 is heat for each part, difference", found, 0.0, EXACT)
    yield Row("D, g -> 0 with D b and -g c fixed is Schroedinger, difference", _dispersion_alone(), 0.0, NEARLY)


@limit("maxwell_tm")
def maxwell_tm() -> Iterator[Row]:
    """Exchanged fields, and the magnetic field eliminated."""
    yield Row("E is a wave of speed 1/sqrt(e m), difference", _light_as_wave(), 0.0, EXACT)
    found = _dual(MaxwellTM(2.0, 0.5), MaxwellTE(0.5, 2.0))
    yield Row("H -> -E, E -> H, e and m exchanged is maxwell_te, difference", found, 0.0, EXACT)


@limit("maxwell_te")
def maxwell_te() -> Iterator[Row]:
    """Exchanged fields."""
    found = _dual(MaxwellTM(0.5, 2.0), MaxwellTE(2.0, 0.5))
    yield Row("H -> E, E -> -H, e and m exchanged is maxwell_tm, difference", found, 0.0, EXACT)


def _dual(first: MaxwellTM, second: MaxwellTE) -> float:
    """Largest difference of the two texts; ez is hz, and h in the plane is -e."""
    tm = right_hand_side(first, {"ez": 0, "hx": 1, "hy": 2}, 2)
    grid = Grid(box(2), (POINTS,) * 2)
    d = Spectral(grid, time=0.0)
    values = [evaluate_on(harmonics(2, seed=31 + i).at_start, jnp.asarray(grid.points)) for i in range(3)]
    fields = {"hz": d.field(values[0]), "ex": d.field(-values[1]), "ey": d.field(-values[2])}
    te = {name: np.asarray(d.values(term)) for name, term in stiff_part(second, fields, d).items()}
    pairs = ((tm["ez"], te["hz"]), (tm["hx"], -te["ex"]), (tm["hy"], -te["ey"]))
    return float(max(np.abs(a - b).max() for a, b in pairs))
