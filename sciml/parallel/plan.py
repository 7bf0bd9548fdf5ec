"""How a training is laid over devices: data, not code. Models and objectives never mention devices."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Literal, TypeAlias, final

import jax
from jax.sharding import AbstractMesh, AxisType, Mesh

from sciml import axes
from sciml.errors import ConfigError
from sciml.parallel.names import AXES, DATA, DOMAIN, EXPERT, PIPELINE, PORTIONS, ROW_AXES, TENSOR
from sciml.training.state import Precision

SPLIT_BY: Mapping[str, str] = {
    axes.HIDDEN: TENSOR,
    axes.HEADS: TENSOR,
    axes.SPECTRAL: TENSOR,
    axes.LAYERS: PIPELINE,
    axes.EXPERTS: EXPERT,
    axes.SPACE: DOMAIN,
}
"""Which mesh axis splits which logical axis of a model."""
FREE = (axes.HIDDEN, axes.HEADS, axes.SPECTRAL)
"""Logical axes that a plan may leave whole while `tensor` splits others."""
Schedule: TypeAlias = Literal["gpipe", "1f1b"]
Attention: TypeAlias = Literal["ring", "all_to_all"]
Transform: TypeAlias = Literal["dft", "pencil"]
Compression: TypeAlias = Literal["none", "powersgd", "one_bit"]


@final
@dataclass(frozen=True)
class Plan:
    """Layout of a training over devices; the sizes multiply to the number of devices.

    data: parts of a batch; -1 takes the devices that the other axes leave. fsdp: parts of a batch that also share
    the storage of what `zero` names: 1 the optimizer state, 2 gradients too, 3 parameters too. tensor: parts of
    hidden widths, heads and spectral channels. pipeline: parts of a stack of layers. expert: parts of the experts,
    and of a batch. domain: parts of space, or of the points of a model without a grid.
    accumulate: portions in which each device works through its rows. remat: recompute activations in the backward
    pass. microbatches, schedule: of the pipeline. attention, transform: how split tokens and split grids meet.
    compress, rank, warmup: of the gradients that cross `data`. whole: logical axes that tensor shall not split.
    precision: of parameters, batches and arithmetic; bfloat16 keeps float32 parameters.
    Raises ConfigError for sizes or combinations that no set of devices can follow.
    """

    data: int = 1
    fsdp: int = 1
    tensor: int = 1
    pipeline: int = 1
    expert: int = 1
    domain: int = 1
    zero: int = 0
    accumulate: int = 1
    remat: bool = False
    microbatches: int = 1
    schedule: Schedule = "gpipe"
    attention: Attention = "ring"
    transform: Transform = "dft"
    compress: Compression = "none"
    rank: int = 2
    warmup: int = 100
    precision: Precision = "float64"
    whole: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _refuse_bad_sizes(self)
        _refuse_unknown_names(self.whole)
        _refuse_idle_portions(self)
        if (self.fsdp > 1) != (self.zero > 0):
            raise ConfigError(
                "the axis fsdp and ZeRO belong together",
                expected="zero 1, 2 or 3 with fsdp > 1, or zero 0 with fsdp 1",
                got=f"zero {self.zero}, fsdp {self.fsdp}",
                reason="fsdp is the axis over which ZeRO stores optimizer state, gradients and parameters in parts",
                fix=f"fsdp: {max(self.fsdp, 2)}, zero: 3   # or data: {self.fsdp}, zero: 0",
            )
        if self.compress != "none" and self.zero == 1:
            raise ConfigError(
                "compressed gradients need the gradients that ZeRO leaves to each device",
                got=f"compress: {self.compress}, zero: 1",
                reason="stage 1 sums whole gradients on every device before it takes its part",
                fix="zero: 2, or compress: none",
            )
        if self.compress != "none" and self.precision == "float64":
            raise ConfigError(
                "compressed gradients are approximate, float64 is not",
                got=f"compress: {self.compress}, precision: float64",
                fix="precision: float32, or compress: none",
            )

    @property
    def sizes(self) -> dict[str, int]:
        """Mesh axis -> number of parts, `data: -1` resolved with the devices that there are."""
        given = {name: getattr(self, name) for name in AXES}
        if self.data == -1:
            others = math.prod(size for name, size in given.items() if name != DATA)
            given[DATA] = max(len(jax.devices()) // others, 1)
        return given

    @property
    def devices(self) -> int:
        """Number of devices in use."""
        return math.prod(self.sizes.values())

    def mesh(self) -> Mesh:
        """The device mesh with all six axes; ConfigError where the devices are too few or do not divide."""
        devices, sizes = jax.devices(), self.sizes
        if self.devices > len(devices) or (self.data == -1 and self.devices != len(devices)):
            product = " x ".join(f"{name} {size}" for name, size in sizes.items() if size > 1) or "1"
            raise ConfigError(
                "the plan does not fit the devices",
                expected=f"sizes that multiply to at most {len(devices)}"
                + (", and divide it as data is -1" if self.data == -1 else ""),
                got=f"{product} = {self.devices}",
                reason=f"{len(devices)} device(s) found; more devices than there are cannot be used",
                fix=f"{_smaller(sizes, len(devices))} in the plan" + (f", zero: {self.zero}" if self.zero else ""),
            )
        kinds = (AxisType.Auto,) * len(AXES)
        return jax.make_mesh(tuple(sizes.values()), AXES, axis_types=kinds, devices=devices[: self.devices])

    def abstract_mesh(self) -> AbstractMesh:
        """The same mesh of devices that need not be there."""
        return AbstractMesh(tuple(self.sizes.values()), AXES, axis_types=(AxisType.Auto,) * len(AXES))

    def row_parts(self, *, has_grid: bool) -> dict[str, int]:
        """What divides the rows of a batch: mesh axes, and the portions of a device."""
        names = ROW_AXES if has_grid else (*ROW_AXES, DOMAIN)
        return {name: self.sizes[name] for name in names} | {name: getattr(self, name) for name in PORTIONS}

    def written(self) -> str:
        """As it is written in a recipe: `{data: 4, fsdp: 2, zero: 2}`."""
        found: dict[str, int | str] = {name: size for name, size in self.sizes.items() if size > 1} or {DATA: 1}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name not in (*AXES, "precision") and value != field.default:
                found[field.name] = _yaml(value)
        return "{" + ", ".join(f"{name}: {value}" for name, value in found.items()) + "}"

    def used(self, *names: str) -> tuple[str, ...]:
        """Those of the mesh axes that have more than one part."""
        return tuple(name for name in names if self.sizes[name] > 1)

    def mesh_axis(self, logical: str | None) -> str | None:
        """The mesh axis that splits a logical axis; None where it stays whole."""
        chosen = None if logical in self.whole else SPLIT_BY.get(logical or "")
        return chosen if chosen and self.sizes[chosen] > 1 else None

    def placement(self, splits_space: bool) -> axes.Placement:
        """What the layers of a model see of this plan."""
        split = {}
        for logical in axes.LOGICAL:
            name = self.mesh_axis(logical)
            if name and (logical != axes.SPACE or splits_space):
                split[logical] = (name, self.sizes[name])
        chosen = ("remat", "microbatches", "schedule", "attention", "transform")
        return axes.Placement(split, {name: getattr(self, name) for name in chosen})


def _refuse_bad_sizes(plan: Plan) -> None:
    free = (DATA, "zero")
    counts = {f.name: getattr(plan, f.name) for f in fields(plan) if f.type == "int" and f.name not in free}
    bad = {name: value for name, value in counts.items() if value < 1}
    if plan.data < -1 or plan.data == 0:
        bad[DATA] = plan.data
    if plan.zero not in (0, 1, 2, 3):
        bad["zero"] = plan.zero
    if bad:
        raise ConfigError(
            "a plan's sizes are whole numbers from 1 (data: or -1 for all devices; zero: 0 to 3)",
            got=", ".join(f"{name} {value}" for name, value in bad.items()),
            fix="Plan(data=1, accumulate=1)",
        )


def _yaml(value: object) -> str:
    """Plain values as YAML spells them."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(str, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _refuse_idle_portions(plan: Plan) -> None:
    if plan.pipeline == 1 and plan.microbatches > 1:
        raise ConfigError(
            "microbatches belong to a pipeline",
            expected="pipeline > 1",
            got=f"pipeline 1, microbatches {plan.microbatches}",
            fix=f"accumulate: {plan.microbatches}   # portions without a pipeline",
        )


def _refuse_unknown_names(whole: tuple[str, ...]) -> None:
    strange = [name for name in whole if name not in FREE]
    if strange:
        raise ConfigError(
            "`whole` of the plan matches nothing",
            expected=f"some of {list(FREE)}",
            got=strange,
            reason="layers, experts and space are split by axes of their own: give these the size 1",
            fix=f"whole: [{FREE[-1]}]",
        )


def _smaller(sizes: dict[str, int], count: int) -> str:
    """The same axes, cut to what `count` devices allow."""
    kept = {}
    for name in reversed(AXES):
        kept[name] = math.gcd(sizes[name], count)
        count //= kept[name]
    kept[DATA] *= count
    return ", ".join(f"{name}: {kept[name]}" for name in AXES if kept[name] > 1) or "data: 1"
