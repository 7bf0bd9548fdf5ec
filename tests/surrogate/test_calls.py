"""A loaded surrogate: what it accepts, what it refuses, and that its answers are the model's."""

import threading
import warnings

import numpy as np
import pytest
from flax import nnx

from sciml.errors import ConfigError, DataError, NumericalError
from sciml.operators.mlp import MLP
from sciml.spec import Spec, Statistics, Variable
from sciml.surrogate import RangeWarning, export, load
from sciml.training.state import cast

from .conftest import POINTS, TIMES, tiny_samples, write_artifact


@pytest.fixture(scope="module")
def surrogate(artifact):
    return load(artifact[1])


def test_one_sample_equals_the_model(artifact, surrogate):
    sample = {k: v[0] for k, v in tiny_samples(1).items()}
    result = surrogate(**sample)
    assert isinstance(result, np.ndarray)
    assert result.shape == (TIMES, POINTS)
    np.testing.assert_allclose(result, artifact[0](sample)["u"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rows", [1, 3, 8])
def test_a_batch_equals_its_samples(surrogate, rows):
    batch = tiny_samples(rows)
    result = surrogate(batch["u0"], diffusivity=batch["diffusivity"])
    assert result.shape == (rows, TIMES, POINTS)
    for i in range(rows):
        np.testing.assert_allclose(result[i], surrogate(batch["u0"][i], batch["diffusivity"][i]), rtol=1e-5, atol=1e-6)


def test_an_input_without_batch_axis_is_repeated(surrogate):
    u0 = tiny_samples(3)["u0"]
    np.testing.assert_array_equal(surrogate(u0, 0.05), surrogate(u0, np.full(3, 0.05)))


def test_lists_and_single_precision_are_fine(surrogate):
    u0 = tiny_samples(1)["u0"][0]
    np.testing.assert_allclose(surrogate(u0.astype("float32").tolist(), 0.05), surrogate(u0, 0.05), atol=1e-6)


def test_float64_models_answer_in_float64(tmp_path):
    model, path = write_artifact(tmp_path / "double", dtype="float64")
    assert path.name == "double.sciml"
    sample = {k: v[0] for k, v in tiny_samples(1).items()}
    result = load(path)(**sample)
    assert result.dtype == np.float64
    np.testing.assert_allclose(result, model(sample)["u"], rtol=1e-13)


@pytest.mark.parametrize(
    ("positional", "by_name", "match"),
    [
        ((np.zeros(POINTS),), {}, r"missing inputs \['diffusivity'\]"),
        ((np.zeros(POINTS),), {"difusivity": 0.05}, "unknown input 'difusivity', did you mean 'diffusivity'"),
        ((np.zeros(POINTS), 0.05, 1.0), {}, "too many inputs"),
        ((np.zeros(POINTS), 0.05), {"u0": np.zeros(POINTS)}, "'u0' is given twice"),
        ((np.zeros(POINTS + 1), 0.05), {}, r"wrong shape(.|\n)*expected: \(8,\) for axes \(x\)(.|\n)*got: \(9,\)"),
        ((np.zeros((2, POINTS)), np.full(3, 0.05)), {}, "different batch sizes"),
        ((np.zeros((0, POINTS)), 0.05), {}, "batch is empty"),
        ((np.zeros(POINTS, complex), 0.05), {}, "not made of real numbers"),
        (("warm", 0.05), {}, "not made of real numbers"),
    ],
)
def test_wrong_arguments_are_refused(surrogate, positional, by_name, match):
    with pytest.raises(DataError, match=match):
        surrogate(*positional, **by_name)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_value_that_is_not_finite_is_refused_with_its_index(surrogate, bad):
    u0 = np.zeros((2, POINTS))
    u0[1, 3] = bad
    with pytest.raises(DataError, match=r"'u0' is not finite(.|\n)*index \(1, 3\)"):
        surrogate(u0, 0.05)


@pytest.mark.parametrize("bad", [0.0, -0.05])
def test_a_value_without_logarithm_is_refused(artifact, bad):
    """The diffusivity enters by its logarithm (0.01 to 0.1), u0 (-3 to 3) does not."""
    surrogate = load(artifact[1], on_range="ignore")
    assert surrogate.manifest["positive_inputs"] == ["diffusivity"]
    with pytest.raises(DataError, match=rf"'diffusivity' is not positive(.|\n)*got: {bad} at index \(1,\)"):
        surrogate(np.zeros((2, POINTS)), np.array([0.05, bad]))


def test_small_deviations_from_a_large_mean_are_seen(tmp_path):
    """300 K +- 0.01 K in a float32 model: answers differ from those of the same float64 model by rounding only."""
    spec = Spec((Variable("T", unit="K", role="scalar"),), (Variable("q", role="scalar"),))
    statistics = {"T": Statistics(300.0, 0.01, 299.9, 300.1), "q": Statistics(0.0, 1.0, -1.0, 1.0)}
    values = 300.0 + 0.01 * np.linspace(-1, 1, 50)
    single, double = (MLP(width=4, dtype=dtype).build(spec, statistics, seed=0) for dtype in ("float32", "float64"))
    nnx.update(double, cast(nnx.state(single, nnx.Param), "float64"))
    models = {"single": single, "double": double}
    paths = [export(m, spec, tmp_path / name, selftest_inputs={"T": values[:2]}) for name, m in models.items()]
    answers = [load(path)(values) for path in paths]
    assert answers[0].dtype == np.float32
    np.testing.assert_allclose(*answers, atol=1e-5 * np.ptp(answers[1]))


def test_values_outside_of_the_training_range(artifact, surrogate):
    u0 = np.zeros(POINTS)
    with pytest.warns(RangeWarning, match=r"'diffusivity' = 0.3 m\^2/s is outside of .*\[0.01, 0.1\]") as caught:
        surrogate(u0, 0.3)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        surrogate(u0, np.float32(0.1))
        load(artifact[1], on_range="ignore")(u0, 0.3)
    with pytest.raises(DataError, match="0.01 to 0.1 m\\^2/s"):
        load(artifact[1], on_range="raise")(u0, 0.3)
    with pytest.raises(ConfigError, match="warn | raise | ignore"):
        load(artifact[1], on_range="stop")


def test_threads_get_the_same_bits(surrogate):
    samples = tiny_samples(20)
    serial = [surrogate(u0, nu) for u0, nu in zip(*samples.values(), strict=True)]
    threaded: dict[int, np.ndarray] = {}

    def work(offset: int) -> None:
        for i in range(offset, 20, 2):
            threaded[i] = surrogate(samples["u0"][i], samples["diffusivity"][i])

    threads = [threading.Thread(target=work, args=(offset,)) for offset in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for i, expected in enumerate(serial):
        np.testing.assert_array_equal(threaded[i], expected)


def test_selftest_passes_and_notices_another_answer(artifact):
    surrogate = load(artifact[1])
    assert surrogate.selftest() <= 1e-6
    surrogate._selftest["output/u"] = surrogate._selftest["output/u"] * 1.01
    with pytest.raises(NumericalError, match="does not reproduce its self-test"):
        surrogate.selftest()


def test_it_says_what_it_is(surrogate):
    text = repr(surrogate)
    assert "in   diffusivity (scalar) [m^2/s], seen 0.01 to 0.1" in text
    assert "out  u (time: 2, x: 8) [K]" in text
    assert [v.name for v in surrogate.inputs] == ["u0", "diffusivity"]
