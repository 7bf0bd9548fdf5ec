"""The diffusion-reaction equation of DeepONet's data, read by deeponet_diffusion_reaction.yaml."""

from __future__ import annotations

from sciml.equations import Evolution, Field, equation, parameter


@equation
class QuadraticReaction(Evolution):
    """Diffusion and a quadratic reaction, s_t = D lap s + k s^2, with u(x) as the source.

    Symbols: s [1] concentration, D [m^2/s] diffusivity, k [1/s] rate of the reaction.
    What you should see: s follows the source, smoothed by diffusion; the reaction adds where s is not zero.
    Good values: D = k = 0.01, a source of size 1, horizon 1 s: k s^2 is then about 1 % of the source.
    Limits: k = 0 is the heat equation. For k > 0 large positive s blows up like 1/(k (t_0 - t)).
    Source: S. Wang, H. Wang, P. Perdikaris, Sci. Adv. 7 (2021) eabi8605, diffusion-reaction system.
    """

    fields = (Field("s"),)
    diffusivity: float = parameter(0.01, unit="m^2/s", minimum=0.0, doc="diffusivity")
    rate: float = parameter(0.01, unit="1/s", doc="rate of the reaction; its sign is that of s_t")

    def stiff(self, u, d):
        """D lap s."""
        return {"s": self.diffusivity * d.laplacian(u.s)}

    def nonstiff(self, u, d):
        """k s^2."""
        del d
        return {"s": self.rate * u.s * u.s}
