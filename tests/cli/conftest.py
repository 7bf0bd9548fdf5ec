"""Running `sciml` inside the test process, with a recipe on disk and a pipeline that only records its calls."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import sciml
from sciml.cli import main


@dataclass(frozen=True)
class Result:
    """What a command printed and its exit code."""

    code: int
    output: str
    errors: str


@pytest.fixture
def run_sciml(capsys, monkeypatch) -> Callable[..., Result]:
    """Run the command line in this process."""

    def run(*arguments: object) -> Result:
        monkeypatch.setattr(sys, "argv", ["sciml", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        code = ended.value.code
        return Result(code if isinstance(code, int) else 0, printed.out, printed.err)

    return run


@pytest.fixture
def heat(tmp_path, monkeypatch, run_sciml) -> Path:
    """A correct recipe in an empty current folder."""
    monkeypatch.chdir(tmp_path)
    assert run_sciml("init", "heat").code == 0
    return Path("heat.yaml")


class Recorder(ModuleType):
    """Stands for `sciml.pipeline`: remembers which stage was called with what."""

    def __init__(self) -> None:
        super().__init__("sciml.pipeline")
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.failure: BaseException | None = None
        for stage in ("run", "generate", "train", "evaluate", "export"):
            setattr(self, stage, self._recorded(stage))

    def _recorded(self, stage: str) -> Callable[..., None]:
        def call(*arguments: Any) -> None:
            self.calls.append((stage, arguments))
            if self.failure is not None:
                raise self.failure

        return call

    def describe(self, recipe: Any) -> str:
        """What --dry-run prints."""
        return f"described {recipe.name}"


@pytest.fixture
def pipeline(monkeypatch) -> Recorder:
    """A pipeline that does nothing."""
    recorder = Recorder()
    monkeypatch.setitem(sys.modules, "sciml.pipeline", recorder)
    monkeypatch.setattr(sciml, "pipeline", recorder, raising=False)
    return recorder


@pytest.fixture
def doubling(monkeypatch) -> None:
    """`sciml.load` gives a surrogate with inputs u0 and diffusivity and the output u = 2 u0."""

    class Doubling:
        inputs = (SimpleNamespace(name="u0"), SimpleNamespace(name="diffusivity"))
        outputs = (SimpleNamespace(name="u"),)

        def __call__(self, u0: Any, diffusivity: Any) -> Any:
            del diffusivity
            return 2 * u0

    monkeypatch.setattr(sciml, "load", lambda path: Doubling(), raising=False)
