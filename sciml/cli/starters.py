"""Commented recipes that `sciml init` writes."""

from __future__ import annotations

from sciml.errors import ConfigError
from sciml.registry import suggestion

HEADER = """\
# yaml-language-server: $schema={schema}
# Run with:    sciml run {name}.yaml
# Try first:   sciml run {name}.yaml --dry-run
# Change:      sciml run {name}.yaml models.fno.train.steps=200 data.samples.train=64
# Components:  sciml list
"""

HEAT = """\
name: heat                    # results go to runs/heat
seed: 0                       # decides every random number

problem:
  equation:
    kind: heat                # u_t = D lap u; or a class of yours: my_problem.py:MyEquation
    diffusivity: {kind: log_uniform, low: 0.02, high: 0.08}   # m^2/s; a number would hold for all samples
  domain:
    x: {lower: 0.0, upper: 1.0, periodic: true}               # m
  initial:
    u: {kind: fourier_series, modes: 6, decay: 1.5}           # a random field per sample
  horizon: 1.0                # s

data:
  grid: {x: 64}
  times: 10                   # saved times, equally spaced up to the horizon
  method: {kind: etdrk4, dt: 0.01}
  samples: {train: 400, validation: 50, test: 50}

models:
  fno:                        # (initial field, diffusivity) -> field at the saved times
    kind: fno
    width: 32
    modes: [12]
    train:
      optimizer: {kind: adam, learning_rate: 1e-3, schedule: cosine}
      steps: 2000
      batch: 32
      objective: {data: 1.0, residual: 0.0}   # residual > 0 adds the PDE to the loss
"""

BURGERS = """\
name: burgers
seed: 0

problem:
  equation:
    kind: burgers             # u_t + (u^2/2)_x = nu u_xx
    viscosity: {kind: log_uniform, low: 0.01, high: 0.05}     # m^2/s
  domain:
    x: {lower: 0.0, upper: 1.0, periodic: true}
  initial:
    u: {kind: fourier_series, modes: 4, decay: 2.0}
  horizon: 0.5                # s; fronts steepen and merge

data:
  grid: {x: 128}              # a front of width nu / |u| must span a few points
  times: 10
  method: {kind: etdrk4, dt: 0.002}
  samples: {train: 400, validation: 50, test: 50}

models:
  fno:
    kind: fno
    width: 32
    modes: [24]
    train:
      optimizer: {kind: adam, learning_rate: 1e-3, schedule: cosine}
      steps: 2000
      batch: 32
"""

DARCY = """\
name: darcy
seed: 0

problem:
  equation:
    kind: darcy               # -div(a grad u) = f, steady
    permeability: {kind: lognormal, modes: 6, amplitude: 0.5} # a positive random field per sample
    forcing: 1.0
  domain:
    x: {lower: 0.0, upper: 1.0}
    y: {lower: 0.0, upper: 1.0}
  boundary:                   # one condition per face: dirichlet, neumann or robin
    x-: {kind: dirichlet, value: 0.0}
    x+: {kind: dirichlet, value: 0.0}
    y-: {kind: dirichlet, value: 0.0}
    y+: {kind: dirichlet, value: 0.0}

data:
  grid: {x: 33, y: 33}        # both ends of an axis are points of the grid
  method: direct
  samples: {train: 400, validation: 50, test: 50}

models:
  fno:                        # permeability -> pressure
    kind: fno
    width: 32
    modes: [12, 12]
    train:
      optimizer: {kind: adam, learning_rate: 1e-3, schedule: cosine}
      steps: 2000
      batch: 16
"""

TEXTS = {"heat": HEAT, "burgers": BURGERS, "darcy": DARCY}


def names() -> list[str]:
    """Experiments that a recipe can start from."""
    return list(TEXTS)


def text(name: str, schema: str) -> str:
    """The starter recipe `name`, with a first line that points editors to the file `schema`."""
    if name not in TEXTS:
        raise ConfigError(
            f"no starter recipe {name!r}{suggestion(name, TEXTS)}",
            expected=" | ".join(TEXTS),
            got=name,
            fix="sciml init heat",
        )
    return HEADER.format(schema=schema, name=name) + "\n" + TEXTS[name]
