"""Reading: by name, split and index, in memory or from disk, whatever the files look like."""

from __future__ import annotations

import pickle

import generated_data
import numpy as np
import pytest
from comparison import assert_identical

from sciml.data import Dataset, generate
from sciml.errors import DataError


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for samples in (7, 13, 20):  # three shards, with samples of one chunk spread over two of them
        generate(
            folder, generated_data.layout(), generated_data.simulate, chunk=4, samples=samples, provenance={"seed": 7}
        )
    return folder


@pytest.fixture(scope="module", params=["memory", "disk"])
def dataset(request, folder):
    return Dataset.open(folder, memory=2**30 if request.param == "memory" else 0)


def test_all_samples_in_order(dataset):
    assert_identical(dataset.read(), generated_data.expected(range(20)))


@pytest.mark.parametrize("rows", [[0], [19, 3, 7], [5, 5, 6], [6, 7, 8, 9], []])
def test_any_rows(dataset, rows):
    read = dataset.read(["u", "diffusivity"], indices=rows)
    every = generated_data.expected(range(20))
    assert_identical(read, {name: every[name][rows] for name in read})


def test_indices_count_within_the_split(dataset):
    read = dataset.read("u", split="test", indices=[4, 0])
    assert_identical(read["u"], generated_data.expected(np.array([19, 15]))["u"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"names": ["v"]}, "no variable named 'v'"),
        ({"split": "tset"}, "no split 'tset'"),
        ({"split": "test", "indices": [5]}, "indices from 0 to 4 in split 'test'"),
        ({"indices": [-1]}, "no such sample"),
    ],
)
def test_refuses(dataset, arguments, message):
    with pytest.raises(DataError, match=message):
        dataset.read(**arguments)


def test_what_is_read_cannot_change_the_data(dataset):
    dataset.read(["u"])["u"][:] = 0
    assert_identical(dataset.read(["u"])["u"], generated_data.expected(range(20))["u"])


def test_content_hash_depends_on_values_only(folder, tmp_path):
    generated_data.make(tmp_path)
    one, three = Dataset.open(tmp_path), Dataset.open(folder, memory=0)
    assert one.content_hash(["u"], split="train") == three.content_hash(["u"], split="train")
    assert one.content_hash(["u"], split="train") != one.content_hash(["u"], split="test")
    assert one.content_hash(["u0"]) != one.content_hash(["u"])


def test_provenance_and_description(dataset):
    assert dataset.provenance["seed"] == 7
    assert "u (time: 3, x: 16) [K]" in repr(dataset)
    assert len(dataset) == 20


def test_a_copy_in_another_process_opens_its_own_files(dataset):
    dataset.read()
    copy = pickle.loads(pickle.dumps(dataset))
    assert_identical(copy.read(), dataset.read())
