"""YAML as recipes read it: YAML 1.2 scalars, line numbers, and everything that is refused."""

from __future__ import annotations

import math
import os
import time

import pytest

from sciml.errors import ConfigError, PermissionDeniedError
from sciml.recipe import RecipeError, document

TRAPS = """
small: 1e-3
large: 1E5
half: .5
switch: on
answer: no
clock: 12:30:00
octal: 012
hexadecimal: 0x1f
nothing: ~
empty:
truth: True
endless: -.inf
undefined: .nan
date: 2024-01-01
y: 1
text: '1e-3'
"""


def _refused(text: str) -> str:
    with pytest.raises(RecipeError) as caught:
        document.parse(text, "r.yaml")
    assert caught.value.exit_code == 78
    return "\n".join(caught.value.problems)


def test_scalars_are_those_of_yaml_1_2():
    values = document.parse(TRAPS, "r.yaml").values
    assert math.isnan(values.pop("undefined"))
    assert values == {
        "small": 1e-3,
        "large": 1e5,
        "half": 0.5,
        "switch": "on",
        "answer": "no",
        "clock": "12:30:00",
        "octal": 12,
        "hexadecimal": 31,
        "nothing": None,
        "empty": None,
        "truth": True,
        "endless": -math.inf,
        "date": "2024-01-01",
        "y": 1,
        "text": "1e-3",
    }


def test_what_is_written_reads_back_the_same():
    values = {"a": 1e-5, "b": "1e-3", "c": "on", "d": [1, 2.0, None, True], "e": {"f": "true", "g": "~"}, "h": 1e20}
    assert document.parse(document.dump(values), "r.yaml").values == values


def test_places_of_keys_and_values():
    read = document.parse("a:\n  bc: 1\n  d: [2, 3]\n", "r.yaml")
    assert read.where(("a", "bc")) == "r.yaml:2:7"
    assert read.where(("a", "bc"), at_key=True) == "r.yaml:2:3"
    assert read.where(("a", "d", 1)) == "r.yaml:3:10"
    assert read.where(("a", "missing")) == "r.yaml:1:1"


def test_a_repeated_key_is_refused_with_both_lines():
    assert _refused("a: 1\nb: 2\na: 3\n") == "r.yaml:3:1: the key 'a' is given twice, first in line 1"


def test_python_tags_are_refused_and_do_nothing(tmp_path):
    marker = tmp_path / "marker"
    message = _refused(f"a: 1\nb: !!python/object/apply:os.system ['touch {marker}']\n")
    assert message.startswith("r.yaml:2:4: the tag '!!python/object/apply:os.system' is not allowed")
    assert not marker.exists()


def test_other_tags_and_impossible_scalars_are_refused():
    assert "the tag '!mine' is not allowed" in _refused("a: !mine 3\n")
    assert "r.yaml:1:4: not a value of the type !!int (got 'abc')" in _refused("a: !!int abc\n")


def test_an_alias_bomb_is_refused_quickly():
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    start = time.perf_counter()
    assert "too large once its aliases are expanded" in _refused("\n".join(levels))
    assert time.perf_counter() - start < 5, "expanding nine levels would take hours"


def test_an_alias_to_itself_is_refused():
    assert "too large once its aliases are expanded" in _refused("a: &a [*a]\n")


@pytest.mark.parametrize("text", ["[" * 5000, "a: " + "[" * 100 + "]" * 100])
def test_deep_nesting_is_refused(text):
    assert "40 levels" in _refused(text)


def test_aliases_share_values():
    assert document.parse("a: &x {b: 1}\nc: *x\n", "r.yaml").values == {"a": {"b": 1}, "c": {"b": 1}}


def test_a_huge_file_is_refused(tmp_path):
    path = tmp_path / "huge.yaml"
    path.write_bytes(b"# " + b"x" * document.MAX_BYTES)
    with pytest.raises(ConfigError, match="too large for a recipe"):
        document.load(path)


@pytest.mark.parametrize("text", ["", "# only a comment\n"])
def test_an_empty_file_is_refused(text):
    assert _refused(text).startswith("r.yaml:1:1: the file is empty")


@pytest.mark.parametrize("text", ["- 1\n- 2\n", "only text\n", "---\n"])
def test_a_file_without_keys_is_refused(text):
    assert "does not hold a mapping (key: value)" in _refused(text)


def test_a_tab_is_named():
    assert _refused("a:\n\tb: 1\n").startswith("r.yaml:2:1: not valid YAML: a tab indents this line")


def test_broken_syntax_has_a_place():
    assert _refused("a: {b: 1\nc: 2\n").startswith("r.yaml:2:2: not valid YAML:")
    assert _refused("a: 1\n---\nb: 2\n").startswith("r.yaml:2:1: not valid YAML:")


def test_control_characters_are_refused():
    assert "a character that YAML does not allow (got '\\x00')" in _refused("a: 1\nb: \x00\n")


def test_bad_encoding_has_a_place(tmp_path):
    path = tmp_path / "latin.yaml"
    path.write_bytes("a: 1\nname: é\n".encode("latin-1"))
    with pytest.raises(RecipeError, match=r"latin.yaml:2:7: the file must be UTF-8 text \(got byte 0xe9\)"):
        document.load(path)


def test_a_byte_order_mark_is_skipped(tmp_path):
    path = tmp_path / "bom.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert document.load(path).values == {"a": 1}


def test_a_missing_file_names_its_neighbor(tmp_path):
    (tmp_path / "heat.yaml").write_text("a: 1\n")
    with pytest.raises(ConfigError, match=r"no recipe file .*heta.yaml, did you mean 'heat.yaml'\?"):
        document.load(tmp_path / "heta.yaml")


def test_a_folder_is_not_a_recipe(tmp_path):
    with pytest.raises(ConfigError, match="cannot read"):
        document.load(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_file_without_permission(tmp_path):
    path = tmp_path / "secret.yaml"
    path.write_text("a: 1\n")
    path.chmod(0)
    with pytest.raises(PermissionDeniedError, match="cannot read"):
        document.load(path)
