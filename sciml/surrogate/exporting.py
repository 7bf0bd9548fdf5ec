"""Save a trained model as a folder that a simulation code can load."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from flax import nnx

from sciml import __version__
from sciml.errors import ConfigError
from sciml.operators.predictor import positive_inputs
from sciml.spec import Spec, Variable
from sciml.surrogate import program
from sciml.surrogate.artifact import (
    CONFIG,
    FORMAT,
    MODEL,
    PARAMETERS,
    README,
    SELFTEST,
    VERSION,
    replacing,
    write_files,
)
from sciml.surrogate.loading import OUTPUT_PREFIX, load
from sciml.training.state import parameter_count

SUFFIX = ".sciml"
TOLERANCES = {"float32": 1e-4, "float64": 1e-10}  # other devices sum in another order, not in another precision
PROGRAM_WINDOW = timedelta(days=180)  # jax reads exported programs for about six months


def export(
    model: nnx.Module,
    spec: Spec,
    folder: str | os.PathLike[str],
    *,
    selftest_inputs: Mapping[str, np.ndarray],
    config: Mapping[str, Any] | None = None,
    provenance: Mapping[str, Any] | None = None,
) -> Path:
    """Write `model` as the artifact `folder` (NAME.sciml) and return its path.

    `selftest_inputs` are a few samples, `(rows, *shape)` per input, in physical units. `config` holds under
    "model" the kind and options of the model; without it the artifact cannot be built again from its parameters
    once its program is too old for jax. `provenance` is kept as it is. The model gets its inputs as float64.
    The artifact is written beside its place, loaded, tested there, and only then moved: what was there before is
    replaced by a whole and working one or not at all. Raises ConfigError for missing self-test inputs,
    NumericalError when the reloaded model answers differently.
    """
    place = _named(Path(folder))
    inputs = _selftest_inputs(spec, selftest_inputs)
    dtype = program.model_dtype(model)
    outputs = program.batched_function(model)(inputs)
    answers = {OUTPUT_PREFIX + v.name: np.asarray(outputs[v.name]) for v in spec.outputs}
    manifest = _manifest(place, model, spec, dtype, provenance or {})
    files = {
        MODEL: program.serialize(model, spec),
        PARAMETERS: program.pack_state(model),
        CONFIG: json.dumps({**_statistics(model), **(config or {})}, indent=2, default=_plain).encode(),
        SELFTEST: program.npz({**inputs, **answers}),
        README: _readme(place.name, spec).encode(),
    }
    with replacing(place) as part:
        write_files(part, manifest, files)
        load(part).selftest()
    return place


def _named(path: Path) -> Path:
    return path if path.suffix == SUFFIX else path.with_name(path.name + SUFFIX)


def _statistics(model: nnx.Module) -> dict[str, Any]:
    """What `build` needs besides the spec, for models that carry it."""
    known = getattr(model, "statistics", None)
    return {} if known is None else {program.STATISTICS_KEY: {name: s.to_json() for name, s in known}}


def _selftest_inputs(spec: Spec, given: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    missing = [v.name for v in spec.inputs if v.name not in given]
    if missing:
        raise ConfigError("the self-test lacks inputs", expected=[v.name for v in spec.inputs], got=sorted(given))
    arrays = {v.name: np.asarray(given[v.name], np.float64) for v in spec.inputs}
    wrong = {v.name: arrays[v.name].shape for v in spec.inputs if arrays[v.name].shape[1:] != v.shape}
    if wrong:
        raise ConfigError("self-test inputs have the wrong shape", expected="(rows, *shape of the input)", got=wrong)
    return arrays


def _manifest(
    place: Path, model: nnx.Module, spec: Spec, dtype: np.dtype, provenance: Mapping[str, Any]
) -> dict[str, Any]:
    now = datetime.now(UTC).replace(microsecond=0)
    packages = ("jax", "jaxlib", "flax", "numpy")
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": place.stem,
        "created": now.isoformat(),
        "dtype": dtype.name,
        "parameters": parameter_count(model),
        "batch_axis": "B, first, optional in a call",
        "spec": spec.to_json(),
        "positive_inputs": list(positive_inputs(model)),
        "platforms": list(program.PLATFORMS),
        "expires": f"{(now + PROGRAM_WINDOW).date()}: later versions of jax may refuse {MODEL}; "
        f"the model is then built again from {PARAMETERS} and {CONFIG}",
        "selftest": {"tolerance": TOLERANCES.get(dtype.name, 1e-4)},
        "versions": {"sciml": __version__, "python": platform.python_version()} | {p: version(p) for p in packages},
        "provenance": json.loads(json.dumps(dict(provenance), default=_plain)),
    }


def _plain(value: Any) -> Any:
    """Numpy numbers, arrays and anything else unknown to JSON."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _readme(name: str, spec: Spec) -> str:
    arguments = ", ".join(f"{v.name}={v.name}" for v in spec.inputs)
    rows = "\n".join(f"| {kind} | `{v.name}` | {_shape(v)} | {v.unit} | {_range(v)} |" for kind, v in _labeled(spec))
    return f"""# {name}

```python
import sciml

surrogate = sciml.load("{name}")
result = surrogate({arguments})
```

NumPy arrays in physical units go in and come out; one sample, or many along a first axis.

| | name | axes | unit | range seen in training |
|---|---|---|---|---|
{rows}
"""


def _labeled(spec: Spec) -> list[tuple[str, Variable]]:
    return [("input", v) for v in spec.inputs] + [("output", v) for v in spec.outputs]


def _shape(variable: Variable) -> str:
    return ", ".join(f"{a}: {n}" for a, n in zip(variable.axes, variable.shape, strict=True)) or "number"


def _range(variable: Variable) -> str:
    return "" if variable.low is None or variable.high is None else f"{variable.low:g} to {variable.high:g}"
