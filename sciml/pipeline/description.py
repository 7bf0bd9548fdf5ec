"""What a run would do, told without doing it: the resolved recipe, parameter counts, memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from sciml.pipeline.tasks import Context, task_of
from sciml.recipe import ModelSection, Recipe
from sciml.spec import Variable
from sciml.training.state import parameter_count

COPIES = 4
"""Parameters, gradient and two moments: what a first-order optimizer keeps per parameter."""


def describe(recipe: Recipe) -> str:
    """The resolved recipe, the size of the data, and per model its parameters and memory; nothing is written."""
    context = Context(recipe, Path())
    layout = context.layout
    lines = [recipe.to_yaml().rstrip(), ""]
    lines.append(f"# data: {layout.samples} samples, {megabytes(layout.samples * layout.sample_bytes)}")
    for name, section in recipe.models.items():
        model, inputs = task_of(section).outline(context, section)
        count = parameter_count(model)
        memory = megabytes(estimated_memory(model, inputs, section))
        lines.append(f"# model {name}: {count:,} parameters, at most about {memory} while training (estimate)")
    return "\n".join(lines)


def estimated_memory(model: nnx.Module, inputs: tuple[Variable, ...], section: ModelSection) -> int:
    """Bytes: parameters with gradient and moments, and every intermediate value of one batch (an upper bound)."""
    item = np.dtype(section.train.precision).itemsize
    graphdef, state = nnx.split(model)
    sample = {v.name: jnp.zeros(v.shape) for v in inputs}
    program: Any = jax.make_jaxpr(lambda s, x: nnx.merge(graphdef, s)(x))(state, sample)
    values = sum(int(np.prod(out.aval.shape)) for equation in program.eqns for out in equation.outvars)
    return COPIES * parameter_count(model) * item + section.train.batch * values * item


def megabytes(count: int) -> str:
    """Bytes as text with three digits."""
    return f"{count / 2**20:.3g} MiB"
