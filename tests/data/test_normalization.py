"""Statistics: exact, per saved time, from the training samples only, tied to the values they came from."""

from __future__ import annotations

import generated_data
import numpy as np
import pytest
from comparison import assert_close

from sciml.data import Dataset, load_statistics, open_arrays, save_statistics, statistics
from sciml.errors import DataError


@pytest.fixture
def dataset(tmp_path):
    generated_data.make(tmp_path / "data")
    return Dataset.open(tmp_path / "data")


def test_per_frame_for_trajectories_and_one_number_otherwise(dataset):
    found = statistics(dataset)
    train = generated_data.expected(range(12))
    # Tolerances: rounding of sums over at most 12 x 48 numbers.
    u = found["u"]
    for value, function in ((u.mean, np.mean), (u.std, np.std), (u.low, np.min), (u.high, np.max)):
        assert_close(np.array(value), function(train["u"], axis=(0, 2)), rtol=1e-13)
    assert_close(found["u0"].std, np.std(train["u0"]), rtol=1e-13)
    assert_close(found["diffusivity"].mean, np.mean(train["diffusivity"]), rtol=1e-14)
    assert found["diffusivity"].low == np.min(train["diffusivity"])


def test_only_the_training_samples_count(dataset):
    assert statistics(dataset, ["u0"])["u0"] != statistics(dataset, ["u0"], split="test")["u0"]


def test_merging_slabs_keeps_the_digits_of_a_small_spread_on_a_large_mean(tmp_path, monkeypatch):
    values = 1e8 + np.random.default_rng(0).normal(size=(1000, 8))
    np.savez(tmp_path / "a.npz", a=values, u=values)
    dataset = open_arrays(tmp_path / "a.npz", input="a", output="u", splits={"train": 999, "test": 1})
    rows, whole = dataset.rows("train"), statistics(dataset, ["u"])["u"]
    monkeypatch.setattr("sciml.data.slabs.SLAB_BYTES", 8 * 8 * 7)
    assert len(list(dataset.slabs("u", rows))) == 143
    merged = statistics(dataset, ["u"])["u"]
    exact = np.std(values[rows] - 1e8)
    # The mean of each slab is rounded to 1.5e-8, which the merge carries into the variance.
    assert_close(whole.std, exact, rtol=1e-9)
    assert_close(merged.std, exact, rtol=1e-9)
    assert_close(merged.mean, whole.mean, rtol=1e-15)


def test_stored_statistics_fit_only_their_data(dataset, tmp_path):
    saved = save_statistics(tmp_path / "statistics.json", dataset, ["u0", "u"])
    assert load_statistics(tmp_path / "statistics.json", dataset) == saved
    generated_data.make(tmp_path / "other", layout=generated_data.layout(train=13))
    with pytest.raises(DataError, match="come from other data"):
        load_statistics(tmp_path / "statistics.json", Dataset.open(tmp_path / "other"))
    (tmp_path / "statistics.json").write_text("{")
    with pytest.raises(DataError, match="holds no statistics"):
        load_statistics(tmp_path / "statistics.json", dataset)
