"""The folder of a surrogate: whole, verified before use, usable anywhere, replaced only by a working one."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
from jax import export as jax_export

from sciml.errors import CannotCreateError, DataError, IntegrityError
from sciml.surrogate import artifact as layout
from sciml.surrogate import load

from .conftest import tiny_samples, write_artifact

FILES = [
    layout.MANIFEST,
    layout.MODEL,
    layout.PARAMETERS,
    layout.CONFIG,
    layout.SELFTEST,
    layout.README,
]


@pytest.fixture
def copy(artifact, tmp_path):
    return shutil.copytree(artifact[1], tmp_path / "copy.sciml")


def test_the_folder_holds_what_it_promises(artifact):
    assert sorted(p.name for p in artifact[1].iterdir()) == sorted(FILES)
    manifest = json.loads((artifact[1] / layout.MANIFEST).read_text())
    assert manifest["spec"]["inputs"][1]["unit"] == "m^2/s"
    assert manifest["provenance"] == {"recipe": "name: tiny"}
    assert set(manifest["files"]) == set(FILES) - {layout.MANIFEST}
    assert "diffusivity=diffusivity" in (artifact[1] / layout.README).read_text()


def test_an_unaltered_copy_loads(copy):
    load(copy).selftest()


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("place", [0.1, 0.5, 0.95])
def test_one_flipped_bit_is_refused(copy, name, place):
    path = copy / name
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] ^= 1
    path.write_bytes(content)
    with pytest.raises(IntegrityError, match=name) as caught:
        load(copy)
    assert caught.value.exit_code == 76


@pytest.mark.parametrize("name", FILES[1:])
def test_a_missing_or_short_file_is_refused(copy, name):
    path = copy / name
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(IntegrityError, match=name):
        load(copy)
    path.unlink()
    with pytest.raises(IntegrityError, match=name):
        load(copy)


def test_nothing_is_deserialized_before_all_hashes_are_checked(copy, monkeypatch):
    (copy / layout.README).write_text("altered")
    monkeypatch.setattr(jax_export, "deserialize", lambda blob: pytest.fail("read before verification"))
    with pytest.raises(IntegrityError):
        load(copy)


def test_other_folders_and_later_formats_are_refused(tmp_path):
    with pytest.raises(DataError, match="is not a saved surrogate"):
        load(tmp_path)
    with pytest.raises(DataError, match="is not a saved surrogate"):
        load(tmp_path / "absent.sciml")
    (tmp_path / layout.MANIFEST).write_text(layout.manifest_text({"format": layout.FORMAT, "version": 99}))
    with pytest.raises(DataError, match="pip install --upgrade"):
        load(tmp_path)


def test_a_program_that_jax_refuses_is_built_again_from_the_parameters(artifact, monkeypatch):
    def expired(blob):
        raise ValueError("serialization version 9 is no longer supported")

    expected = load(artifact[1])
    monkeypatch.setattr(jax_export, "deserialize", expired)
    rebuilt = load(artifact[1])
    assert "no longer supported" in (rebuilt.rebuilt_because or "")
    rebuilt.selftest()
    samples = tiny_samples(3)
    np.testing.assert_allclose(rebuilt(**samples), expected(**samples), rtol=1e-5, atol=1e-6)


def test_a_fresh_process_elsewhere_needs_only_the_folder(copy, tmp_path):
    samples = tiny_samples(3)
    np.savez(tmp_path / "inputs.npz", **samples)
    code = (
        "import numpy as np; from sciml.surrogate import load\n"
        f"s = load({str(copy)!r}); s.selftest()\n"
        "with np.load('inputs.npz') as f: np.save('result.npy', s(f['u0'], diffusivity=f['diffusivity']))\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=tmp_path, check=True)
    np.testing.assert_allclose(np.load(tmp_path / "result.npy"), load(copy)(**samples), rtol=1e-6)


def test_a_new_artifact_takes_the_place_of_the_old_one(copy):
    before = load(copy)(**tiny_samples(1))
    write_artifact(copy, seed=1)
    assert not np.allclose(before, load(copy)(**tiny_samples(1)))
    assert [p.name for p in copy.parent.iterdir()] == [copy.name]


def test_a_failed_self_test_leaves_the_old_artifact(copy, monkeypatch):
    before = load(copy)(**tiny_samples(1))

    def fails(self):
        raise RuntimeError("other numbers")

    monkeypatch.setattr("sciml.surrogate.loading.Surrogate.selftest", fails)
    with pytest.raises(RuntimeError, match="other numbers"):
        write_artifact(copy, seed=1)
    np.testing.assert_array_equal(load(copy)(**tiny_samples(1)), before)
    assert [p.name for p in copy.parent.iterdir()] == [copy.name]


def test_another_folder_is_never_overwritten(tmp_path):
    thesis = tmp_path / "thesis.sciml"
    thesis.mkdir()
    (thesis / "chapter.tex").write_text("years of work")
    with pytest.raises(CannotCreateError, match="is not a surrogate"):
        write_artifact(thesis)
    assert (thesis / "chapter.tex").read_text() == "years of work"
