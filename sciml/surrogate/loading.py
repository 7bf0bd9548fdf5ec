"""Use a saved surrogate: numpy in, numpy out, physical units."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sciml.errors import ConfigError, NumericalError
from sciml.spec import Spec, Variable
from sciml.surrogate import program
from sciml.surrogate.arguments import ON_RANGE_CHOICES, OnRange, batched, named
from sciml.surrogate.artifact import CONFIG, MODEL, PARAMETERS, SELFTEST, read_verified

OUTPUT_PREFIX = "output/"


class Surrogate:
    """A loaded surrogate. Call it with the inputs in the order of `inputs`, or by name.

    One sample (arrays of the shapes in `inputs`) or a batch (one axis in front); inputs without batch axis
    are repeated. Gives an array when there is one output, else a dict of arrays, of type `dtype`. Safe to
    call from several threads. A new batch size compiles once.
    """

    def __init__(self, manifest: Mapping[str, Any], files: Mapping[str, bytes], on_range: OnRange = "warn") -> None:
        if on_range not in ON_RANGE_CHOICES:
            raise ConfigError("unknown on_range", expected=" | ".join(ON_RANGE_CHOICES), got=on_range)
        self.manifest = dict(manifest)
        self.spec = Spec.from_json(manifest["spec"])
        self.dtype = np.dtype(manifest["dtype"])
        self.on_range: OnRange = on_range
        self.rebuilt_because: str | None = None
        self._selftest = program.read_npz(files[SELFTEST])
        self._function = self._program(files)

    def _program(self, files: Mapping[str, bytes]) -> program.Function:
        try:
            return program.deserialize(files[MODEL])
        except Exception as error:  # the hash was right: the program is too old for this jax, whatever it raises
            self.rebuilt_because = f"{type(error).__name__}: {error}"
        model = program.rebuild(json.loads(files[CONFIG]), self.spec, files[PARAMETERS])
        return program.batched_function(model)

    @property
    def inputs(self) -> tuple[Variable, ...]:
        """Inputs in the order of a positional call: name, unit, shape, axes, range seen in training."""
        return self.spec.inputs

    @property
    def outputs(self) -> tuple[Variable, ...]:
        """Outputs: name, unit, shape, axes."""
        return self.spec.outputs

    def __call__(self, *positional: Any, **by_name: Any) -> Any:
        """Physical values to physical values; see the class.

        Raises DataError for unknown or missing names, a wrong shape, a value that is not finite, or one
        that is not positive where the model takes its logarithm; warns with
        `RangeWarning` (or raises, see `load`) where a value is outside of the training range.
        """
        given = named(self.inputs, positional, by_name)
        arrays, many = batched(self.inputs, given, self.on_range, self.manifest["positive_inputs"])
        results = self._function(arrays)
        outputs = {v.name: np.asarray(results[v.name]) for v in self.outputs}
        outputs = outputs if many else {name: array[0] for name, array in outputs.items()}
        return outputs[self.outputs[0].name] if len(outputs) == 1 else outputs

    def selftest(self) -> float:
        """Largest deviation from the stored answers, relative to the largest of each; NumericalError if too big."""
        tolerance = self.manifest["selftest"]["tolerance"]
        inputs = {v.name: self._selftest[v.name] for v in self.inputs}
        results = self._function(inputs)
        worst = 0.0
        for v in self.outputs:
            expected = self._selftest[OUTPUT_PREFIX + v.name]
            deviation = np.abs(np.asarray(results[v.name]) - expected).max()
            worst = max(worst, float(deviation / max(np.abs(expected).max(), np.finfo(self.dtype).tiny)))
        if not worst <= tolerance:
            raise NumericalError(
                "the surrogate does not reproduce its self-test",
                expected=f"deviation below {tolerance:g}",
                got=f"{worst:.3g}",
                reason="a device or library that computes in lower precision",
            )
        return worst

    def describe(self) -> str:
        """Inputs, outputs, ranges and origin, as text."""
        ranges = {v.name: f", seen {v.low:g} to {v.high:g}" for v in self.inputs if None not in (v.low, v.high)}
        lines = [f"  in   {v.describe()}{ranges.get(v.name, '')}" for v in self.inputs]
        lines += [f"  out  {v.describe()}" for v in self.outputs]
        return "\n".join([f"{self.manifest['name']} ({self.dtype}, written {self.manifest['created']})", *lines])

    __repr__ = describe


def load(path: str | os.PathLike[str], *, on_range: OnRange = "warn") -> Surrogate:
    """Load a surrogate folder `NAME.sciml`; needs neither the recipe nor the data it was made from.

    Every file is checked against its hash before anything in it is read. `on_range` says what happens to
    inputs outside of the training range: "warn", "raise" or "ignore". Raises DataError for something that is
    not a surrogate, IntegrityError (exit code 76) for a damaged one.
    """
    manifest, files = read_verified(Path(path))
    return Surrogate(manifest, files, on_range)
