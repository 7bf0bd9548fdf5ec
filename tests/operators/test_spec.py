"""Spec, Variable and Statistics: round trip through JSON, and what they refuse."""

import json

import numpy as np
import pytest

from sciml.errors import ConfigError
from sciml.spec import Spec, Statistics, Variable

FIELD = Variable("u0", unit="K", shape=(4,), axes=("x",), low=-1.0, high=2.0)
SPEC = Spec(
    inputs=(FIELD, Variable("nu", role="scalar")),
    outputs=(Variable("u", shape=(2, 4), axes=("time", "x")),),
    coordinates={"x": (0.0, 0.25, 0.5, 0.75), "time": (0.5, 1.0)},
    periodic=("x",),
)


def test_json_round_trip():
    assert Spec.from_json(json.loads(json.dumps(SPEC.to_json()))) == SPEC
    statistics = Statistics(mean=np.array([0.0, 1.0]), std=1, low=-2.0, high=[3.0, 4.0])
    assert Statistics.from_json(json.loads(json.dumps(statistics.to_json()))) == statistics
    assert statistics.mean == (0.0, 1.0) and statistics.std == 1.0


def test_equal_specs_have_equal_hashes():
    assert hash(Spec.from_json(SPEC.to_json())) == hash(SPEC)


def test_words():
    assert FIELD.describe() == "u0 (x: 4) [K]"
    assert SPEC.input("nu").describe() == "nu (scalar) [1]"
    assert SPEC.output("u").spatial == ("x",)
    assert SPEC.output("u").size == 8


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Variable("u", shape=(3, 4), axes=("x",)), "2 sizes and 1 axis names"),
        (lambda: Variable("u", role="vector"), "unknown role"),
        (lambda: Spec((FIELD,), (FIELD,)), "uses a name twice"),
        (lambda: Spec((FIELD,), (), {"x": (0.0, 1.0)}), "does not fit the coordinates of axis 'x'"),
        (lambda: SPEC.input("u"), "no input named 'u'"),
    ],
)
def test_what_does_not_fit_is_refused(make, match):
    with pytest.raises(ConfigError, match=match):
        make()
