"""`key.sub=value` on the command line."""

from __future__ import annotations

import pytest

from sciml.recipe import document
from sciml.recipe.overrides import overridden


def test_values_are_read_as_in_the_file(folder):
    recipe = folder.read(
        folder.text,
        "models.fno.train.optimizer.learning_rate=1e-4",
        "models.fno.modes=[8]",
        "models.fno.bias=off",
        "data.times=[0.5, 1.0]",
        "models.fno.dropout=null",
        "name=a, b",
    )
    assert recipe.models["fno"].train.optimizer.options == {"learning_rate": 1e-4}
    assert recipe.models["fno"].component.options["modes"] == (8,)
    assert recipe.models["fno"].component.options["bias"] is False
    assert recipe.data.times == (0.5, 1.0)
    assert recipe.name == "a, b"


def test_the_last_one_wins(folder):
    assert folder.read(folder.text, "seed=1", "seed=2").seed == 2


def test_missing_sections_are_made_and_bare_names_opened(folder):
    text = folder.text.replace("optimizer: {kind: adam, learning_rate: 1e-3}", "optimizer: sgd")
    recipe = folder.read(text, "plan.data=2", "models.fno.train.optimizer.learning_rate=0.5")
    assert recipe.plan.data == 2
    assert recipe.models["fno"].train.optimizer.plain() == {"kind": "sgd", "learning_rate": 0.5}


def test_an_entry_of_a_list_by_number(folder):
    assert folder.read(folder.text, "models.fno.modes.0=7").models["fno"].component.options["modes"] == (7,)


def test_mistakes_name_the_command_line(folder):
    problems = folder.problems(folder.text, "models.fno.widht=3", "models.fno.train.steps=-5", "seed=x")
    assert sorted(problems) == [
        "command line: models.fno.train.steps=-5: models.fno.train.steps: must be >= 1 (got -5)",
        "command line: models.fno.widht=3: models.fno.widht: unknown key 'widht', did you mean 'width'?",
        "command line: seed=x: seed: must be a whole number (got 'x')",
    ]


def test_an_override_hides_the_places_of_what_it_replaces(folder):
    problems = folder.problems(folder.text, "models.fno={kind: fno, modes: [99]}")
    assert problems == [
        "command line: models.fno={kind: fno, modes: [99]}: models.fno.modes.0: "
        "must be <= 32, half of data.grid.x (got 99)"
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed", "command line: seed: an override must read key.sub=value"),
        ("=3", "command line: =3: an override must read key.sub=value"),
        ("a..b=3", "command line: a..b=3: an override must read key.sub=value"),
        ("seed.x=3", "command line: seed.x=3: 'x' has no place in a single value (got 0)"),
        ("models.fno.modes.4=3", "'4' is not an entry of a list of 1 (count from 0)"),
        ("seed=[1", "command line: seed=[1: not valid YAML"),
        ("seed=!!python/name:os.system ''", "is not allowed, only plain values are"),
    ],
)
def test_malformed_overrides(folder, text, message):
    (problem,) = folder.problems(folder.text, text)
    assert message in problem


def test_every_malformed_override_is_reported(folder):
    assert len(folder.problems(folder.text, "a", "b", "seed.x=3")) == 3


def test_an_override_without_value_is_null():
    written = document.parse("a: 1\n", "r.yaml")
    assert overridden(written, ["a="]).values == {"a": None}
    assert written.values == {"a": 1}
