"""Errors of the disk while a shard is written."""

from __future__ import annotations

import errno

import numpy as np
import pytest

from sciml.data import sink
from sciml.errors import SciMLError


def write(folder):
    return sink.write_hdf5(folder / "shard.h5", lambda file, check: file.create_dataset("u", data=np.zeros(10_000)))


@pytest.mark.parametrize("fails", [False, True])
def test_an_error_that_only_the_last_background_sync_is_told_is_not_lost(tmp_path, monkeypatch, fails):
    """The system reports it once; a later sync of the same file succeeds."""
    calls = []

    def fdatasync(descriptor):
        calls.append(descriptor)
        if fails:
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(sink, "SYNC_BYTES", 70_000)
    monkeypatch.setattr(sink.os, "fdatasync", fdatasync)
    if fails:
        with pytest.raises(SciMLError):
            write(tmp_path)
    else:
        write(tmp_path)
    assert len(calls) == 1
    assert [path.name for path in tmp_path.iterdir()] == ([] if fails else ["shard.h5"])
