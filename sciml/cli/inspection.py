"""Commands that use or look at results: predict with a surrogate, describe a folder, verify an equation."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sciml.cli.stages import RECIPE
from sciml.errors import CannotCreateError, ConfigError, DataError, NumericalError

if TYPE_CHECKING:
    import numpy as np

MANIFEST = "manifest.json"
DATA_FORMAT = "sciml-data"
MEBIBYTE = 2**20


def predict(
    artifact: Annotated[Path, typer.Argument(metavar="ARTIFACT", help="A surrogate folder (.sciml).")],
    inputs: Annotated[Path, typer.Argument(metavar="INPUTS", help="An .npz or .h5 file with an array per input.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The .npz file to write.")] = Path(
        "prediction.npz"
    ),
) -> None:
    """Evaluate a surrogate on the arrays of a file.

    One sample or many, in physical units.
    """
    if output.suffix != ".npz":
        fix = f"-o {output.stem}.npz"
        raise ConfigError("predictions are written as npz", expected="FILE.npz", got=output, fix=fix)
    if output.exists():
        raise CannotCreateError(f"{output} is already there", fix="--output another.npz, or delete it")
    import sciml

    surrogate = sciml.load(artifact)
    names = [variable.name for variable in surrogate.inputs]
    given = _arrays(inputs, names)
    result = surrogate(**given)
    outputs = [variable.name for variable in surrogate.outputs]
    arrays = dict(result) if isinstance(result, Mapping) else {outputs[0]: result}
    _write_arrays(output, arrays)
    for name, array in arrays.items():
        typer.echo(f"{name}: shape {array.shape}, {array.dtype}")
    typer.echo(f"wrote {output}")


def info(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A run, a data set, a surrogate (.sciml) or a recipe.")],
) -> None:
    """Describe a run, data set, surrogate or recipe."""
    for belongs, lines in READERS:
        if belongs(path):
            for line in lines(path):
                typer.echo(line)
            return
    raise DataError(
        f"{path} is {'nothing that sciml wrote' if path.exists() else 'not there'}",
        expected=f"a run folder ({RECIPE}), a data set or surrogate folder ({MANIFEST}), or a .yaml file",
        got=sorted(entry.name for entry in path.iterdir())[:8] if path.is_dir() else str(path),
    )


def verify(
    equation: Annotated[
        str, typer.Argument(metavar="EQUATION", help="my_problem.py:MyEquation, or a name from `sciml list`.")
    ],
    long: Annotated[bool, typer.Option("--long", help="Published values that take minutes, too.")] = False,
) -> None:
    """Check an equation against itself and solvers.

    Readings agree, solvers converge at their order, invariants stay, the stiff part is linear, gradients are right.
    """
    from sciml.solvers import verification

    report = verification.verify(equation, tell=typer.echo, long=long)
    if not report.passed:
        raise NumericalError(f"{equation} did not pass every check", reason="see the lines marked above")


def _arrays(path: Path, names: list[str]) -> dict[str, np.ndarray]:
    """The named arrays of an npz or HDF5 file; DataError lists what is missing and what is there."""
    read = FILES.get(path.suffix.lower())
    if read is None:
        raise ConfigError(f"{path} is of an unknown kind", expected=" | ".join(FILES), got=path.suffix)
    if not path.is_file():
        raise DataError(f"no file {path}")
    try:
        there, arrays = read(path, names)
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{path} cannot be read", reason=str(error)) from error
    missing = [name for name in names if name not in arrays]
    if missing:
        raise DataError(
            f"{path} lacks {', '.join(missing)}", expected=f"arrays {', '.join(names)}", got=", ".join(there)
        )
    return arrays


def _read_npz(path: Path, names: list[str]) -> tuple[list[str], dict[str, np.ndarray]]:
    import numpy as np

    with np.load(path, allow_pickle=False) as file:
        return list(file), {name: file[name] for name in names if name in file}


def _read_hdf5(path: Path, names: list[str]) -> tuple[list[str], dict[str, np.ndarray]]:
    import h5py
    import numpy as np

    with h5py.File(path, "r") as file:
        there = list(file)
        return there, {name: np.asarray(file[name]) for name in names if name in there}


FILES: dict[str, Callable[[Path, list[str]], tuple[list[str], dict[str, np.ndarray]]]] = {
    ".npz": _read_npz,
    ".h5": _read_hdf5,
    ".hdf5": _read_hdf5,
}


def _write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    import numpy as np

    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with partial.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
        os.replace(partial, path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise CannotCreateError(f"cannot write {path}", reason=error.strerror) from error


def _is_run(path: Path) -> bool:
    return (path / RECIPE).is_file()


def _is_data(path: Path) -> bool:
    return (path / MANIFEST).is_file() and _manifest(path).get("format") == DATA_FORMAT


def _is_data_file(path: Path) -> bool:
    from sciml.data import onefile

    return path.is_file() and path.suffix in FILES and onefile.is_one_file(path)


def _is_surrogate(path: Path) -> bool:
    return (path / MANIFEST).is_file() and not _is_data(path)


def _is_recipe(path: Path) -> bool:
    return path.is_file() and path.suffix in (".yaml", ".yml")


def _run_lines(path: Path) -> Iterator[str]:
    from sciml.recipe import read as read_recipe

    read = read_recipe(path / RECIPE)
    yield f"run of the recipe {read.name!r} ({read.hash()[:12]})"
    yield f"models: {', '.join(read.models)}"
    for entry in sorted(path.iterdir()):
        yield f"  {entry.name}{'/' if entry.is_dir() else ''}  {_size(entry)}"
    for surrogate in sorted(path.rglob("*.sciml")):
        yield f"surrogate: {surrogate}"


def _data_lines(path: Path) -> Iterator[str]:
    manifest = _manifest(path)
    state = "complete" if manifest["complete"] else "INCOMPLETE: give the same `sciml generate` command again"
    yield f"data set of {manifest['samples']} samples in {len(manifest['shards'])} shards, {state}"
    yield from _content_lines(path, manifest)


def _data_file_lines(path: Path) -> Iterator[str]:
    from sciml.data import onefile

    manifest = onefile.told(path)
    yield f"data set of {manifest['samples']} samples in one file (`sciml data check` verifies it)"
    yield from _content_lines(path, manifest)


def _content_lines(path: Path, manifest: Mapping[str, Any]) -> Iterator[str]:
    layout = manifest["layout"]
    yield f"size: {_size(path)}; fingerprint: {manifest['fingerprint'][:12]}"
    for group in ("inputs", "outputs", "parameters", "quantities"):
        yield from (f"{group}: {_variable(variable)}" for variable in layout.get(group, ()))
    yield from (_axis(axis, points) for axis, points in layout.get("coordinates", {}).items())
    if layout.get("splits"):
        yield f"splits: {', '.join(f'{name} {count}' for name, count in layout['splits'].items())}"
    for key, value in {**manifest["provenance"], **manifest["notes"]}.items():
        if "\n" not in str(value):  # the text of the recipe stays in the file
            yield f"{key}: {value}"


def _surrogate_lines(path: Path) -> Iterator[str]:
    manifest = _manifest(path)
    yield f"surrogate {path.name} ({_size(path)})"
    spec = manifest.get("spec", manifest)
    for group in ("inputs", "outputs"):
        yield from (f"{group}: {_variable(variable)}" for variable in spec.get(group, ()))
    for key, value in manifest.items():
        if isinstance(value, str | int | float):
            yield f"{key}: {value}"


def _recipe_lines(path: Path) -> Iterator[str]:
    from sciml.recipe import read as read_recipe

    read = read_recipe(path)
    yield f"recipe {read.name!r} ({read.hash()[:12]}), run folder {read.run_folder}"
    yield read.to_yaml().rstrip()


READERS: tuple[tuple[Callable[[Path], bool], Callable[[Path], Iterator[str]]], ...] = (
    (_is_run, _run_lines),
    (_is_data, _data_lines),
    (_is_data_file, _data_file_lines),
    (_is_surrogate, _surrogate_lines),
    (_is_recipe, _recipe_lines),
)


def _manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise DataError(f"{path / MANIFEST} cannot be read", reason=str(error)) from error
    if not isinstance(manifest, dict):
        raise DataError(f"{path / MANIFEST} is no manifest", expected="a JSON object", got=type(manifest).__name__)
    return manifest


def _variable(variable: Mapping[str, Any]) -> str:
    sizes = zip(variable.get("axes", ()), variable.get("shape", ()), strict=False)
    shape = ", ".join(f"{axis}: {size}" for axis, size in sizes) or "scalar"
    low, high = variable.get("low"), variable.get("high")
    seen = f", seen {low:.3g} to {high:.3g}" if isinstance(low, int | float) and isinstance(high, int | float) else ""
    return f"{variable['name']} ({shape}) [{variable.get('unit', '1')}]{seen}"


def _axis(name: str, axis: Mapping[str, Any]) -> str:
    values, periodic = axis["values"], ", periodic" if axis.get("periodic") else ""
    ends = f" from {values[0]:.6g} to {values[-1]:.6g}" if values else ""
    return f"axis: {name} ({len(values)} points{ends}{periodic}) [{axis.get('unit', '1')}]"


def _size(path: Path) -> str:
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return f"{sum(file.stat().st_size for file in files) / MEBIBYTE:.1f} MiB"
