"""The section `plan` of a recipe: how a training is laid over devices."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from annotated_types import Ge, Le
from pydantic import BeforeValidator, Field, Strict, model_validator

from sciml.parallel.names import AXES, PORTIONS, ROW_AXES
from sciml.recipe.messages import failure, problem
from sciml.recipe.sections import Section
from sciml.recipe.values import WHOLE, Count
from sciml.registry import suggestion

LogicalAxis = Literal["hidden", "heads", "spectral"]
AUTO = "auto"
CHOSEN = (*AXES, "zero", "remat", "microbatches")
"""What `auto` decides."""


class PlanSection(Section):
    """How a training is laid over devices. `plan: auto` takes the fastest layout that the cost model finds."""

    auto: bool = Field(default=False, description="choose sizes and stage by the cost model (or write `plan: auto`)")
    data: Annotated[int, Strict(), Ge(-1), WHOLE] = Field(
        default=1, description="devices that share a batch; -1 takes all that the other axes leave"
    )
    fsdp: Count = Field(default=1, description="devices that share a batch and store what `zero` names in parts")
    tensor: Count = Field(default=1, description="parts of hidden widths, attention heads and spectral channels")
    pipeline: Count = Field(default=1, description="parts of a stack of layers")
    expert: Count = Field(default=1, description="parts of the experts of a mixture")
    domain: Count = Field(default=1, description="parts of space, or of the points of a pinn")
    zero: Annotated[int, Strict(), Ge(0), Le(3), WHOLE] = Field(
        default=0, description="ZeRO stage: 1 optimizer state in parts, 2 gradients too, 3 parameters too"
    )
    accumulate: Count = Field(default=1, description="portions in which each device works through its share")
    remat: bool = Field(default=False, description="compute activations again in the backward pass, to save memory")
    microbatches: Count = Field(default=1, description="portions that pass through the pipeline")
    schedule: Literal["gpipe", "1f1b"] = Field(default="gpipe", description="order of the pipeline's portions")
    attention: Literal["ring", "all_to_all"] = Field(default="ring", description="how split tokens see each other")
    transform: Literal["dft", "pencil"] = Field(default="dft", description="how a split grid is transformed")
    compress: Literal["none", "powersgd", "one_bit"] = Field(
        default="none", description="compression of the gradients that cross the axis data"
    )
    rank: Count = Field(default=2, description="rank of powersgd")
    warmup: Count = Field(default=100, description="steps before one_bit compresses, until Adam's variance is settled")
    whole: tuple[LogicalAxis, ...] = Field(default=(), description="axes that `tensor` shall not split")

    @model_validator(mode="after")
    def _has_devices(self) -> Self:
        if self.data == 0:
            raise failure([problem(("data",), "must be >= 1, or -1 for all devices", self.data)])
        if (self.fsdp > 1) != (self.zero > 0):
            what = "zero 1, 2 or 3 needs fsdp > 1, and fsdp > 1 needs one of them"
            raise failure([problem(("zero",), what, f"zero {self.zero}, fsdp {self.fsdp}")])
        if self.compress != "none" and self.zero == 1:
            what = "compressed gradients need zero 0, 2 or 3: stage 1 sums whole gradients on every device"
            raise failure([problem(("zero",), what, self.zero)])
        if self.pipeline == 1 and self.microbatches > 1:
            what = "belong to a pipeline: write pipeline > 1, or accumulate for portions without one"
            raise failure([problem(("microbatches",), what, self.microbatches)])
        return self

    @model_validator(mode="after")
    def _chooses_alone(self) -> Self:
        """`auto` chooses what is given here as well: one of the two."""
        given = {name: getattr(self, name) for name in CHOSEN}
        given = {name: value for name, value in given.items() if value != type(self).model_fields[name].default}
        if self.auto and given:
            what = f"auto chooses {' and '.join(given)} itself: leave these out, or auto"
            raise failure([problem((name,), what, value) for name, value in list(given.items())[:1]])
        return self

    @property
    def row_parts(self) -> dict[str, int]:
        """What divides the rows of a batch, as far as it is known before the devices are."""
        sizes = {name: getattr(self, name) for name in (*ROW_AXES, *PORTIONS)}
        return {name: size for name, size in sizes.items() if size > 1}


def _auto(value: Any) -> Any:
    if isinstance(value, str) and value != AUTO:
        raise failure([problem((), f"must be a mapping of sizes, or {AUTO}{suggestion(value, [AUTO])}", value)])
    return {AUTO: True} if value == AUTO else value


PlanField = Annotated[PlanSection, BeforeValidator(_auto, json_schema_input_type=PlanSection | Literal["auto"])]
