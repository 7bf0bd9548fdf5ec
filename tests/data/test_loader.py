"""Batches: deterministic, each epoch a permutation, resumable at any step, the same on any number of processes."""

from __future__ import annotations

import json
from itertools import islice

import generated_data
import numpy as np
import pytest
from comparison import assert_identical

from sciml.data import Dataset
from sciml.errors import ConfigError


@pytest.fixture(scope="module", params=["memory", "disk"])
def dataset(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    generated_data.make(folder)
    return Dataset.open(folder, memory=2**30 if request.param == "memory" else 0)


def take(batches, count):
    return list(islice(batches, count))


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_order_depends_on_the_seed_alone(dataset, threads):
    reference = take(dataset.batches(["u"], batch_size=5, seed=3), 9)
    assert_identical(take(dataset.batches(["u"], batch_size=5, seed=3, threads=threads), 9), reference)
    other = take(dataset.batches(["u"], batch_size=5, seed=4), 9)
    assert any(not np.array_equal(a["u"], b["u"]) for a, b in zip(reference, other, strict=True))


@pytest.mark.parametrize("batch_size", [1, 5, 12, 17])
def test_every_epoch_is_a_permutation(dataset, batch_size):
    """12 samples: batches run over the end of an epoch, and nothing is left out or seen twice in one."""
    stream = [b["diffusivity"] for b in islice(dataset.batches(["diffusivity"], batch_size=batch_size), 60)]
    values = np.concatenate(stream)
    every = np.sort(generated_data.expected(range(12))["diffusivity"])
    epochs = values[: len(values) // 12 * 12].reshape(-1, 12)
    assert len(epochs) >= 5
    assert_identical(np.sort(epochs, axis=1), np.tile(every, (len(epochs), 1)))
    assert not np.array_equal(epochs[0], epochs[1])


def test_rows_of_a_batch_belong_together(dataset):
    for batch in take(dataset.batches(batch_size=4), 6):
        assert_identical(batch["energy"], np.mean(batch["u"][:, -1] ** 2, axis=1))


@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.parametrize("step", [0, 1, 3, 11])
def test_resumes_at_any_step(dataset, step, threads):
    whole = take(dataset.batches(batch_size=5, seed=1), 20)
    first = dataset.batches(batch_size=5, seed=1, threads=threads)
    take(first, step)
    state = json.loads(json.dumps(first.get_state()))
    assert state == {"next_index": step}
    second = dataset.batches(batch_size=5, seed=1, threads=threads)
    take(second, 2)  # a used iterator can be set back as well
    second.set_state(state)
    assert_identical(take(second, 20 - step), whole[step:])
    assert second.get_state() == {"next_index": 20}


@pytest.mark.parametrize("processes", [2, 4])
def test_processes_share_each_global_batch(dataset, processes):
    single = take(dataset.batches(["u"], batch_size=8), 7)
    parts = [take(dataset.batches(["u"], batch_size=8, process=p, processes=processes), 7) for p in range(processes)]
    joined = [{"u": np.concatenate([part[i]["u"] for part in parts])} for i in range(7)]
    assert_identical(joined, single)


def test_continues_on_another_number_of_processes(dataset):
    single = take(dataset.batches(["u"], batch_size=8), 6)
    one = dataset.batches(["u"], batch_size=8)
    take(one, 3)
    halves = [dataset.batches(["u"], batch_size=8, process=p, processes=2) for p in range(2)]
    for half in halves:
        half.set_state(one.get_state())
    parts = [take(half, 3) for half in halves]
    joined = [{"u": np.concatenate([a["u"], b["u"]])} for a, b in zip(*parts, strict=True)]
    assert_identical(joined, single[3:])


def test_converts_on_request(dataset):
    assert next(dataset.batches(["u"], batch_size=4))["u"].dtype == np.float64
    assert next(dataset.batches(["u"], batch_size=4, dtype="float32"))["u"].dtype == np.float32


def test_epoch_counts_passes(dataset):
    batches = dataset.batches(batch_size=6)
    take(batches, 5)
    assert batches.epoch == 2.5


@pytest.mark.parametrize(
    "options", [{"batch_size": 0}, {"batch_size": 5, "processes": 2}, {"batch_size": 4, "process": 1}]
)
def test_refuses_batches_that_do_not_divide(dataset, options):
    with pytest.raises(ConfigError, match="does not divide over the processes"):
        dataset.batches(**options)
