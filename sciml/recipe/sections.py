"""The sections of a recipe, as frozen models that refuse unknown keys. Units are SI unless a component says else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal, Self

from annotated_types import Ge, Gt, Lt, MinLen
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    Strict,
    ValidationError,
    ValidationInfo,
    WrapValidator,
    model_serializer,
    model_validator,
)
from pydantic_core import ErrorDetails, InitErrorDetails

from sciml.recipe.components import Component, Of
from sciml.recipe.document import PlacedDict
from sciml.recipe.messages import again, failure, missing_key, problem, unknown_key
from sciml.recipe.paths import ExistingFile
from sciml.recipe.values import WHOLE, Count, Natural, Number, Positive, Switch, Text, in_one_message
from sciml.spec import DType

AxisName = Literal["x", "y", "z"]
Arithmetic = Literal["bfloat16", "float32", "float64"]
OneOrMore = BeforeValidator(
    lambda value: [value] if isinstance(value, str) else value, json_schema_input_type=str | tuple[str, ...]
)
Names = Annotated[tuple[Text, ...], MinLen(1), OneOrMore]
Times = Annotated[
    Count | Annotated[tuple[Number, ...], MinLen(1)],
    in_one_message("a whole number >= 1 or a list of numbers"),
]
Points = Annotated[Text | tuple[Number, ...], in_one_message("text or a list of numbers")]
Share = Annotated[int | float, in_one_message("a share between 0 and 1 or a whole number >= 1"), Gt(0)]
Weight = Annotated[Number, Ge(0)]
Coefficient = Annotated[Component | float, Of(("field",), number=True)]


class Section(BaseModel):
    """A mapping of a recipe: frozen, and an unknown key is a mistake that names the nearest known one."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    @model_validator(mode="wrap")
    @classmethod
    def _name_the_nearest_key(cls, value: Any, handler: Callable[[Any], Self]) -> Self:
        try:
            return handler(value)
        except ValidationError as error:
            raise failure(cls._reworded(details) for details in error.errors(include_url=False)) from None

    @classmethod
    def _reworded(cls, details: ErrorDetails) -> InitErrorDetails:
        location = details["loc"]
        if details["type"] == "extra_forbidden" and len(location) == 1:
            return unknown_key((), str(location[0]), cls.model_fields)
        return again(details)


class Axis(Section):
    """One axis of the box: from `lower` to `upper` (m); `periodic` axes have no faces."""

    lower: Number = Field(default=0.0, description="start of the axis, m")
    upper: Number = Field(default=1.0, description="end of the axis, m")
    periodic: Switch = Field(default=False, description="the end of the axis is its start")

    @model_validator(mode="after")
    def _has_length(self) -> Self:
        if self.upper <= self.lower:
            raise failure([problem(("upper",), f"must be > lower, which is {self.lower:g}", self.upper)])
        return self


class Dirichlet(Section):
    """u = value on a face."""

    kind: Literal["dirichlet"] = "dirichlet"
    value: Coefficient = 0.0


class Neumann(Section):
    """du/dn = value on a face, with the outward normal n."""

    kind: Literal["neumann"] = "neumann"
    value: Coefficient = 0.0


class Robin(Section):
    """alpha u + beta du/dn = value on a face, with the outward normal n."""

    kind: Literal["robin"] = "robin"
    alpha: Number
    beta: Number
    value: Coefficient = 0.0

    @model_validator(mode="after")
    def _is_a_condition(self) -> Self:
        if self.alpha == 0 and self.beta == 0:
            raise failure([problem(("alpha",), "alpha or beta must not be 0", self.alpha)])
        return self


CONDITIONS: dict[str, type[Section]] = {"dirichlet": Dirichlet, "neumann": Neumann, "robin": Robin}


def _condition(value: Any, handler: Callable[[Any], Any], info: ValidationInfo) -> Any:
    if isinstance(value, Section):
        return handler(value)
    given = {"kind": value} if isinstance(value, str) else value
    if not isinstance(given, Mapping):
        raise failure([problem((), "must be a boundary condition: {kind: dirichlet, value: 0.0}", value)])
    if "kind" not in given:
        raise failure([missing_key((), "kind")])
    if given["kind"] not in CONDITIONS:
        kind, known = given["kind"], " | ".join(CONDITIONS)
        raise failure([problem(("kind",), f"must be a boundary condition ({known})", kind)])
    return CONDITIONS[given["kind"]].model_validate(given, context=info.context)


Condition = Annotated[
    Dirichlet | Neumann | Robin,
    WrapValidator(_condition, json_schema_input_type=Dirichlet | Neumann | Robin | Literal["dirichlet", "neumann"]),
]


class ProblemSection(Section):
    """Equation, box, conditions on its faces, initial fields, sources, and the time span (s)."""

    equation: Annotated[Component, Of(("equation",))]
    domain: Annotated[dict[AxisName, Axis], MinLen(1)]
    boundary: dict[str, Condition] = Field(default={}, description="one condition per face: x-, x+, y-, ...")
    initial: dict[str, Coefficient] = Field(default={}, description="a field, or a number, per unknown")
    source: dict[str, Coefficient] = Field(default={}, description="right-hand side, per unknown")
    horizon: Positive | None = Field(default=None, description="end of the simulated time, s (evolution only)")

    @property
    def faces(self) -> tuple[str, ...]:
        """Faces of the bounded axes, in order: x-, x+, y-, y+."""
        bounded = [name for name, axis in self.domain.items() if not axis.periodic]
        return tuple(f"{name}{side}" for name in bounded for side in "-+")


class Samples(Section):
    """How many samples are made for each purpose."""

    train: Count
    validation: Natural = 0
    test: Count = 1

    @property
    def total(self) -> int:
        """All of them."""
        return self.train + self.validation + self.test


class Splits(Section):
    """How the samples of a user's file are divided: three shares of all, or three numbers of samples."""

    train: Share = 0.8
    validation: Share = 0.1
    test: Share = 0.1

    @model_validator(mode="after")
    def _add_up(self) -> Self:
        sizes = (self.train, self.validation, self.test)
        whole = all(isinstance(size, int) for size in sizes)
        shares = all(isinstance(size, float) for size in sizes)
        if not whole and not (shares and sum(sizes) <= 1 + 1e-9):
            what = "must be three shares that sum to at most 1 (0.8, 0.1, 0.1) or three whole numbers"
            raise failure([problem((), what, list(sizes))])
        return self


class GeneratedData(Section):
    """Samples that a solver makes: the grid (or the error to be reached), saved times, method and number of samples."""

    grid: Annotated[dict[AxisName, Annotated[int, Strict(), Ge(4), WHOLE]], MinLen(1)] | None = Field(
        default=None, description="points per axis; left out where `error` chooses them"
    )
    error: Annotated[Number, Ge(1e-12), Lt(1)] | None = Field(
        default=None, description="relative L2 error that grid and time step are chosen for, instead of both"
    )
    times: Times | None = Field(
        default=None, description="number of equally spaced saved times after t = 0, or a list of times in s"
    )
    method: Annotated[Component, Of(("method",))]
    samples: Samples
    dtype: DType = "float64"
    quantities: tuple[Annotated[Component, Of(("quantity",))], ...] = ()

    @model_validator(mode="wrap")
    @classmethod
    def _leaves_the_choice(cls, value: Any, handler: Callable[[Any], Self]) -> Self:
        found = [] if not isinstance(value, Mapping) else list(cls._contradictions(value))
        if not found:
            return handler(value)
        try:
            handler(value)
        except ValidationError as error:
            found += [again(details) for details in error.errors(include_url=False)]
        raise failure(found)

    @staticmethod
    def _contradictions(given: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
        method, error = given.get("method"), given.get("error")
        if error is None and given.get("grid") is None:
            yield problem(("grid",), "this key is required, or `error`, which chooses the points", at_key=True)
        elif error is not None and given.get("grid") is not None:
            yield problem(("grid",), "data.error chooses the points: delete this key, or data.error", given["grid"])
        if error is not None and isinstance(method, Mapping) and "dt" in method:
            what = "data.error chooses the time step: delete this key, or data.error"
            yield problem(("method", "dt"), what, method["dt"])

    @model_serializer(mode="wrap")
    def _without_the_choice(self, handler: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        """A step that `error` chooses is not written, nor a key that says nothing: older recipes keep their hash."""
        del info
        written = handler(self)
        if self.error is None:
            del written["error"]
        else:
            del written["grid"]
            written["method"] = {k: v for k, v in written["method"].items() if k != "dt"}
        return written


class FileData(Section):
    """Samples from a user's HDF5 or npz file: arrays by name, the first axis of each counts the samples."""

    file: ExistingFile = Field(description="an .h5, .hdf5 or .npz file, relative to this recipe, or s3://bucket/key")
    input: Names = Field(description="name of the input array, or a list of names")
    output: Names = Field(description="name of the output array, or a list of names")
    parameters: Annotated[tuple[Text, ...], OneOrMore] = Field(
        default=(), description="arrays with one number per sample"
    )
    axes: dict[str, tuple[Text, ...]] = Field(
        default={}, description="per array, names of its axes after the first: {u: [time, x]}"
    )
    periodic: tuple[Text, ...] = Field(default=(), description="names of the periodic axes")
    coordinates: dict[str, Points] = Field(
        default={}, description="per axis: the points, or the name of the array in the file that holds them"
    )
    units: dict[str, Text] = Field(default={}, description="unit of each array, parameter and axis")
    splits: Splits | None = Field(
        default=None, description="those of a file that `sciml data merge` wrote; of any other 0.8, 0.1 and 0.1, drawn"
    )

    def arguments(self) -> dict[str, Any]:
        """Keyword arguments of `sciml.data.open_arrays`, without `seed`."""
        names = ("file", "input", "output", "parameters", "axes", "periodic", "coordinates", "units")
        return {**{name: getattr(self, name) for name in names}, "splits": self.splits and self.splits.model_dump()}


def _which_data(value: Any, handler: Callable[[Any], Any], info: ValidationInfo) -> Any:
    """A mapping with the key `file` is the user's own data; one message then speaks of one of the two."""
    if not isinstance(value, Mapping):
        return handler(value) if isinstance(value, Section) else GeneratedData.model_validate(value)
    chosen = FileData if "file" in value else GeneratedData
    return chosen.model_validate(value, context=info.context)


DataSection = Annotated[GeneratedData | FileData, WrapValidator(_which_data)]


class ObjectiveSection(Section):
    """Weights of the loss: misfit to the data and residual of the equation."""

    data: Weight = 1.0
    residual: Weight = Field(default=0.0, description="1.0 if left out for a model of one instance (pinn)")

    @model_validator(mode="after")
    def _asks_for_something(self) -> Self:
        if self.data == 0 and self.residual == 0:
            raise failure([problem((), "data or residual must be > 0", {"data": 0, "residual": 0})])
        return self


def _adam() -> Any:
    return Of(("optimizer",)).check("adam")


class TrainSection(Section):
    """How a model is trained: optimizer, number of steps, samples per step, loss, checkpoints, precision."""

    optimizer: Annotated[Component, Of(("optimizer",))] = Field(default_factory=_adam)
    steps: Count = 4000
    batch: Count = Field(default=32, description="samples per step, over all devices")
    base_batch: Count | None = Field(
        default=None, description="batch that the learning rate was chosen for; it grows linearly with `batch` beyond"
    )
    objective: ObjectiveSection = ObjectiveSection()
    checkpoint_every: Count = Field(default=500, description="steps between checkpoints")
    precision: Arithmetic = Field(
        default="float32", description="of parameters, batches and arithmetic; bfloat16 keeps float32 parameters"
    )


class ModelSection(Section):
    """A model and its training; in YAML the options of the model stand beside the key `train`."""

    component: Annotated[Component, Of(("model",), beside=("train",))]
    train: TrainSection = Field(default_factory=lambda: TrainSection())

    @model_validator(mode="wrap")
    @classmethod
    def _set_train_apart(cls, value: Any, handler: Callable[[Any], Self]) -> Self:
        if isinstance(value, str):
            value = {"kind": value}
        if not isinstance(value, Mapping) or "component" in value:
            return handler(value)
        component = PlacedDict({key: inner for key, inner in value.items() if key != "train"})
        component.where = getattr(value, "where", "")
        apart: dict[str, Any] = {"component": component}
        if "train" in value:
            apart["train"] = value["train"]
        try:
            return handler(apart)._with_the_equation()
        except ValidationError as error:
            raise failure(cls._without_component(details) for details in error.errors(include_url=False)) from None

    @property
    def of_one_instance(self) -> bool:
        """Whether the model is fitted to a single sample, which its class says by `task = "instance"`."""
        return dict(self.component.info.constants).get("task") == "instance"

    def _with_the_equation(self) -> Self:
        """A model of one instance is trained on the equation as well, unless the recipe gives `residual` itself."""
        objective = self.train.objective
        if not self.of_one_instance or "residual" in objective.model_fields_set:
            return self
        train = self.train.model_copy(update={"objective": objective.model_copy(update={"residual": 1.0})})
        return self.model_copy(update={"train": train})

    @staticmethod
    def _without_component(details: ErrorDetails) -> InitErrorDetails:
        reworded = again(details)
        location = details["loc"]
        return {**reworded, "loc": location[1:] if location[:1] == ("component",) else location}

    @model_serializer(mode="wrap")
    def _beside_each_other(self, handler: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        del info
        return {**self.component.plain(), "train": handler(self)["train"]}
