"""A small set of components made only for these tests, and a way to read recipes that use them."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from sciml import registry
from sciml.recipe import Recipe, RecipeError, read

COMPONENTS = {
    "equations/equations.py": '''
        @register("equation", "heat")
        @equation
        class Heat(Evolution):
            """Heat equation, u_t = D lap u."""
            fields: ClassVar[tuple[Field, ...]] = (Field("u", unit="K"),)
            diffusivity: float = parameter(0.01, unit="m^2/s", above=0.0, doc="thermal diffusivity")

        @register("equation", "darcy")
        @equation
        class Darcy(Steady):
            """Steady Darcy flow."""
            fields = (Field("u", unit="Pa"),)
            permeability: Coefficient = parameter(1.0, above=0.0)

        @register("equation", "waves")
        @equation
        class Waves(Evolution):
            """One-dimensional waves with a flag."""
            dims: ClassVar[tuple[int, ...]] = (1,)
            fields = (Field("u"), Field("v"))
            speed: float = parameter(unit="m/s")
            order: int = 2
    ''',
    "sampling.py": '''
        @register("distribution", "uniform")
        @dataclass(frozen=True)
        class Uniform:
            """Equally likely between two bounds."""
            low: float
            high: float

        @register("distribution", "log_uniform")
        @dataclass(frozen=True)
        class LogUniform:
            """Equally likely per decade."""
            low: float = option(above=0.0)
            high: float = option(above=0.0)

        @register("field", "fourier_series")
        @dataclass(frozen=True)
        class FourierSeries:
            """Random Fourier series."""
            modes: int = option(6, minimum=1)
            decay: float = 1.5
    ''',
    "solvers/etd.py": '''
        @register("method", "etdrk4")
        @dataclass(frozen=True)
        class ETDRK4:
            """Exponential Runge-Kutta of order 4."""
            order: ClassVar[int] = 4
            dt: float = option(0.01, above=0.0, unit="s")
    ''',
    "operators/fno.py": '''
        @register("model", "fno")
        @dataclass(frozen=True)
        class FNO:
            """Fourier neural operator."""
            width: int = option(32, minimum=1, doc="channels")
            modes: tuple[int, ...] = option((12,), minimum=1)
            activation: Literal["gelu", "tanh"] = "gelu"
            bias: bool = True
            dropout: float | None = option(None, minimum=0.0, maximum=1.0)
    ''',
    "pinn/model.py": '''
        @register("model", "pinn")
        @dataclass(frozen=True)
        class PINN:
            """Network for one instance."""
            task: ClassVar[str] = "instance"
            sample: int = option(0, minimum=0)
            unknown: tuple[str, ...] = ()
    ''',
    "training/optimizers/adam.py": '''
        @register("optimizer", "adam")
        @dataclass(frozen=True)
        class Adam:
            """Adam."""
            learning_rate: float = option(1e-3, above=0.0)

        @register("optimizer", "sgd")
        @dataclass(frozen=True)
        class SGD:
            """Gradient descent."""
            learning_rate: float = option(1e-2, above=0.0)
    ''',
    "data/quantities.py": '''
        @register("quantity", "final_energy")
        @dataclass(frozen=True)
        class FinalEnergy:
            """Half the mean square at the end."""
    ''',
}

HEAT = """\
name: heat
seed: 0
problem:
  equation: {kind: heat, diffusivity: {kind: log_uniform, low: 0.02, high: 0.08}}
  domain: {x: {lower: 0.0, upper: 1.0, periodic: true}}
  initial: {u: {kind: fourier_series, modes: 6, decay: 1.5}}
  horizon: 1.0
data:
  grid: {x: 64}
  times: 10
  method: {kind: etdrk4, dt: 0.01}
  samples: {train: 80, validation: 10, test: 10}
  quantities: [final_energy]
models:
  fno:
    kind: fno
    width: 32
    modes: [12]
    train: {steps: 400, batch: 16, optimizer: {kind: adam, learning_rate: 1e-3}}
"""


@pytest.fixture(autouse=True)
def components(tmp_path_factory, monkeypatch) -> Path:
    """Only these components are registered; they are read, never imported."""
    root = tmp_path_factory.mktemp("package")
    for name, text in COMPONENTS.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    monkeypatch.setattr(registry, "ROOT", root)
    return root


class Folder:
    """A folder with a recipe in it; `text` is a correct one."""

    text = HEAT

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, text: str = HEAT, *overrides: str) -> Recipe:
        """The recipe that a text gives."""
        file = self.path / "heat.yaml"
        file.write_text(text, encoding="utf-8")
        return read(file, overrides)

    def problems(self, text: str = HEAT, *overrides: str) -> list[str]:
        """The mistakes that reading a text reports, the folder left out."""
        with pytest.raises(RecipeError) as caught:
            self.read(text, *overrides)
        assert caught.value.exit_code == 78
        return [line.replace(f"{self.path}/", "") for line in caught.value.problems]

    def changed(self, old: str, new: str) -> list[str]:
        """The mistakes of the recipe above with one piece of text replaced."""
        assert HEAT.count(old) == 1
        return self.problems(HEAT.replace(old, new))


@pytest.fixture
def folder(tmp_path) -> Folder:
    """An empty folder for recipes."""
    return Folder(tmp_path)
