"""Components by name: one decorator registers a class, and its file is found again without importing it.

`names` and `describe` read source text; only `load` imports, and just the module that is needed.
"""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import importlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from sciml.errors import ConfigError, SciMLError
from sciml.source_reading import ClassSource, ComponentInfo, FieldInfo, OptionInfo, read_classes

__all__ = [
    "PACKAGES",
    "ComponentInfo",
    "FieldInfo",
    "OptionInfo",
    "describe",
    "describe_file",
    "load",
    "load_reference",
    "names",
    "option",
    "register",
    "split_reference",
    "suggestion",
]

C = TypeVar("C", bound=type)

PACKAGES: dict[str, tuple[str, ...]] = {
    "communicator": ("sciml.solvers.decomposed",),
    "equation": ("sciml.equations",),
    "distribution": ("sciml.sampling",),
    "field": ("sciml.sampling",),
    "method": ("sciml.solvers",),
    "model": ("sciml.operators", "sciml.pinn"),
    "optimizer": ("sciml.training.optimizers",),
    "quantity": ("sciml.data",),
}
ROOT = Path(__file__).parent
REFERENCE = re.compile(r"(?P<file>.+\.py):(?P<name>\w+)", re.DOTALL)
_classes: dict[str, dict[str, type]] = {kind: {} for kind in PACKAGES}


def register(kind: str, name: str) -> Callable[[C], C]:
    """Class decorator: make a frozen dataclass available to recipes as `{kind: name, <its fields>}`."""

    def decorate(cls: C) -> C:
        known = _classes[kind].setdefault(name, cls)
        if known is not cls and known.__qualname__ != cls.__qualname__:
            raise ConfigError(f"{kind} {name!r} is registered twice", got=f"{known} and {cls}")
        return cls

    return decorate


def option(
    default: Any = dataclasses.MISSING,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    above: float | None = None,
    unit: str | None = None,
    doc: str = "",
) -> Any:
    """A dataclass field with limits, unit and one line of explanation, for recipes and their editors.

    Every argument must be a literal, because recipes read it from the source. `minimum` and `maximum` are
    allowed values, `above` is not (`above=0` means positive); for a tuple they hold for every entry.
    """
    facts = {"minimum": minimum, "maximum": maximum, "above": above, "unit": unit, "doc": doc}
    return dataclasses.field(default=default, metadata=facts)


def names(kind: str) -> list[str]:
    """Sorted names registered under `kind`, read from the source."""
    return sorted(_described(kind))


def describe(kind: str, name: str) -> ComponentInfo:
    """What the source says about a component; ConfigError names the nearest known one."""
    known = _described(kind)
    if name in known:
        return known[name]
    raise ConfigError(
        f"unknown {kind} {name!r}{suggestion(name, known)}",
        expected=" | ".join(sorted(known)) or f"a registered {kind}",
        got=name,
        fix=f"kind: {closest(name, known)}" if closest(name, known) else None,
    )


def load(kind: str, name: str) -> type:
    """The class registered as `name`; imports its module and no other component."""
    if name not in _classes.get(kind, {}):
        info = describe(kind, name)
        module = importlib.import_module(info.module)
        return _classes[kind].get(name) or getattr(module, info.class_name)
    return _classes[kind][name]


def closest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that `name` most likely misspells, or None."""
    lowered = {candidate.lower(): candidate for candidate in candidates}
    found = difflib.get_close_matches(str(name).lower(), lowered, n=1, cutoff=0.6)
    return lowered[found[0]] if found else None


def suggestion(name: str, candidates: Iterable[str]) -> str:
    """`, did you mean 'x'?` or nothing."""
    found = closest(name, candidates)
    return f", did you mean {found!r}?" if found else ""


def _described(kind: str) -> dict[str, ComponentInfo]:
    if kind not in PACKAGES:
        raise ConfigError(
            f"unknown kind of component {kind!r}{suggestion(kind, PACKAGES)}",
            expected=" | ".join(PACKAGES),
            got=kind,
        )
    found: dict[str, ComponentInfo] = {}
    for path, module in source_files(kind):
        for source in _component_classes(path, module, kind):
            for name in (name for registered, name in source.registered if registered == kind):
                found.setdefault(name, dataclasses.replace(source.info, name=name))
    return found


def source_files(kind: str) -> Iterator[tuple[Path, str]]:
    """(file, module name) of every source file in the packages that hold components of `kind`."""
    for package in PACKAGES[kind]:
        base = ROOT.joinpath(*package.split(".")[1:])
        single = base.with_suffix(".py")
        if single.is_file():
            yield single, package
        for path in sorted(base.rglob("*.py")):
            parts = path.relative_to(base).with_suffix("").parts
            inner = parts[:-1] if parts[-1] == "__init__" else parts
            yield path, ".".join((package, *inner))


def _component_classes(path: Path, module: str, kind: str) -> Iterable[ClassSource]:
    """Classes of a file that seems to register a component of `kind`; parsing the others would take time."""
    text = path.read_bytes()
    return read_classes(path, module) if b"\n@" in text and kind.encode() in text else ()


def split_reference(text: str, relative_to: Path | str = ".") -> tuple[Path, str] | None:
    """(file, class name) when `text` reads `path/to/file.py:ClassName`, else None."""
    match = REFERENCE.fullmatch(text)
    return (Path(relative_to, match["file"]).expanduser(), match["name"]) if match else None


def describe_file(path: Path | str, class_name: str) -> ComponentInfo:
    """Same as `describe`, for a class in a user's own file; ConfigError for a missing file or class."""
    path = Path(path)
    if not path.is_file():
        nearby = [other.name for other in path.parent.glob("*.py")] if path.parent.is_dir() else []
        raise ConfigError(
            f"no file {path}{suggestion(path.name, nearby)}",
            expected="file.py:ClassName, relative to the folder of the recipe",
            got=f"{path}:{class_name}",
        )
    classes = {source.info.class_name: source for source in read_classes(path, path.stem)}
    if class_name not in classes:
        raise ConfigError(
            f"{path} has no class {class_name!r}{suggestion(class_name, classes)}",
            expected=" | ".join(classes) or "a class at the top level of the file",
            got=class_name,
        )
    return classes[class_name].info


def is_equation(info: ComponentInfo) -> bool:
    """Whether the source of a class carries the decorator `@equation`."""
    classes = read_classes(info.path, info.module)
    found = next(source for source in classes if source.info.class_name == info.class_name)
    return "equation" in found.decorators or any(kind == "equation" for kind, _ in found.registered)


def load_reference(text: str, relative_to: Path | str = ".") -> type:
    """The equation class that `my_problem.py:MyEquation` names; the file is imported once.

    Raises ConfigError when the text is not of that form, when the file or the class is missing, when the file
    fails while it is imported, or when the class is not an equation.
    """
    split = split_reference(text, relative_to)
    if split is None:
        raise ConfigError("not a reference to a class", expected="file.py:ClassName", got=text)
    path, class_name = split
    info = describe_file(path, class_name)
    if not is_equation(info):
        raise ConfigError(
            f"{path}:{info.line}: {class_name} is not an equation",
            expected="a class decorated with @equation",
            fix=f"@equation on the line above `class {class_name}` (from sciml.equations import equation)",
        )
    return getattr(_import_file(path), class_name)


def _import_file(path: Path) -> Any:
    path = path.resolve()
    module_name = f"sciml_user_{path.stem}_{hashlib.sha256(bytes(path)).hexdigest()[:12]}"
    if module_name in sys.modules:
        return sys.modules[module_name]
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None and spec.loader is not None, f"{path} ends in .py"
    module = sys.modules[module_name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[module_name]
        if isinstance(error, SciMLError) or not isinstance(error, Exception):
            raise
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == str(path)]
        where = f"{path}:{lines[-1]}" if lines else str(path)
        reason = f"{type(error).__name__}: {error}"
        raise ConfigError(f"{where}: fails while it is imported", reason=reason) from error
    return module
