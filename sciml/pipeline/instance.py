"""One held-out sample as an experiment: sensors read it with noise, a PINN reconstructs it and its coefficients."""

from __future__ import annotations

import dataclasses
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
from sciml.pinn.information import smallest_errors
from sciml.pinn.model import PINN, PINNConfig, coordinate_names, point_spec
from sciml.pinn.network import has_zero_dirichlet_faces
from sciml.pinn.objectives import BoundaryResidual, PointResidual
from sciml.pinn.scales import residual_sizes, steady_field_sizes
from sciml.pipeline.family import NOISE, SENSORS
from sciml.pipeline.generation import Simulation
from sciml.problem import Problem
from sciml.recipe import Component
from sciml.solvers import integrate
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
        """Mean and size of each field, from the readings, else from the initial field or the forcing.

        The size is the standard deviation of what is known: nothing here looks at the solution.
        """
        readings = self.readings()
        if readings:
            known = {name: readings[name] for name in self.problem.field_names}
        elif self.problem.is_evolution:
            known = {n: np.asarray(v) for n, v in self.problem.initial_values(self.simulation.grid).items()}
        else:
            return {name: (0.0, size) for name, size in steady_field_sizes(self.problem).items()}
        return {name: (float(values.mean()), float(values.std()) or 1.0) for name, values in known.items()}

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
        names = coordinate_names(self.problem.box, self.problem.is_evolution)
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

    def smallest_errors(self) -> dict[str, float]:
        """Relative error of each unknown below which the noise of the readings allows no method, one sigma."""
        config, simulation = self.config, self.simulation
        if not (config.unknown and config.sensors and config.noise):
            return {}
        equation, spread = self.problem.equation, {n: config.noise * v.std() for n, v in self.truth.items()}

        def readings(coefficients: dict[str, Any]) -> jax.Array:
            problem = dataclasses.replace(self.problem, equation=dataclasses.replace(equation, **coefficients))
            fields = integrate(problem, simulation.grid, simulation.method, simulation.times_or_none)
            space = int(np.prod(simulation.grid.shape))
            rows = [f.reshape(-1, space)[:, self.sensors] / spread[n] for n, f in fields.items()]
            return jnp.stack(rows)

        return smallest_errors(readings, {n: float(getattr(equation, n)) for n in config.unknown}, noise=1.0)

    def model(self) -> PINN:
        """The network, not yet trained."""
        return self.config.build(self.problem, self.scales(), self.guesses(), seed=self.seed)

    def spec(self, statistics: dict[str, Statistics]) -> Spec:
        """Points in, fields out."""
        return point_spec(self.problem, statistics)

    def objective(self, data: float, residual: float) -> Objective:
        """Readings, residual of the equation, and the face conditions that are not built in."""
        scales = {name: std for name, (_, std) in self.scales().items()}
        inputs = coordinate_names(self.problem.box, self.problem.is_evolution)
        terms: dict[str, tuple[Objective, float]] = {}
        if self.config.sensors and data:
            misfit = Data(self.problem.field_names, relative=False, inputs=inputs, scales=tuple(scales.values()))
            terms["data"] = (misfit, data)
        if residual:
            config = self.config
            settings = {"early": config.early, "resample": config.resample, "seed": self.seed}
            sizes = residual_sizes(self.problem, scales)
            misfit = PointResidual(self.problem, points=config.points, scales=sizes, **settings)
            terms["residual"] = (misfit, residual)
        if self.problem.boundary and not has_zero_dirichlet_faces(self.problem):
            faces = BoundaryResidual(self.problem, max(self.config.points // 16, 8), scales)
            terms["boundary"] = (faces, residual or 1.0)
        return Weighted(terms)

    def some_points(self, count: int) -> dict[str, np.ndarray]:
        """Coordinates of a few points, one row each."""
        rows = np.linspace(0, len(self.points) - 1, count).astype(int)
        names = coordinate_names(self.problem.box, self.problem.is_evolution)
        return {name: self.points[rows, i] for i, name in enumerate(names)}

    def predict(self, model: nnx.Module) -> dict[str, np.ndarray]:
        """The model's fields at all stored points, in the shape of `truth`."""
        names = coordinate_names(self.problem.box, self.problem.is_evolution)
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
