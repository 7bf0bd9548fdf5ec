"""init, validate, list, schema, doctor, and how little they import."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sciml import registry
from sciml.cli import starters
from sciml.launch import detect


@pytest.mark.parametrize("name", starters.names())
def test_every_starter_recipe_is_valid(run_sciml, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    assert run_sciml("init", name).code == 0
    text = Path(f"{name}.yaml").read_text(encoding="utf-8")
    assert text.startswith("# yaml-language-server: $schema=sciml.schema.json\n")
    assert json.loads(Path("sciml.schema.json").read_text(encoding="utf-8"))["title"] == "sciml recipe"
    assert f"{name}.yaml: valid" in run_sciml("validate", f"{name}.yaml").output


def test_init_never_overwrites(run_sciml, heat):
    heat.write_text("mine", encoding="utf-8")
    result = run_sciml("init", "heat")
    assert (result.code, heat.read_text(encoding="utf-8")) == (73, "mine")
    assert "heat.yaml is already there" in result.errors
    assert run_sciml("init", "heat", "--output", "other.yaml").code == 0


def test_init_suggests(run_sciml, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run_sciml("init", "burger")
    assert result.code == 78 and "did you mean 'burgers'?" in result.errors
    assert not list(tmp_path.iterdir())


def test_init_into_a_missing_folder(run_sciml, tmp_path):
    result = run_sciml("init", "--output", tmp_path / "no" / "heat.yaml")
    assert result.code == 73 and "cannot create" in result.errors


@pytest.mark.parametrize("name", ["my recipe.yaml", "Wärme.yaml", "two\nlines.yaml"])
def test_any_file_name_works(run_sciml, heat, name):
    heat.rename(name)
    assert run_sciml("validate", name).code == 0


def test_a_name_that_looks_like_an_option(run_sciml, heat):
    heat.rename("-rf")
    assert run_sciml("validate", "--", "-rf").code == 0


def test_validate_prints_the_resolved_recipe(run_sciml, heat):
    result = run_sciml("validate", heat, "seed=7", "--resolved")
    assert "seed: 7\n" in result.output and "checkpoint_every: 500" in result.output


def test_validate_lists_every_mistake(run_sciml, heat):
    text = heat.read_text(encoding="utf-8").replace("seed:", "sede:").replace("width:", "widht:")
    heat.write_text(text, encoding="utf-8")
    result = run_sciml("validate", heat)
    assert result.code == 78
    assert "heat.yaml: 2 mistakes\n" in result.errors
    assert "sede: unknown key 'sede', did you mean 'seed'?" in result.errors
    assert "models.fno.widht: unknown key 'widht', did you mean 'width'?" in result.errors


def test_a_missing_recipe(run_sciml, heat):
    result = run_sciml("validate", "heta.yaml")
    assert result.code == 78 and "no recipe file heta.yaml, did you mean 'heat.yaml'?" in result.errors


def test_list_has_every_component(run_sciml):
    printed = run_sciml("list").output
    for kind in registry.PACKAGES:
        assert f"{kind}:" in printed
        for name in registry.names(kind):
            assert registry.describe(kind, name).summary in printed


def test_list_of_one_kind_has_the_options(run_sciml):
    printed = run_sciml("list", "optimizer").output
    assert "learning_rate: float, default 0.001, > 0" in printed
    assert "equation:" not in printed
    result = run_sciml("list", "optimiser")
    assert result.code == 78 and "did you mean 'optimizer'?" in result.errors


def test_schema(run_sciml, tmp_path):
    printed = run_sciml("schema").output
    assert json.loads(printed)["$schema"].endswith("2020-12/schema")
    path = tmp_path / "s.json"
    assert run_sciml("schema", "--output", path).code == 0
    assert path.read_text(encoding="utf-8") == printed
    assert run_sciml("schema", "--output", path).code == 73


def test_doctor(run_sciml, monkeypatch):
    monkeypatch.setattr(detect, "PROBES", {"good": "print('here')", "gone": "import nowhere", "bad": "1 / 0"})
    printed = run_sciml("doctor").output
    assert "good         here" in printed
    assert "gone         not installed" in printed
    assert "bad          does not work: ZeroDivisionError" in printed
    for name in ("python", "cores", "memory", "disk", "Slurm"):
        assert f"\n{name}" in f"\n{printed}"


def test_a_probe_that_hangs(monkeypatch, tmp_path):
    monkeypatch.setattr(detect, "PROBES", {"slow": "import time; time.sleep(60)"})
    monkeypatch.setattr(detect, "PROBE_SECONDS", 0.2)
    assert detect.Fact("slow", "no answer within 0.2 s") in list(detect.facts(tmp_path))


HEAVY = ("jax", "flax", "optax", "orbax", "grain", "h5py", "matplotlib", "scipy", "numpy", "mpi4py")


@pytest.mark.parametrize("arguments", [["--help"], ["validate", "heat.yaml"], ["list"], ["schema"]])
def test_quick_commands_import_nothing_heavy(heat, arguments):
    assert heat.is_file()
    code = (
        "import sys\nfrom sciml.cli import main\n"
        f"sys.argv = ['sciml', *{arguments!r}]\n"
        "try:\n    main()\nexcept SystemExit as ended:\n    assert not ended.code, ended.code\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stderr.strip() == "[]"


def test_a_closed_pipe_is_quiet():
    code = "import sys; from sciml.cli import main; sys.argv = ['sciml', 'schema']; main()"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    errors = process.stderr.read()
    assert (errors, process.wait()) == ("", 74)
