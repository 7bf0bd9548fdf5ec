"""What a wheel holds, and that it imports the same from anywhere.

The folders solvers/, operators/ and pinn/ stand at the top of the repository and are linked into sciml/. In a wheel
they must be real files under sciml/ and nothing else, or they would collide with a user's own `solvers`.
"""

from __future__ import annotations

import configparser
import importlib.metadata
import os
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

LINKED = ("solvers", "operators", "pinn")
LOCATE = (
    "import importlib.util, sciml, sciml.solvers, sciml.operators, sciml.pinn\n"
    "print(sciml.__file__)\n"
    f"print(*[name for name in {LINKED} if importlib.util.find_spec(name)])\n"
)


@pytest.fixture(scope="module")
def wheel(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel of this checkout, built from a copy so that no build folder appears in it."""
    copy = tmp_path_factory.mktemp("build") / "checkout"
    leave_out = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist", "runs")
    shutil.copytree(repository, copy, symlinks=True, ignore=leave_out)
    command = [sys.executable, "-m", "build", "--wheel", *_isolation(), "--outdir", str(copy / "out"), str(copy)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    (path,) = (copy / "out").glob("*.whl")
    return zipfile.ZipFile(path)


def _isolation() -> list[str]:
    """Build with the setuptools at hand if it is new enough; else `build` fetches one, which needs the network."""
    try:
        major = int(importlib.metadata.version("setuptools").split(".")[0])
    except importlib.metadata.PackageNotFoundError:
        return []
    return ["--no-isolation"] if major >= 77 else []


@pytest.fixture(scope="module")
def site(wheel: zipfile.ZipFile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel unpacked, as pip would."""
    folder = tmp_path_factory.mktemp("site")
    wheel.extractall(folder)
    return folder


def _located(folder: Path, site: Path | None) -> tuple[Path, list[str]]:
    """Where `import sciml` leads in a process started in `folder`, and which bare names can be imported there."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if site is not None:
        environment["PYTHONPATH"] = str(site)
    command = [sys.executable, "-c", LOCATE]
    process = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    where, bare = process.stdout.splitlines()
    return Path(where).resolve().parent, bare.split()


def test_wheel_holds_the_package_and_nothing_else(wheel, repository):
    names = {info.filename for info in wheel.infolist() if not info.is_dir()}
    (metadata,) = (name.split("/")[0] for name in names if name.endswith(".dist-info/METADATA"))
    assert {name.split("/")[0] for name in names} == {"sciml", metadata}
    roots = {Path("sciml"): repository / "sciml"}  # os.walk does not follow the links inside it
    roots |= {Path("sciml", name): repository / name for name in LINKED}
    sources = {
        str(inside / Path(folder, name).relative_to(root))
        for inside, root in roots.items()
        for folder, _, files in os.walk(root)
        for name in files
        if name.endswith(".py")
    }
    assert {name for name in names if name.startswith("sciml/") and name.endswith(".py")} == sources


def test_wheel_holds_no_links(wheel):
    assert not [info.filename for info in wheel.infolist() if stat.S_ISLNK(info.external_attr >> 16)]


def test_wheel_declares_the_command(wheel):
    (path,) = (name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    entries = configparser.ConfigParser()
    entries.read_string(wheel.read(path).decode())
    assert dict(entries["console_scripts"]) == {"sciml": "sciml.cli:main"}


def test_wheel_imports_outside_and_leaks_no_bare_name(site, tmp_path):
    assert _located(tmp_path, site) == (site / "sciml", [])


def test_wheel_installed_the_checkout_still_imports_inside(site, repository):
    """A process started in the repository root finds ./sciml first; it must be complete there."""
    where, _ = _located(repository, site)
    assert where == repository / "sciml"


def test_this_installation_imports_outside_and_leaks_no_bare_name(tmp_path):
    _, bare = _located(tmp_path, None)
    assert bare == []
