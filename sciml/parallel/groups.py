"""Which devices a collective of a compiled program connects, and along which axes of a mesh."""

from __future__ import annotations

import math
import re
from typing import TypeAlias

import numpy as np
from jax.sharding import Mesh

import sciml.types  # noqa: F401 -- float64 wherever jax is used

Groups: TypeAlias = tuple[tuple[int, ...], ...]
_EXPLICIT = re.compile(r"(?:replica_groups|source_target_pairs)=\{(\{[\d,]*\}(?:,\{[\d,]*\})*)\}")
_IOTA = re.compile(r"replica_groups=\[([\d,]+)\]<=(\[[\d,]+\](?:T\([\d,]+\))?)")
_NAMED = re.compile(r"replica_groups=mesh\[([^\]]*)\](?:, device_ids=\((\[[\d,]+\](?:T\([\d,]+\))?)\))? ?\{([^}]*)\}")
_TILES = re.compile(r"\[([\d,]+)\](?:T\(([\d,]+)\))?")


def groups(line: str) -> Groups:
    """Groups of device numbers in a line of XLA's text; pairs (from, to) of a permutation; () where none are named."""
    explicit, iota, named = _EXPLICIT.search(line), _IOTA.search(line), _NAMED.search(line)
    if explicit:
        return tuple(_numbers(part) for part in re.findall(r"\{([\d,]*)\}", explicit[1]))
    if iota:
        return _rows(_tiled(iota[2]).reshape(_numbers(iota[1])))
    return _along(*named.groups()) if named else ()


def axes_of(found: Groups, mesh: Mesh) -> str:
    """Names of the mesh axes along which members of a group differ, `data+fsdp`; the program numbers its devices in
    the order of the mesh.
    """
    places = np.array([np.unravel_index(range(mesh.size), mesh.devices.shape)])[0].T
    differ = np.zeros(places.shape[1], bool)
    for group in found:
        members = places[list(group)]
        differ |= np.any(members != members[:1], axis=0)
    return "+".join(name for name, differs in zip(mesh.axis_names, differ, strict=True) if differs)


def _along(mesh: str, order: str | None, names: str) -> Groups:
    """Groups of a mesh that the program names itself: `'a'=2,'b'=4`, the order of its devices, the axes joined."""
    sizes = {part.split("=")[0]: int(part.split("=")[1]) for part in mesh.split(",")}
    shape = tuple(sizes.values())
    devices = (np.arange(math.prod(shape)) if order is None else _tiled(order)).reshape(shape)
    joined = [list(sizes).index(name.strip()) for name in names.split(",")]
    last = np.moveaxis(devices, joined, range(-len(joined), 0))
    return _rows(last.reshape(-1, math.prod(shape[i] for i in joined)))


def _tiled(text: str) -> np.ndarray:
    """`[4,2]T(1,0)`: the numbers 0, 1, ... in that shape, transposed."""
    shape, order = _TILES.fullmatch(text).groups()  # pyright: ignore[reportOptionalMemberAccess] -- matched before
    devices = np.arange(math.prod(_numbers(shape))).reshape(_numbers(shape))
    return devices.transpose(_numbers(order)) if order else devices


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part)


def _rows(matrix: np.ndarray) -> Groups:
    return tuple(tuple(map(int, row)) for row in matrix)
