"""PDEs, one file each, written once over the abstract calculus. The files are imported when their name is used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from sciml.equations.base import Equation, Evolution, Field, FieldSet, Steady, equation, field_names, parameter

if TYPE_CHECKING:
    from sciml.equations.advection import Advection
    from sciml.equations.allen_cahn import AllenCahn
    from sciml.equations.burgers import Burgers
    from sciml.equations.cahn_hilliard import CahnHilliard
    from sciml.equations.conservation import ConservationLaw
    from sciml.equations.darcy import Darcy
    from sciml.equations.elasticity import Elasticity
    from sciml.equations.euler import Euler1D, Euler2D
    from sciml.equations.fisher_kpp import FisherKpp
    from sciml.equations.fitzhugh_nagumo import FitzHughNagumo
    from sciml.equations.ginzburg_landau import GinzburgLandau
    from sciml.equations.gray_scott import GrayScott
    from sciml.equations.heat import Heat
    from sciml.equations.helmholtz import Helmholtz
    from sciml.equations.inviscid_burgers import InviscidBurgers
    from sciml.equations.korteweg_de_vries import KortewegDeVries
    from sciml.equations.kuramoto_sivashinsky import KuramotoSivashinsky
    from sciml.equations.maxwell import MaxwellTE, MaxwellTM
    from sciml.equations.navier_stokes import NavierStokes2D, NavierStokes3D
    from sciml.equations.navier_stokes_vorticity import NavierStokesVorticity
    from sciml.equations.poisson import Poisson
    from sciml.equations.schroedinger import Schroedinger
    from sciml.equations.shallow_water import ShallowWater1D, ShallowWater2D
    from sciml.equations.wave import Wave

_MODULES = {
    "Advection": "advection",
    "AllenCahn": "allen_cahn",
    "Burgers": "burgers",
    "CahnHilliard": "cahn_hilliard",
    "ConservationLaw": "conservation",
    "Darcy": "darcy",
    "Elasticity": "elasticity",
    "Euler1D": "euler",
    "Euler2D": "euler",
    "FisherKpp": "fisher_kpp",
    "FitzHughNagumo": "fitzhugh_nagumo",
    "GinzburgLandau": "ginzburg_landau",
    "GrayScott": "gray_scott",
    "Heat": "heat",
    "Helmholtz": "helmholtz",
    "InviscidBurgers": "inviscid_burgers",
    "KortewegDeVries": "korteweg_de_vries",
    "KuramotoSivashinsky": "kuramoto_sivashinsky",
    "MaxwellTE": "maxwell",
    "MaxwellTM": "maxwell",
    "NavierStokes2D": "navier_stokes",
    "NavierStokes3D": "navier_stokes",
    "NavierStokesVorticity": "navier_stokes_vorticity",
    "Poisson": "poisson",
    "Schroedinger": "schroedinger",
    "ShallowWater1D": "shallow_water",
    "ShallowWater2D": "shallow_water",
    "Wave": "wave",
}

__all__ = [
    "Advection",
    "AllenCahn",
    "Burgers",
    "CahnHilliard",
    "ConservationLaw",
    "Darcy",
    "Elasticity",
    "Equation",
    "Euler1D",
    "Euler2D",
    "Evolution",
    "Field",
    "FieldSet",
    "FisherKpp",
    "FitzHughNagumo",
    "GinzburgLandau",
    "GrayScott",
    "Heat",
    "Helmholtz",
    "InviscidBurgers",
    "KortewegDeVries",
    "KuramotoSivashinsky",
    "MaxwellTE",
    "MaxwellTM",
    "NavierStokes2D",
    "NavierStokes3D",
    "NavierStokesVorticity",
    "Poisson",
    "Schroedinger",
    "ShallowWater1D",
    "ShallowWater2D",
    "Steady",
    "Wave",
    "equation",
    "field_names",
    "parameter",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'sciml.equations' has no attribute {name!r}")
    return getattr(importlib.import_module(f"sciml.equations.{_MODULES[name]}"), name)
