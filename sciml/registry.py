"""Components by name: one decorator registers a class, its file is found again without importing it."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import TypeVar

from sciml.errors import ConfigError

C = TypeVar("C", bound=type)

PACKAGES: dict[str, tuple[str, ...]] = {
    "equation": ("sciml.equations",),
    "distribution": ("sciml.sampling",),
    "field": ("sciml.sampling",),
    "method": ("sciml.solvers",),
    "model": ("sciml.operators", "sciml.pinn"),
    "optimizer": ("sciml.training.optimizers",),
    "quantity": ("sciml.data",),
}
_classes: dict[str, dict[str, type]] = {kind: {} for kind in PACKAGES}


def register(kind: str, name: str) -> Callable[[C], C]:
    """Class decorator: make a frozen dataclass available to recipes as `{kind: name, <its fields>}`."""

    def decorate(cls: C) -> C:
        known = _classes[kind].setdefault(name, cls)
        if known is not cls and known.__qualname__ != cls.__qualname__:
            raise ConfigError(f"{kind} {name!r} is registered twice", got=f"{known} and {cls}")
        return cls

    return decorate


def names(kind: str) -> list[str]:
    """Sorted names registered under `kind`."""
    for package_name in PACKAGES[kind]:
        package = importlib.import_module(package_name)
        for module in pkgutil.iter_modules(getattr(package, "__path__", [])):
            importlib.import_module(f"{package_name}.{module.name}")
    return sorted(_classes[kind])


def load(kind: str, name: str) -> type:
    """The class registered as `name`; imports its module."""
    if name not in names(kind):
        raise ConfigError(f"unknown {kind}", expected=" | ".join(names(kind)), got=name)
    return _classes[kind][name]
