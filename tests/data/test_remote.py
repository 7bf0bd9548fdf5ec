"""Files and data sets in an object store, read from a local S3 server."""

from __future__ import annotations

import sys

import generated_data
import numpy as np
import pytest
import tiny_runs
from comparison import assert_identical

from sciml.data import Dataset, cache, manifest, open_arrays
from sciml.data.remote import is_remote, local_file
from sciml.errors import DataError, IntegrityError

BUCKET = "fields"


@pytest.fixture(scope="module")
def server():
    """A server in a thread of this process; its address."""
    pytest.importorskip("s3fs", reason="s3fs is not installed: pip install 'sciml[s3]'")
    moto = pytest.importorskip("moto.server", reason="moto, flask and flask-cors are not installed")
    running = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    yield f"http://{host}:{port}"
    running.stop()


@pytest.fixture
def store(server, monkeypatch, tmp_path):
    """An empty bucket, with copies kept in a folder of this test."""
    import s3fs

    settings = {"AWS_ENDPOINT_URL": server, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    for name, value in {**settings, "AWS_DEFAULT_REGION": "us-east-1", cache.VARIABLE: str(tmp_path / "node")}.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    system = s3fs.S3FileSystem()
    if system.exists(BUCKET):
        system.rm(BUCKET, recursive=True)
    system.mkdir(BUCKET)
    yield system
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.fixture
def arrays(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "mine.npz", a=rng.normal(size=(20, 8)), u=rng.normal(size=(20, 8)))
    return tmp_path / "mine.npz"


def test_a_file_is_read_like_a_local_one(store, arrays):
    store.put(str(arrays), f"{BUCKET}/mine.npz")
    there = open_arrays(f"s3://{BUCKET}/mine.npz", input="a", output="u")
    here = open_arrays(arrays, input="a", output="u")
    assert there.name == f"s3://{BUCKET}/mine.npz"
    assert there.provenance["fingerprint"] == here.provenance["fingerprint"]
    assert_identical(there.read(), here.read())


def test_a_copy_is_kept_until_the_object_changes_or_the_copy_is_damaged(store, arrays):
    address = f"s3://{BUCKET}/mine.npz"
    store.put(str(arrays), address)
    copy, content = local_file(address), arrays.read_bytes()
    stamp = copy.stat().st_mtime_ns
    assert local_file(address) == copy and copy.stat().st_mtime_ns == stamp
    copy.write_bytes(content[:-1] + b"x")
    assert local_file(address).read_bytes() == content
    store.pipe(address, b"another content")
    assert local_file(address).read_bytes() == b"another content"


def test_a_data_set_of_shards(store, tmp_path):
    generated_data.make(tmp_path / "data")
    store.put(str(tmp_path / "data"), f"{BUCKET}/heat", recursive=True)
    dataset = Dataset.open(f"s3://{BUCKET}/heat", memory=0)
    assert_identical(dataset.read(), generated_data.expected(range(20)))
    shard = manifest.load(tmp_path / "data").shards[0]
    (tmp_path / "node" / f"{shard.sha256}.h5").write_bytes(b"damaged")
    assert_identical(Dataset.open(f"s3://{BUCKET}/heat", memory=0).read(), generated_data.expected(range(20)))
    (tmp_path / "node" / f"{shard.sha256}.h5").unlink()
    store.pipe(f"{BUCKET}/heat/{shard.file}", b"damaged in the store")
    with pytest.raises(IntegrityError, match=f"{shard.file} was altered"):
        Dataset.open(f"s3://{BUCKET}/heat")


RECIPE = """
name: mine
data: {file: "s3://fields/mine.npz", input: a, output: u}
models: {fno: {kind: fno, width: 4, modes: [2], layers: 1, train: {steps: 2, batch: 4}}}
"""


def test_a_recipe_that_names_an_object(store, arrays, tmp_path):
    """It trains, and goes on with the same object only."""
    store.put(str(arrays), f"{BUCKET}/mine.npz")
    (tmp_path / "mine.yaml").write_text(RECIPE)
    ended = tiny_runs.here("train", "mine.yaml", folder=tmp_path)
    assert ended.code == 0, ended.err
    assert "trained already" in tiny_runs.here("train", "mine.yaml", folder=tmp_path).out
    with np.load(arrays) as old:
        np.savez(arrays, a=old["a"], u=2 * old["u"])
    store.put(str(arrays), f"{BUCKET}/mine.npz")
    ended = tiny_runs.here("train", "mine.yaml", folder=tmp_path)
    assert ended.code == 78 and "made with another recipe" in ended.err


@pytest.mark.parametrize("name", ["missing.npz", "../other/missing.npz"])
def test_a_missing_object_is_named(store, name):
    with pytest.raises(DataError, match="there is no object s3://"):
        local_file(f"s3://{BUCKET}/{name}")


def test_a_missing_library_is_named(monkeypatch):
    from fsspec.registry import _registry

    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.delitem(_registry, "s3", raising=False)
    with pytest.raises(DataError, match=r"pip install 'sciml\[s3\]'"):
        local_file("s3://bucket/x.h5")


def test_an_unknown_protocol_is_named():
    with pytest.raises(DataError, match="unknown protocol"):
        local_file("s4://bucket/x.h5")


def test_addresses_are_told_from_paths():
    assert is_remote("s3://bucket/x.h5") and is_remote("https://host/x.h5")
    assert not is_remote("folder/x.h5") and not is_remote("C:x.h5")
