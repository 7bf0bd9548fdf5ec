"""Damaged, foreign, unfinished and impossible checkpoints. Each injection has its control."""

from __future__ import annotations

import json
import logging
import resource
import shutil
import subprocess
import sys
import textwrap

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_identical

from sciml.checkpoint import MANIFEST, STAGING, Checkpoints, verify
from sciml.errors import ConfigError, DataError, IntegrityError, NumericalError, StorageError


def _state(seed: int = 0, size: int = 1000):
    values = np.random.default_rng(seed).normal(size=size)
    return {"w": jnp.asarray(values, jnp.float32), "step": jnp.asarray(seed), "key": jax.random.key(seed)}


@pytest.fixture
def folder(tmp_path):
    """Three checkpoints, 1 to 3."""
    with Checkpoints(tmp_path / "c") as checkpoints:
        for step in (1, 2, 3):
            checkpoints.save(step, _state(step), {"step": step, "data": {"next_index": step}})
    return tmp_path / "c"


def _data_file(folder, step: int):
    """The largest array file of a checkpoint."""
    return max((folder / str(step)).rglob("d/*"), key=lambda p: p.stat().st_size)


def _flip(path, bit: int = 12345):
    data = bytearray(path.read_bytes())
    data[bit // 8 % len(data)] ^= 1 << bit % 8
    path.write_bytes(bytes(data))


def test_what_was_saved_comes_back(folder):
    with Checkpoints(folder) as checkpoints:
        state, meta = checkpoints.restore(_state())
    assert_identical(state, _state(3))
    assert meta == {"step": 3, "data": {"next_index": 3}}


@pytest.mark.parametrize("bit", [0, 1001, 12345, 20011])
def test_a_flipped_bit_is_noticed_and_the_one_before_is_used(folder, bit, caplog):
    _flip(_data_file(folder, 3), bit)
    with Checkpoints(folder) as checkpoints, caplog.at_level(logging.WARNING):
        state, meta = checkpoints.restore(_state())
    assert_identical(state, _state(2))
    assert meta["step"] == 2
    assert "checkpoint 3 is damaged" in caplog.text and "continuing from checkpoint 2" in caplog.text


def test_orbax_alone_does_not_notice_the_flipped_bit(folder):
    """Why there is a manifest: at least one of these flips restores, with a wrong number."""
    import orbax.checkpoint as ocp

    right = np.asarray(_state(3)["w"])
    silent = 0
    for bit in range(8000, 20000, 1501):
        copy = folder.parent / f"copy{bit}"
        shutil.copytree(folder, copy)
        _flip(_data_file(copy, 3), bit)
        try:
            with ocp.Checkpointer(ocp.StandardCheckpointHandler()) as checkpointer:
                silent += not np.array_equal(checkpointer.restore(copy / "3")["w"], right)
        except Exception:  # noqa: BLE001, S112  (a flip that orbax does notice)
            continue
    assert silent > 0


@pytest.mark.parametrize("name", [MANIFEST, "_METADATA", "manifest.ocdbt"])
@pytest.mark.parametrize("damage", ["delete", "empty", "half"])
def test_every_file_counts(folder, name, damage):
    path = folder / "3" / name
    content = path.read_bytes()
    path.unlink()
    if damage != "delete":
        path.write_bytes(content[: len(content) // 2 if damage == "half" else 0])
    with Checkpoints(folder) as checkpoints:
        _, meta = checkpoints.restore(_state())
    assert meta["step"] == 2


def test_an_edited_manifest_is_noticed(folder):
    path = folder / "3" / MANIFEST
    manifest = json.loads(path.read_text())
    manifest["meta"]["data"]["next_index"] = 4
    path.write_text(json.dumps(manifest))
    with pytest.raises(IntegrityError, match="has been altered"):
        verify(folder / "3")
    assert verify(folder / "2")["meta"]["step"] == 2


def test_all_damaged_never_starts_again_silently(folder):
    for step in (1, 2, 3):
        _flip(_data_file(folder, step))
    with Checkpoints(folder) as checkpoints, pytest.raises(IntegrityError, match="every checkpoint") as caught:
        checkpoints.restore(_state())
    assert caught.value.exit_code == 76


def test_no_checkpoint_is_an_error_of_its_own(tmp_path):
    with Checkpoints(tmp_path) as checkpoints:
        assert checkpoints.steps() == []
        with pytest.raises(DataError, match="no checkpoint"):
            checkpoints.restore(_state())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"w": jnp.zeros(1000, jnp.float64)}, "saved float32[1000], now float64[1000]"),
        ({"w": jnp.zeros(1001, jnp.float32)}, "saved float32[1000], now float32[1001]"),
        ({"more": jnp.zeros(2)}, "saved nothing, now float64[2]"),
    ],
)
def test_another_structure_is_refused_not_converted(folder, change, words):
    with Checkpoints(folder) as checkpoints, pytest.raises(ConfigError, match="another state") as caught:
        checkpoints.restore({**_state(), **change})
    assert words in str(caught.value) and caught.value.exit_code == 78


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_state_that_is_not_finite_is_not_saved(folder, value):
    bad = {**_state(4), "w": _state(4)["w"].at[7].set(value)}
    with Checkpoints(folder) as checkpoints:
        checkpoints.restore(_state())
        with pytest.raises(NumericalError, match="not finite") as caught:
            checkpoints.save(4, bad)
        assert checkpoints.steps() == [1, 2, 3]
    assert "checkpoint 3" in str(caught.value)


def test_only_the_newest_are_kept_and_a_step_can_be_saved_again(tmp_path):
    with Checkpoints(tmp_path, keep=2) as checkpoints:
        for step in (1, 2, 3, 3):
            checkpoints.save(step, _state(step + 10))
        checkpoints.wait()
        assert checkpoints.steps() == [2, 3]
        assert_identical(checkpoints.restore(_state())[0], _state(13))
    assert sorted(p.name for p in tmp_path.iterdir() if not p.name.startswith(".")) == ["2", "3"]


def test_a_checkpoint_just_written_is_never_the_one_to_go(tmp_path):
    with Checkpoints(tmp_path, keep=1) as checkpoints:
        for step in (100, 60):  # continued from an older step than the newest
            checkpoints.save(step, _state(step))
        checkpoints.wait()
        assert checkpoints.steps() == [60]


def test_a_half_written_checkpoint_is_not_seen(folder):
    shutil.copytree(folder / "3", folder / STAGING / "4")
    (folder / STAGING / "4" / MANIFEST).unlink()
    with Checkpoints(folder) as checkpoints:
        assert checkpoints.steps() == [1, 2, 3]
        checkpoints.save(5, _state(5))
        checkpoints.wait()
        assert checkpoints.steps() == [2, 3, 5]
    assert not list((folder / STAGING).iterdir())


def test_saving_is_not_disturbed_by_donation(tmp_path):
    """The arrays are consumed by the next step while the background thread writes."""
    step = jax.jit(lambda w: w + 1.0, donate_argnums=0)
    w = jnp.zeros(100_000)
    with Checkpoints(tmp_path) as checkpoints:
        for number in range(3):
            checkpoints.save(number, {"w": w})
            for _ in range(5):
                w = step(w)
        checkpoints.wait()
        for number in range(3):
            folder = tmp_path / str(number)
            assert verify(folder)
        assert float(checkpoints.restore({"w": jnp.ones(100_000)})[0]["w"].max()) == 10.0


# Writes that are under way when one fails come back to an event loop that orbax has closed.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_full_disk_keeps_the_older_checkpoints(tmp_path):
    """A limit on the size of files stands for the full disk; the same save without it works (the control)."""
    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(1, _state(1))
        checkpoints.wait()
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
        try:
            checkpoints.save(2, _state(2, size=200_000))
            with pytest.raises(StorageError, match="no space left") as caught:
                checkpoints.wait()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert caught.value.exit_code == 74 and "bytes free" in str(caught.value)
        assert checkpoints.steps() == [1]
        assert_identical(checkpoints.restore(_state())[0], _state(1))
        checkpoints.save(2, _state(2, size=200_000))
        checkpoints.wait()
        assert checkpoints.steps() == [1, 2]


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 2 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", place], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting a tmpfs is not allowed here")
    yield place
    subprocess.run(["umount", place], check=True)


def test_a_really_full_disk(small_disk):
    with Checkpoints(small_disk / "c") as checkpoints:
        checkpoints.save(1, _state(1, size=50_000))
        checkpoints.wait()
        checkpoints.save(2, _state(2, size=600_000))
        with pytest.raises(StorageError, match="no space left"):
            checkpoints.wait()
        assert checkpoints.steps() == [1]
        assert_identical(checkpoints.restore(_state(0, size=50_000))[0], _state(1, size=50_000))


def test_a_failure_in_the_background_says_one_thing(tmp_path):
    """No pages of tracebacks from the writing threads."""
    program = f"""
        import resource, sys
        import jax.numpy as jnp, numpy as np
        import sciml.types
        from sciml.checkpoint import Checkpoints
        from sciml.errors import StorageError
        checkpoints = Checkpoints({str(tmp_path)!r})
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        checkpoints.save(1, {{"w": jnp.asarray(np.random.default_rng(0).normal(size=100_000))}})
        try:
            checkpoints.close()
        except StorageError as error:
            sys.exit(error.exit_code)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True)
    assert done.returncode == 74
    assert done.stderr == ""
