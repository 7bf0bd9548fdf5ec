"""The layers, and what an import costs: checked on the real import graph and in fresh processes."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from comparison import assert_none

HEAVY = frozenset(
    ("jax", "jaxlib", "flax", "optax", "orbax", "grain", "h5py", "matplotlib", "scipy", "tensorboardX", "mpi4py")
)
LIGHT_MODULES = (
    "sciml",
    "sciml.errors",
    "sciml.registry",
    "sciml.spec",
    "sciml.recipe",
    "sciml.launch.detect",
    "sciml.cli",
)


def _python(code: str, folder: Path) -> str:
    command = [sys.executable, "-c", code]
    process = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    return process.stdout


def test_layers_and_cycles(repository):
    """The contracts of [tool.importlinter]: no import upward, no cycle between siblings."""
    pytest.importorskip("importlinter")
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as main; main()"]
    process = subprocess.run(
        [*command, "--no-cache", "--config", "pyproject.toml"],
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr


def test_every_module_has_a_layer(repository, sources):
    """A new file directly under sciml/ must be given its place in the list of layers."""
    tools = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    layers = next(c for c in tools["importlinter"]["contracts"] if c["type"] == "layers")["layers"]
    placed = {name.strip(" ()") for layer in layers for name in layer.replace("|", ":").split(":")}
    modules = {source.module for source in sources} - {"sciml"}
    homeless = {m for m in modules if not any(m == name or m.startswith(f"{name}.") for name in placed)}
    split_packages = {m for m in homeless if any(name.startswith(f"{m}.") for name in placed)}
    assert_none(homeless - split_packages)
    assert_none(placed - modules)


@pytest.mark.parametrize("module", LIGHT_MODULES)
def test_light_modules_load_no_heavy_library(module, repository):
    """`sciml --help` and `sciml validate` answer at once because of this."""
    code = f"import {module}, sys; print(*sorted({set(HEAVY)} & set(sys.modules)))"
    assert _python(code, repository).split() == []


def test_importing_everything_leaves_one_copy_of_each_module(repository, sources):
    """All modules import, in a process started in the repository root, and the links stay links."""
    modules = [source.module for source in sources if not source.module.endswith("__main__")]
    code = (
        f"import importlib, sys; [importlib.import_module(m) for m in {modules!r}]\n"
        "print(*sorted({'solvers', 'operators', 'pinn'} & {m.split('.')[0] for m in sys.modules}))"
    )
    assert _python(code, repository).split() == []
