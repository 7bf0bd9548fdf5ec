"""A tiny operator and its artifact."""

import numpy as np
import pytest

from sciml.operators.fno import FNO
from sciml.spec import Spec, Statistics, Variable
from sciml.surrogate import export

POINTS, TIMES = 8, 2


def tiny_spec() -> Spec:
    return Spec(
        inputs=(
            Variable("u0", unit="K", shape=(POINTS,), axes=("x",), low=-3.0, high=3.0),
            Variable("diffusivity", unit="m^2/s", role="scalar", low=0.01, high=0.1),
        ),
        outputs=(Variable("u", unit="K", shape=(TIMES, POINTS), axes=("time", "x")),),
        coordinates={"x": tuple(np.arange(POINTS) / POINTS), "time": (0.5, 1.0)},
        periodic=("x",),
    )


def tiny_samples(rows: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {"u0": rng.uniform(-2, 2, (rows, POINTS)), "diffusivity": rng.uniform(0.02, 0.09, rows)}


def write_artifact(folder, seed: int = 0, dtype: str = "float32"):
    options = {"width": 4, "modes": [2], "layers": 1}
    spec = tiny_spec()
    statistics = {
        "u0": Statistics(0.0, 1.0, -3.0, 3.0),
        "diffusivity": Statistics(0.05, 0.02, 0.01, 0.1),
        "u": Statistics((0.1, 0.2), (0.5, 0.25), (-1.0, -1.0), (1.0, 1.0)),
    }
    model = FNO(width=4, modes=(2,), layers=1, dtype=dtype).build(spec, statistics, seed=seed)
    config = {"model": {"kind": "fno", **options}, "precision": dtype}
    path = export(
        model, spec, folder, config=config, provenance={"recipe": "name: tiny"}, selftest_inputs=tiny_samples(2)
    )
    return model, path


@pytest.fixture(scope="session")
def artifact(tmp_path_factory):
    """(model, path of its artifact); not to be altered."""
    return write_artifact(tmp_path_factory.mktemp("artifact") / "tiny.sciml")
