"""Linear elasticity in the plane."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from sciml.calculus.base import Calculus
from sciml.equations.base import Field, Steady, equation, parameter
from sciml.functions import Coefficient
from sciml.registry import register


@register("equation", "elasticity")
@equation
class Elasticity(Steady):
    """Linear elasticity in the plane, -div s = f with s = l (div u) 1 + m (grad u + grad u^T).

    Symbols: u = (ux, uy) [m] displacement, s [Pa] stress, l and m [Pa] Lame's parameters (m is the shear modulus), f
        [N/m^3] force per volume. From Young's modulus E and Poisson's ratio n: `Elasticity.plane_strain(E, n)` (a
        thick body) or `Elasticity.plane_stress(E, n)` (a thin plate).
    What you should see: stress crowds at holes and corners that point inward; a small circular hole in a plate under
        tension carries three times the tension at its sides.
    Good values: l = m = 1; n below 0.45 (P1 elements lock where l is much larger than m; P2 hardly).
    Limits: l = -m decouples the components into two Poisson equations of coefficient m where m is constant. On meshes
        `inflow` per field prescribes the traction s n, on boxes displacements are given.
    Source: S. P. Timoshenko, J. N. Goodier, Theory of Elasticity (1951), eqs. (18) and (127).
    """

    fields: ClassVar[tuple[Field, ...]] = (Field("ux", unit="m"), Field("uy", unit="m"))
    dims: ClassVar[tuple[int, ...]] = (2,)
    lame: Coefficient = parameter(1.0, unit="Pa", doc="first Lame parameter l")
    shear: Coefficient = parameter(1.0, unit="Pa", above=0.0, doc="shear modulus m")
    force_x: Coefficient = parameter(0.0, unit="N/m^3", doc="x component of the force per volume")
    force_y: Coefficient = parameter(0.0, unit="N/m^3", doc="y component of the force per volume")

    @classmethod
    def plane_strain(cls, young: Any, poisson: Any, force_x: Any = 0.0, force_y: Any = 0.0) -> Self:
        """No displacement across the plane; `young` in Pa, `poisson` below 0.5."""
        lame = young * poisson / ((1 + poisson) * (1 - 2 * poisson))
        return cls(lame, young / (2 * (1 + poisson)), force_x, force_y)

    @classmethod
    def plane_stress(cls, young: Any, poisson: Any, force_x: Any = 0.0, force_y: Any = 0.0) -> Self:
        """No stress across the plane: with l replaced by 2 l m/(l + 2 m)."""
        return cls(young * poisson / (1 - poisson**2), young / (2 * (1 + poisson)), force_x, force_y)

    def residual(self, u: Any, d: Calculus[Any]) -> dict[str, Any]:
        """-div s - f; what one component of u does to the other stands outside of the compact divergence."""
        lame, shear = d.sample(self.lame), d.sample(self.shear)
        along = lame + 2.0 * shear
        x, y = d.gradient(u.ux), d.gradient(u.uy)
        bulk = (lame * d.partial(u.uy, 1), lame * d.partial(u.ux, 0))
        turn = (shear * d.partial(u.uy, 0), shear * d.partial(u.ux, 1))
        into_x = d.divergence((along * x[0], shear * x[1])) + d.partial(bulk[0], 0) + d.partial(turn[0], 1)
        into_y = d.divergence((shear * y[0], along * y[1])) + d.partial(turn[1], 0) + d.partial(bulk[1], 1)
        return {"ux": -into_x - d.sample(self.force_x), "uy": -into_y - d.sample(self.force_y)}
