"""A model as one batched function of arrays: exported by `jax.export`, read back, or built again."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import export
from jax.stages import Wrapped

from sciml import registry
from sciml.errors import DataError
from sciml.spec import Spec, Statistics
from sciml.types import Array

Function: TypeAlias = Callable[[dict[str, Any]], dict[str, Array]]
"""A compiled function, batches of inputs to batches of outputs."""
PLATFORMS = ("cpu", "cuda")
MODEL_KEY, STATISTICS_KEY, PRECISION_KEY = "model", "statistics", "precision"


def batched_function(model: nnx.Module) -> Wrapped:
    """One sample's model as a compiled function of a batch; the parameters are constants of the program.

    Outputs have the dtype of the parameters. Inputs are best given as float64: a model subtracts their mean itself.
    """
    graph, state = nnx.split(model)
    dtype = model_dtype(model)

    def one(sample: dict[str, Any]) -> dict[str, Array]:
        return {name: value.astype(dtype) for name, value in nnx.merge(graph, state)(sample).items()}

    return jax.jit(jax.vmap(one))


def model_dtype(model: nnx.Module) -> np.dtype:
    """The dtype of the trained parameters (the widest, if they differ)."""
    leaves = jax.tree.leaves(nnx.state(model, nnx.Param))
    return np.dtype(jnp.result_type(*leaves)) if leaves else np.dtype(np.float64)


def serialize(model: nnx.Module, spec: Spec) -> bytes:
    """The program with a symbolic batch size "B", for CPU and CUDA; its inputs are float64 whatever the model is."""
    (size,) = export.symbolic_shape("B")
    template = {v.name: jax.ShapeDtypeStruct((size, *v.shape), jnp.float64) for v in spec.inputs}
    return bytes(export.export(batched_function(model), platforms=PLATFORMS)(template).serialize())


def deserialize(blob: bytes) -> Function:
    """Inverse of `serialize`; raises what jax raises when the program is too old for it."""
    return jax.jit(export.deserialize(bytearray(blob)).call)


def pack_state(model: nnx.Module) -> bytes:
    """Every variable of the model by its path, as an npz file."""
    flat = nnx.to_flat_state(nnx.state(model))
    arrays = {"/".join(map(str, path)): np.asarray(variable[...]) for path, variable in flat}
    return npz(arrays)


def rebuild(config: Mapping[str, Any], spec: Spec, content: bytes) -> nnx.Module:
    """The model from its kind, options and saved variables. Raises DataError when they do not fit."""
    described = config.get(MODEL_KEY)
    described = {"kind": described} if isinstance(described, str) else dict(described or {})
    kind = described.pop("kind", None)
    if kind is None or STATISTICS_KEY not in config:
        raise DataError(
            "this surrogate cannot be built again from its parameters",
            expected=f"kind, options and statistics of the model in config.json: {sorted(config)}",
            got=f"kind {kind!r}",
            fix="export it again from its run with this version",
        )
    options = {k: tuple(v) if isinstance(v, list) else v for k, v in described.items()}
    if PRECISION_KEY in config:
        options["dtype"] = config[PRECISION_KEY]
    statistics = {name: Statistics.from_json(value) for name, value in config[STATISTICS_KEY].items()}
    model = registry.load("model", kind)(**options).build(spec, statistics, seed=0)
    _fill(model, read_npz(content))
    return model


def _fill(model: nnx.Module, arrays: Mapping[str, np.ndarray]) -> None:
    flat = {"/".join(map(str, path)): variable for path, variable in nnx.to_flat_state(nnx.state(model))}
    if set(flat) != set(arrays):
        raise DataError(
            "the saved parameters are not those of the model",
            expected=sorted(set(flat) - set(arrays)) or "nothing more",
            got=sorted(set(arrays) - set(flat)) or "nothing more",
            reason="the network's code has changed since the export",
        )
    state = nnx.state(model)
    filled = [(path, v.replace(jnp.asarray(arrays["/".join(map(str, path))]))) for path, v in nnx.to_flat_state(state)]
    nnx.update(model, nnx.from_flat_state(filled))


def npz(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Arrays as the bytes of an npz file."""
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=False, **dict(arrays))
    return stream.getvalue()


def read_npz(content: bytes) -> dict[str, np.ndarray]:
    """Arrays of an npz file; objects are refused."""
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        return {name: file[name] for name in file.files}
