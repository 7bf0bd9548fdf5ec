"""Whole runs, as small as they can be: recipes as text, runs made once per process, and the real command line."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sciml.checkpoint import MANIFEST, Checkpoints
from sciml.cli import main
from sciml.pipeline import run
from sciml.recipe import Recipe
from sciml.recipe.reading import read_text

HEAT = """
name: heat
problem:
  equation: {kind: heat, diffusivity: {kind: log_uniform, low: 0.02, high: 0.06}}
  domain: {x: {periodic: true}}
  initial: {u: {kind: fourier_series, modes: 2}}
  horizon: 0.5
data:
  grid: {x: 16}
  times: 4
  method: {kind: etdrk4, dt: 0.125}
  samples: {train: 16, validation: 4, test: 4}
  quantities: [final_energy]
models:
  fno:
    kind: fno
    width: 8
    modes: [3]
    layers: 2
    train: {steps: 12, batch: 8, checkpoint_every: 4}
  deeponet:
    kind: deeponet
    width: 16
    basis: 8
    train: {steps: 12, batch: 8, checkpoint_every: 4}
  mlp:
    kind: mlp
    width: 8
    train: {steps: 12, batch: 8, checkpoint_every: 4}
  pinn:
    kind: pinn
    width: 8
    layers: 2
    points: 64
    unknown: [diffusivity]
    train: {optimizer: levenberg_marquardt, steps: 12, precision: float64, checkpoint_every: 4}
"""

BURGERS = """
name: burgers
problem:
  equation: {kind: burgers, viscosity: {kind: log_uniform, low: 0.02, high: 0.05}}
  domain: {x: {periodic: true}}
  initial: {u: {kind: fourier_series, modes: 2}}
  horizon: 0.2
data:
  grid: {x: 32}
  times: 4
  method: {kind: etdrk4, dt: 0.01}
  samples: {train: 16, validation: 4, test: 4}
models:
  fno: {kind: fno, width: 8, modes: [3], layers: 2, train: {steps: 8, batch: 8}}
  deeponet: {kind: deeponet, width: 16, basis: 8, train: {steps: 8, batch: 8}}
  pinn:
    kind: pinn
    width: 8
    layers: 2
    points: 64
    unknown: [viscosity]
    train: {optimizer: levenberg_marquardt, steps: 6, precision: float64}
"""

DARCY = """
name: darcy
problem:
  equation: {kind: darcy, permeability: {kind: lognormal, modes: 2}, forcing: 1.0}
  domain: {x: {}, y: {}}
  boundary: {x-: dirichlet, x+: dirichlet, y-: dirichlet, y+: dirichlet}
data:
  grid: {x: 9, y: 9}
  method: conjugate_gradient
  samples: {train: 16, validation: 4, test: 4}
models:
  fno: {kind: fno, width: 8, modes: [2], layers: 2, train: {steps: 8, batch: 8}}
  deeponet: {kind: deeponet, width: 16, basis: 8, features: 2, train: {steps: 8, batch: 8}}
  pinn:
    kind: pinn
    width: 8
    layers: 2
    points: 64
    train: {optimizer: levenberg_marquardt, steps: 6, precision: float64}
"""

RECIPES = {"heat": HEAT, "burgers": BURGERS, "darcy": DARCY}
FAULTY = Path(__file__).with_name("faulty_sciml.py")
SCIML = (sys.executable, "-c", "import sys; from sciml.cli import main; sys.exit(main())")
SECONDS = 300


@dataclass(frozen=True)
class Ended:
    """Exit code and what was printed."""

    code: int
    out: str
    err: str


def recipe(name: str, *overrides: str) -> Recipe:
    """One of the recipes above."""
    return read_text(RECIPES[name], name, overrides)


def write(name: str, folder: Path) -> Path:
    """The recipe as a file `<name>.yaml` in a folder."""
    path = folder / f"{name}.yaml"
    path.write_text(RECIPES[name], encoding="utf-8")
    return path


@functools.cache
def finished(name: str) -> Path:
    """The folder of a finished run of the recipe, made once per process; copy it before changing it."""
    folder = Path(tempfile.mkdtemp(prefix=f"sciml-tests-{name}-")) / "run"
    run(recipe(name), folder)
    return folder


def sciml(*arguments: object, folder: Path, fault: str = "", before: Sequence[str] = ()) -> Ended:
    """The real command line as a process of its own, in `folder`.

    `fault` is one of `faulty_sciml`; `before` is put in front (`mpiexec -n 4`).
    """
    program = (sys.executable, str(FAULTY), fault) if fault else SCIML
    command = [*before, *program, *map(str, arguments)]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    return Ended(ended.returncode, ended.stdout, ended.stderr)


def here(*arguments: object, folder: Path) -> Ended:
    """The command line inside this process, which spares the start of another one."""
    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv, code = ["sciml", *map(str, arguments)], None
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), contextlib.chdir(folder):
            main()
    except SystemExit as ended:
        code = ended.code
    finally:
        sys.argv = before
    return Ended(code if isinstance(code, int) else 0, out.getvalue(), err.getvalue())


def metrics(folder: Path, model: str) -> list[dict[str, Any]]:
    """Records of a training, without what depends on the clock."""
    lines = (folder / "models" / model / "metrics.jsonl").read_text().splitlines()
    clock = {"seconds", "steps_per_second", "samples_per_second", "wait_fraction"}
    return [{k: v for k, v in json.loads(line).items() if k not in clock} for line in lines]


def checkpoint(folder: Path, model: str, step: int | None = None) -> dict[str, Any]:
    """Every array of a checkpoint (the newest) as bytes, and the position in the data."""
    import orbax.checkpoint as ocp

    with Checkpoints(folder / "models" / model / "checkpoints") as checkpoints:
        place = checkpoints.folder / str(checkpoints.steps()[-1] if step is None else step)
    with ocp.Checkpointer(ocp.StandardCheckpointHandler()) as checkpointer:
        arrays = checkpointer.restore(place)
    data = json.loads((place / MANIFEST).read_text())["meta"]["data"]
    return {name: (str(a.dtype), a.shape, a.tobytes()) for name, a in arrays.items()} | {"data": data}


def tree(folder: Path) -> dict[str, bytes]:
    """Every file of a folder but the lock, with its content."""
    files = (p for p in sorted(folder.rglob("*")) if p.is_file() and p.name != ".lock")
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}
