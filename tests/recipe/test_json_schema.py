"""The JSON schema accepts what the recipe reader accepts and knows the components."""

from __future__ import annotations

import json

import pytest

from sciml.recipe import document, schema

jsonschema = pytest.importorskip("jsonschema")


@pytest.fixture
def validator():
    """Validator of the schema of the components of these tests."""
    jsonschema.Draft202012Validator.check_schema(schema())
    return jsonschema.Draft202012Validator(schema())


def test_a_correct_recipe_is_valid(validator, folder):
    assert not list(validator.iter_errors(document.parse(folder.text, "r").values))


def test_the_resolved_recipe_is_valid(validator, folder):
    assert not list(validator.iter_errors(folder.read().plain()))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("width: 32", "widht: 32"),
        ("width: 32", "width: 0"),
        ("kind: fno", "kind: fmo"),
        ("seed: 0", "seed: x"),
        ("low: 0.02", "low: 0"),
        ("steps: 400", "steps: 0"),
        ("x: 64", "x: 2"),
        ("times: 10", "times: abc"),
    ],
)
def test_mistakes_are_invalid(validator, folder, old, new):
    assert list(validator.iter_errors(document.parse(folder.text.replace(old, new), "r").values))


def test_options_carry_documentation_units_and_limits():
    text = json.dumps(schema()["$defs"]["component-method"])
    assert "Exponential Runge-Kutta of order 4." in text
    assert '"dt": {"description": "dt [s]", "default": 0.01, "type": "number", "exclusiveMinimum": 0.0}' in text


def test_every_reference_is_defined():
    text = json.dumps(schema())
    names = {part.split('"')[0] for part in text.split("#/$defs/")[1:]}
    assert names <= set(schema()["$defs"])


def test_own_equations_are_allowed(validator, folder):
    old = "{kind: heat, diffusivity: {kind: log_uniform, low: 0.02, high: 0.08}}"
    for own in ("my_problem.py:Mine", "{kind: 'my_problem.py:Mine', rate: 3}"):
        assert not list(validator.iter_errors(document.parse(folder.text.replace(old, own), "r").values))
