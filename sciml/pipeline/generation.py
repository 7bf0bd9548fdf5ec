"""From the problems of a recipe to verified data on disk."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciml.data import Coordinate, Dataset, Generated, Layout, Simulated, generate, open_arrays
from sciml.domain import Grid
from sciml.errors import ConfigError, NumericalError
from sciml.functions import evaluate_on
from sciml.pipeline.continuing import HASH, data_hash
from sciml.pipeline.family import Family, grid_of, saved_times
from sciml.pipeline.progress import Progress
from sciml.pipeline.starting import known_source, starting_fields
from sciml.pipeline.targeting import settled, told
from sciml.problem import Problem
from sciml.recipe import FileData, GeneratedData, Recipe
from sciml.registry import OptionInfo
from sciml.solvers import error_estimate, solve_batch
from sciml.solvers.batch import block_size
from sciml.spec import Variable

CHUNK = 16
ESTIMATED_SAMPLES = 2
TIME = "time"


@dataclass(frozen=True)
class Simulation:
    """The solver side of a recipe: problems, grid, saved times, method, and the layout of what is stored."""

    family: Family
    data: GeneratedData

    @classmethod
    def of(cls, recipe: Recipe, folder: Path | None = None) -> Simulation:
        """The simulation of a recipe whose data are generated; `folder` knows what was chosen for a target error."""
        return cls(Family.of(recipe), settled(recipe, folder))

    @cached_property
    def grid(self) -> Grid:
        """The grid of the stored fields."""
        return grid_of(self.family, self.data)

    @cached_property
    def times(self) -> np.ndarray:
        """Saved times after t = 0."""
        return saved_times(self.family, self.data)

    @cached_property
    def method(self) -> Any:
        """The numerical method."""
        return self.data.method.build()

    @cached_property
    def chunk(self) -> int:
        """Samples per program: one at a time where a field fills the cache, so that a killed run loses one at most."""
        return 1 if block_size(self.grid, len(self.family.field_names), CHUNK) == 1 else CHUNK

    @cached_property
    def quantities(self) -> dict[str, Any]:
        """Quantities of interest by name."""
        return {c.kind: c.build() for c in self.data.quantities}

    @cached_property
    def points(self) -> dict[str, np.ndarray]:
        """Coordinates by axis name, `time` first in an evolution."""
        return {axis: np.asarray(c.values) for axis, c in self._coordinates().items()}

    @cached_property
    def layout(self) -> Layout:
        """Names, units, shapes and coordinates of the data set."""
        return Layout(
            inputs=tuple(self._inputs()),
            outputs=tuple(self._outputs()),
            parameters=tuple(Variable(v.name, v.unit, role="scalar") for v in self.family.varying if not v.is_field),
            quantities=tuple(self._quantities()),
            coordinates=self._coordinates(),
            splits=self.data.samples.model_dump(),
            dtype=self.data.dtype,
        )

    def _inputs(self) -> list[Variable]:
        variables = []
        for v in self.family.varying:
            if v.is_field:
                variables.append(Variable(v.name, v.unit, self.grid.shape, self.grid.box.names))
            if v.coefficients:
                axes = (f"{v.name}_mode",)
                variables.append(Variable(v.coefficient_name, v.unit, (v.coefficients,), axes, role="scalar"))
        return variables

    def _outputs(self) -> list[Variable]:
        shape, axes = self.grid.shape, self.grid.box.names
        if self.family.is_evolution:
            shape, axes = (len(self.times), *shape), (TIME, *axes)
        return [Variable(f.name, f.unit, shape, axes) for f in self.family.equation_class.fields]

    def _quantities(self) -> list[Variable]:
        fields = {f.name: f.unit for f in self.family.equation_class.fields}
        units = {TIME: "s", **{name: self.grid.box.unit for name in self.grid.box.names}}
        return [
            Variable(name, q.unit(fields[q.field or next(iter(fields))], units), role="scalar")
            for name, q in self.quantities.items()
        ]

    def _coordinates(self) -> dict[str, Coordinate]:
        box = self.grid.box
        axes = zip(box.names, self.grid.axes, box.periodic, box.lengths, strict=True)
        found = {n: Coordinate(tuple(points), box.unit, p, length if p else None) for n, points, p, length in axes}
        return {TIME: Coordinate(tuple(self.times), "s"), **found} if self.family.is_evolution else found

    def told(self) -> dict[str, Any]:
        """The problem in plain values: name of the equation, parameters that all samples share, conditions by face."""
        equation, varying = self.family.problem(0).equation, {v.name for v in self.family.varying}
        values = {o.name: getattr(equation, o.name) for o in self.family.section.equation.info.options}
        shared = {k: v for k, v in values.items() if k not in varying and not callable(v) and np.ndim(v) == 0}
        boundary = {face: c.model_dump(mode="json") for face, c in self.family.section.boundary.items()}
        return {
            "equation": self.family.section.equation.kind,
            "fixed_parameters": {k: float(v) for k, v in shared.items() if np.asarray(v).dtype.kind in "fiu"},
            "fixed_initial": self.family.fixed_initial,
            "boundary": boundary,
        }

    def simulate(self, samples: np.ndarray) -> Simulated:
        """Solve the problems with these numbers; failed ones are named, not stored.

        Raises ConfigError (78) for a drawn coefficient outside of the limits that the equation states.
        """
        for number in samples:
            self._refuse_impossible(int(number))
        stacked, times = self.family.stacked(samples), self.times_or_none
        batch = solve_batch(stacked, self.grid, self.method, times=times, chunk=self.chunk)
        failed = {int(samples[i]): str(error) for i, error in batch.failures.items()}
        rows = [self._row(int(n), {k: v[i] for k, v in batch.fields.items()}, failed) for i, n in enumerate(samples)]
        return Simulated({name: np.stack([row[name] for row in rows]) for name in self.layout.names}, failed)

    def _refuse_impossible(self, sample: int) -> None:
        for option in self._limited:
            low, high = map(float, self._extremes(sample)[option.name])
            too_low = (option.minimum is not None and low < option.minimum) or (
                option.above is not None and low <= option.above
            )
            too_high = option.maximum is not None and high > option.maximum
            if too_low or too_high:
                raise ConfigError(
                    f"{option.name} of sample {sample} is not one that the equation allows",
                    expected=f"{option.range} {option.unit or ''}".rstrip(),
                    got=high if too_high else low,
                    reason="its distribution reaches beyond the limits of the equation",
                    fix="a bounded distribution (uniform, log_uniform), or a positive field (lognormal)",
                )

    @cached_property
    def _limited(self) -> list[OptionInfo]:
        """The coefficients of the equation that have limits."""
        options = self.family.section.equation.info.options
        return [o for o in options if not (o.minimum is None and o.maximum is None and o.above is None)]

    @cached_property
    def _extremes(self) -> Callable[[int], dict[str, Any]]:
        """Sample number -> smallest and largest value of every limited coefficient; compiled once."""

        def extremes(sample: Any) -> dict[str, Any]:
            equation = self.family.draw(sample).equation
            values = {o.name: getattr(equation, o.name) for o in self._limited}
            on_grid = {n: evaluate_on(v, self.grid.points, 0.0) if callable(v) else v for n, v in values.items()}
            return {name: (jnp.min(jnp.asarray(v)), jnp.max(jnp.asarray(v))) for name, v in on_grid.items()}

        return jax.jit(extremes)

    @property
    def times_or_none(self) -> np.ndarray | None:
        """The saved times as a solver wants them: None for a steady problem."""
        return self.times if self.family.is_evolution else None

    def _row(self, sample: int, fields: dict[str, Any], failed: dict[int, str]) -> dict[str, np.ndarray]:
        known, initial = jax.device_get(self.record(sample))
        return {**known, **fields, **self.measured(fields, initial if sample not in failed else None)}

    def measured(self, fields: dict[str, Any], initial: dict[str, Any] | None) -> dict[str, np.ndarray]:
        """The quantities of interest of one solution; NaN where it failed (no `initial`)."""
        periodic = self.layout.periodic
        return {
            name: np.asarray(np.nan if initial is None else quantity(fields, self.points, initial, periodic=periodic))
            for name, quantity in self.quantities.items()
        }

    @cached_property
    def record(self) -> Callable[[int], tuple[dict[str, Any], dict[str, Any]]]:
        """Sample number -> (what varies, the fields that the method starts from), on the grid; compiled once."""

        def record(sample: Any) -> tuple[dict[str, Any], dict[str, Any]]:
            problem = self.family.draw(sample)
            start = self.start(problem)
            known: dict[str, Any] = {}
            for v in self.family.varying:
                known |= v.values(problem, self.grid)
                part, name = v.place
                if part == "initial":
                    known[v.name] = start[name]
                elif part == "source" and v.is_field:
                    known[v.name] = _or(known_source(problem, name, self.grid, self.method), known[v.name])
            return known, start

        return jax.jit(record)

    def start(self, problem: Problem) -> dict[str, Any]:
        """The fields that the method starts from, on the grid; none for a steady problem."""
        return starting_fields(problem, self.grid, self.method) if self.family.is_evolution else {}

    def measured_error(self) -> float | None:
        """Mean relative L2 difference of some samples to a run at half the step and twice the resolution.

        None when none of them could be solved: generation itself will name and explain every failed sample.
        """
        errors = []
        for sample in range(min(ESTIMATED_SAMPLES, self.data.samples.total)):
            self._refuse_impossible(sample)
            with contextlib.suppress(NumericalError):
                problem = self.family.problem(sample)
                errors.append(error_estimate(problem, self.grid, self.method, times=self.times_or_none))
        return float(np.mean(errors)) if errors else None


def _or(value: Any, other: Any) -> Any:
    return other if value is None else value


def generate_data(recipe: Recipe, folder: Path, progress: Progress, comm: Any = None) -> Generated | None:
    """Fill `folder/data`; does nothing for a recipe that brings its own file. `comm`: see `generate`."""
    if isinstance(recipe.data, FileData):
        return None
    simulation = Simulation.of(recipe, folder)
    provenance = {
        HASH: data_hash(recipe),
        "seed": recipe.seed,
        "method": simulation.data.method.plain(),
        "solver_dtype": "float64",
    }

    def notes() -> dict[str, Any]:
        measured = simulation.measured_error()
        chosen = told(folder, recipe)
        return {"recipe": recipe.to_yaml(), "measured_relative_error": measured, **chosen, **simulation.told()}

    with progress.task("generating data") as advance:
        return generate(
            folder / "data",
            simulation.layout,
            simulation.simulate,
            chunk=simulation.chunk,
            provenance=provenance,
            notes=notes,
            comm=comm,
            progress=advance,
        )


def open_data(recipe: Recipe, folder: Path) -> Dataset:
    """The data of a recipe, verified: generated ones from the run folder, a user's from their file."""
    if isinstance(recipe.data, GeneratedData):
        return Dataset.open(folder / "data")
    return open_arrays(**recipe.data.arguments(), seed=recipe.seed)
