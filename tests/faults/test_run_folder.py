"""One process per run folder, and files that are whole or absent."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import textwrap

import pytest

from sciml.errors import BusyError, CannotCreateError, StorageError
from sciml.runfolder import LOCK, FolderLock, write_json, write_text, write_yaml


def _holder(folder) -> subprocess.Popen[str]:
    program = f"""
        import sys
        from sciml.runfolder import FolderLock
        with FolderLock({str(folder)!r}):
            print("held", flush=True)
            sys.stdin.read()
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    return process


def test_a_folder_in_use_is_refused_naming_its_holder(tmp_path):
    process = _holder(tmp_path)
    try:
        with pytest.raises(BusyError, match="in use") as caught, FolderLock(tmp_path):
            pass
    finally:
        process.communicate("")
    assert caught.value.exit_code == 75
    assert f"process {process.pid} on {os.uname().nodename}" in str(caught.value)
    with FolderLock(tmp_path):  # the control: free again
        pass


def test_the_lock_of_a_dead_process_is_taken_over(tmp_path, caplog):
    process = _holder(tmp_path)
    process.kill()
    process.communicate()
    with FolderLock(tmp_path):
        assert json.loads((tmp_path / LOCK).read_text())["pid"] == os.getpid()
    assert f"taking over from process {process.pid}" in caplog.text
    assert (tmp_path / LOCK).read_text() == ""


def test_the_same_process_cannot_use_a_folder_twice(tmp_path):
    with FolderLock(tmp_path), pytest.raises(BusyError), FolderLock(tmp_path):
        pass


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "facts.json"
    write_json(path, {"a": 1})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(StorageError, match="no space left"):
            write_text(path, "x" * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert json.loads(path.read_text()) == {"a": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["facts.json"]


def test_names_that_cannot_be_are_explained(tmp_path):
    with pytest.raises(CannotCreateError, match="cannot write"):
        write_text(tmp_path / ("n" * 300), "x")
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotCreateError, match="cannot write"), FolderLock(tmp_path / "file"):
        pass


@pytest.mark.parametrize("name", ["with space", "-rf", "üñï", "new\nline"])
def test_odd_names_work(tmp_path, name):
    write_yaml(tmp_path / name / "recipe.yaml", {"name": name})
    with FolderLock(tmp_path / name):
        pass
    assert (tmp_path / name / "recipe.yaml").exists()


def test_numbers_that_json_cannot_say_are_refused(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "a.json", {"a": float("nan")})
    assert not (tmp_path / "a.json").exists()
