"""One held-out sample as an experiment: sensors read it with noise, a PINN reconstructs it and its coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from sciml.data import Dataset
from sciml.errors import ConfigError
from sciml.metrics import relative_l2
from sciml.pinn.model import PINN, PINNConfig, coordinate_names, point_spec
from sciml.pinn.network import has_zero_dirichlet_faces
from sciml.pinn.objectives import BoundaryResidual, PointResidual
from sciml.pipeline.family import NOISE, SENSORS
from sciml.pipeline.generation import Simulation
from sciml.problem import Problem
from sciml.recipe import Component
from sciml.spec import Spec, Statistics
from sciml.training.objective import Data, Objective, Weighted


@dataclass(frozen=True, eq=False)
class Instance:
    """Sample `config.sample` of the test split and everything a PINN needs to know of it."""

    simulation: Simulation
    dataset: Dataset
    config: PINNConfig
    seed: int

    @cached_property
    def number(self) -> int:
        """The id of the sample; `ConfigError` when the test split is shorter."""
        rows = self.dataset.rows("test")
        if self.config.sample >= len(rows):
            raise ConfigError(
                "the PINN's instance is not in the test split",
                expected=f"sample: 0 to {len(rows) - 1}",
                got=self.config.sample,
            )
        return int(rows[self.config.sample])

    @cached_property
    def problem(self) -> Problem:
        """The problem of the sample, with its true coefficients."""
        return self.simulation.family.problem(self.number)

    @cached_property
    def truth(self) -> dict[str, np.ndarray]:
        """The stored fields, (T, *grid.shape) or (*grid.shape)."""
        stored = self.dataset.read(self.problem.field_names, split="test", indices=[self.config.sample])
        return {name: values[0] for name, values in stored.items()}

    @cached_property
    def points(self) -> np.ndarray:
        """Coordinates of all stored values, x, y, z, then t: shape (n, dim[+1])."""
        axes = [*self.simulation.grid.axes]
        if self.problem.is_evolution:
            axes = [self.simulation.times, *axes]
        mesh = np.stack([m.ravel() for m in np.meshgrid(*axes, indexing="ij")], axis=-1)
        return np.roll(mesh, -1, axis=1) if self.problem.is_evolution else mesh

    def scales(self) -> dict[str, tuple[float, float]]:
        """Mean and standard deviation of each field over the readings, without looking at anything else."""
        readings = self.readings()
        found = {}
        for name in self.problem.field_names:
            values = np.asarray(readings.get(name, self.initial_values[name]))
            found[name] = (float(values.mean()), float(values.std()) or 1.0)
        return found

    @cached_property
    def initial_values(self) -> dict[str, np.ndarray]:
        """Initial fields on the grid; zeros for a steady problem."""
        if not self.problem.is_evolution:
            return {name: np.zeros(self.simulation.grid.shape) for name in self.problem.field_names}
        return {name: np.asarray(v) for name, v in self.problem.initial_values(self.simulation.grid).items()}

    @cached_property
    def sensors(self) -> np.ndarray:
        """Indices of the sensors among the points of the grid, drawn once."""
        key = jax.random.fold_in(jax.random.fold_in(jax.random.key(self.seed), SENSORS), self.number)
        total = int(np.prod(self.simulation.grid.shape))
        if self.config.sensors > total:
            raise ConfigError("more sensors than grid points", expected=f"at most {total}", got=self.config.sensors)
        return np.sort(np.asarray(jax.random.permutation(key, total))[: self.config.sensors])

    def readings(self) -> dict[str, np.ndarray]:
        """Noisy values at the sensors at every saved time: coordinates and fields, one row per reading."""
        if not self.config.sensors:
            return {}
        key = jax.random.fold_in(jax.random.fold_in(jax.random.key(self.seed), NOISE), self.number)
        space = int(np.prod(self.simulation.grid.shape))
        rows = (np.arange(0, len(self.points), space)[:, None] + self.sensors).ravel()
        names = coordinate_names(self.problem.domain, self.problem.is_evolution)
        batch = {name: self.points[rows, i] for i, name in enumerate(names)}
        for number, (name, values) in enumerate(self.truth.items()):
            noise = np.asarray(jax.random.normal(jax.random.fold_in(key, number), (len(rows),)))
            batch[name] = values.ravel()[rows] + self.config.noise * values.std() * noise
        return batch

    def guesses(self) -> dict[str, float]:
        """First values of the unknown coefficients: the geometric middle of what the recipe allows."""
        found = {}
        for name in self.config.unknown:
            given = self.simulation.family.section.equation.options.get(name, 0.0)
            ends = [given.options.get(k, 0.0) for k in ("low", "high")] if isinstance(given, Component) else [given]
            found[name] = float(np.prod(ends) ** (1 / len(ends)))
        return found

    def model(self) -> PINN:
        """The network, not yet trained."""
        return self.config.build(self.problem, self.scales(), self.guesses(), seed=self.seed)

    def spec(self, statistics: dict[str, Statistics]) -> Spec:
        """Points in, fields out."""
        return point_spec(self.problem, statistics)

    def objective(self, data: float, residual: float) -> Objective:
        """Readings, residual of the equation, and the face conditions that are not built in."""
        scales = {name: std for name, (_, std) in self.scales().items()}
        inputs = coordinate_names(self.problem.domain, self.problem.is_evolution)
        terms: dict[str, tuple[Objective, float]] = {}
        if self.config.sensors and data:
            misfit = Data(self.problem.field_names, relative=False, inputs=inputs, scales=tuple(scales.values()))
            terms["data"] = (misfit, data)
        if residual:
            settings = {"points": self.config.points, "resample": self.config.resample, "seed": self.seed}
            misfit = PointResidual(self.problem, scales=self._residual_scales(scales), **settings)
            terms["residual"] = (misfit, residual)
        if self.problem.boundary and not has_zero_dirichlet_faces(self.problem):
            faces = BoundaryResidual(self.problem, max(self.config.points // 16, 8), scales)
            terms["boundary"] = (faces, residual or 1.0)
        return Weighted(terms)

    def _residual_scales(self, scales: dict[str, float]) -> dict[str, float]:
        """Size of u_t: field over horizon; of a steady residual: that of its terms, taken to be 1."""
        if not self.problem.is_evolution:
            return dict.fromkeys(scales, 1.0)
        return {name: std / float(self.problem.horizon) for name, std in scales.items()}

    def some_points(self, count: int) -> dict[str, np.ndarray]:
        """Coordinates of a few points, one row each."""
        rows = np.linspace(0, len(self.points) - 1, count).astype(int)
        names = coordinate_names(self.problem.domain, self.problem.is_evolution)
        return {name: self.points[rows, i] for i, name in enumerate(names)}

    def predict(self, model: nnx.Module) -> dict[str, np.ndarray]:
        """The model's fields at all stored points, in the shape of `truth`."""
        names = coordinate_names(self.problem.domain, self.problem.is_evolution)
        sample = {name: jnp.asarray(self.points[:, i]) for i, name in enumerate(names)}
        values = _evaluate(*nnx.split(model), sample)
        return {name: np.asarray(values[name]).reshape(self.truth[name].shape) for name in self.truth}

    def measure(self, model: nnx.Module) -> dict[str, float]:
        """Relative L2 error of the fields, and relative error of each unknown coefficient."""
        predicted = self.predict(model)
        errors = [relative_l2(predicted[name], self.truth[name]) for name in predicted]
        assert isinstance(model, PINN)
        found = {"error": float(np.mean(errors))}
        for name, value in model.coefficients().items():
            true = float(getattr(self.problem.equation, name))
            found[f"{name}_relative_error"] = abs(float(value) / true - 1.0)
        return found


@partial(jax.jit, static_argnums=0)
def _evaluate(graphdef: Any, state: Any, sample: dict[str, Any]) -> dict[str, Any]:
    return jax.vmap(nnx.merge(graphdef, state))(sample)
